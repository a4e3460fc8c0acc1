"""A small stateful Stripe for invoices over HTTP: keys are honoured, answers get lost, its books are the truth."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


class FakeInvoices(ThreadingHTTPServer):
    """``lose_every``: of the calls it executes, every so many-th loses its answer."""

    daemon_threads = True

    def __init__(self, *, lose_every: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lose_every = lose_every
        self.lock = threading.Lock()
        self.calls = 0
        self.remembered: dict[str, tuple[int, dict[str, Any]]] = {}
        self.invoices: dict[str, dict[str, Any]] = {}
        self.lines: dict[str, dict[str, Any]] = {}
        self.payments: list[str] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is no error here."""

    def call(self, path: str, fields: dict[str, str], key: str) -> tuple[int, dict[str, Any], bool]:
        """Executes or repeats a call; whether its answer is lost."""
        with self.lock:
            self.calls += 1
            if key not in self.remembered:
                self.remembered[key] = self._execute(path, fields)
            status, body = self.remembered[key]
            return status, body, bool(self.lose_every) and self.calls % self.lose_every == 0

    def _execute(self, path: str, fields: dict[str, str]) -> tuple[int, dict[str, Any]]:
        metadata = {k[9:-1]: v for k, v in fields.items() if k.startswith("metadata[")}
        if path == "/v1/invoices":
            made = {"id": f"in_{len(self.invoices)}", "object": "invoice", "status": "draft", "total": 0}
            made |= {"customer": fields["customer"], "currency": fields["currency"], "metadata": metadata}
            self.invoices[made["id"]] = made | {"created": 1_800_000_000 + len(self.invoices)}
            return 200, dict(self.invoices[made["id"]])
        if path == "/v1/invoiceitems":
            line: dict[str, Any] = {"id": f"ii_{len(self.lines)}", "object": "invoiceitem", "metadata": metadata}
            line |= {"invoice": fields["invoice"], "customer": fields["customer"], "currency": fields["currency"]}
            self.lines[line["id"]] = line | {"amount": int(fields["amount"])}
            self.invoices[fields["invoice"]]["total"] += int(fields["amount"])
            return 200, dict(self.lines[line["id"]])
        _, _, _, name, what = path.split("/")
        invoice = self.invoices[name]
        if what == "pay":
            self.payments.append(name)
        invoice["status"] = "open" if what == "finalize" else "paid"
        return 200, dict(invoice)

    def read(self, path: str, asked: dict[str, str]) -> dict[str, Any]:
        """One invoice, or a list, newest first."""
        with self.lock:
            if path.startswith("/v1/invoices/"):
                return dict(self.invoices[path.removeprefix("/v1/invoices/")])
            name, books = ("customer", self.invoices) if path == "/v1/invoices" else ("invoice", self.lines)
            found = [dict(one) for one in books.values() if one[name] == asked.get(name)]
            return {"object": "list", "data": found[::-1], "has_more": False}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeInvoices

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._answer(200, self.server.read(parts.path, dict(parse_qsl(parts.query))))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        key = self.headers["Idempotency-Key"]
        status, found, lost = self.server.call(self.path, dict(parse_qsl(body)), key)
        if lost:
            self.close_connection = True
            return
        self._answer(status, found)

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def serving(*, lose_every: int = 0) -> Iterator[FakeInvoices]:
    """A server until the end of the block."""
    server = FakeInvoices(lose_every=lose_every)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
