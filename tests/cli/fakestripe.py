"""A small stateful Stripe over HTTP for refunds and transfers and for undoing them. Its books are the truth."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Body = dict[str, Any]


class FakeStripe(ThreadingHTTPServer):
    """``lose``: so many answers of calls that it has executed never arrive. ``writes`` are the paths it executed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.lose = 0
        self.writes: list[str] = []
        self.remembered: dict[str, tuple[int, Body]] = {}
        self.refunds: dict[str, Body] = {}
        self.transfers: dict[str, Body] = {}

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def refund(
        self, charge: str, minor: int, *, created: int, status: str = "pending", metadata: Body | None = None
    ) -> str:
        """Puts a refund into the books, as an old script would have."""
        made = {"id": f"re_{len(self.refunds)}", "object": "refund", "charge": charge, "amount": minor, "currency": "usd",
                "status": status, "created": created, "metadata": metadata or {}}  # fmt: skip
        self.refunds[made["id"]] = made
        return str(made["id"])

    def transfer(self, minor: int, *, created: int) -> str:
        """Puts a transfer into the books."""
        made = {"id": f"tr_{len(self.transfers)}", "object": "transfer", "amount": minor, "amount_reversed": 0,
                "currency": "usd", "created": created, "reversals": []}  # fmt: skip
        self.transfers[made["id"]] = made
        return str(made["id"])

    def post(self, path: str, fields: dict[str, str], key: str) -> tuple[int, Body]:
        """Executes a call, or repeats its answer under the same key."""
        if key not in self.remembered:
            self.remembered[key] = self._execute(path, fields)
            if self.remembered[key][0] == 200:
                self.writes.append(path)
        return self.remembered[key]

    def _execute(self, path: str, fields: dict[str, str]) -> tuple[int, Body]:
        metadata = {k[9:-1]: v for k, v in fields.items() if k.startswith("metadata[")}
        match path.split("/")[2:]:
            case ["refunds"]:
                name = self.refund(fields["charge"], int(fields["amount"]), created=_NOW, metadata=metadata)
                return 200, dict(self.refunds[name])
            case ["refunds", name, "cancel"]:
                refund = self.refunds[name]
                if refund["status"] != "pending":
                    return 400, {
                        "error": {"type": "invalid_request_error", "message": "This refund cannot be canceled."}
                    }
                refund["status"] = "canceled"
                return 200, dict(refund)
            case ["transfers", name, "reversals"]:
                transfer, minor = self.transfers[name], int(fields["amount"])
                if transfer["amount_reversed"] + minor > transfer["amount"]:
                    return 400, {"error": {"type": "invalid_request_error", "message": "More than is left."}}
                transfer["amount_reversed"] += minor
                made = {"id": f"trr_{name}_{len(transfer['reversals'])}", "object": "transfer_reversal", "amount": minor,
                        "currency": "usd", "created": _NOW, "metadata": metadata}  # fmt: skip
                transfer["reversals"].append(made)
                return 200, dict(made)
        return 404, {"error": {"type": "invalid_request_error", "message": f"no {path}"}}

    def get(self, path: str, asked: dict[str, str]) -> tuple[int, Body]:
        """One object, or a list, newest first."""
        match path.split("/")[2:]:
            case ["account"]:
                return 200, {"id": "acct_fake", "object": "account"}
            case ["refunds"]:
                found = [one for one in self.refunds.values() if one["charge"] == asked.get("charge")]
                return 200, {
                    "object": "list",
                    "data": sorted(found, key=lambda one: -one["created"]),
                    "has_more": False,
                }
            case ["refunds", name]:
                return 200, dict(self.refunds[name])
            case ["charges", name]:
                return 200, {"id": name, "object": "charge", "amount": 100_000, "amount_refunded": 0, "currency": "usd",
                             "paid": True, "disputed": False, "livemode": False, "captured": True}  # fmt: skip
            case ["transfers", name, "reversals"]:
                return 200, {"object": "list", "data": self.transfers[name]["reversals"][::-1], "has_more": False}
        return 404, {"error": {"type": "invalid_request_error", "message": f"no {path}"}}


_NOW = 1_796_050_000


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeStripe

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        with self.server.lock:
            self._answer(*self.server.get(url.path, dict(parse_qsl(url.query))))

    def do_POST(self) -> None:
        fields = dict(parse_qsl(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()))
        with self.server.lock:
            status, body = self.server.post(urlsplit(self.path).path, fields, self.headers["Idempotency-Key"])
            lost, self.server.lose = self.server.lose > 0, max(0, self.server.lose - 1)
        if lost:
            self.close_connection = True
            self.connection.close()
        else:
            self._answer(status, body)

    def _answer(self, status: int, body: Body) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Request-Id", "req_fake")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def serving() -> Iterator[FakeStripe]:
    """The server while it is needed."""
    server = FakeStripe()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
