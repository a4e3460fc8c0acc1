"""A small stateful PayPal, and an Adyen, over HTTP: as their documentation says, with answers that get lost."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any]]


class Fake(ThreadingHTTPServer):
    """Serves ``answer(method, path, headers, body)``; of the calls that execute, every so many-th loses its answer."""

    daemon_threads = True

    def __init__(self, books: Books, *, lose_every: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.books = books
        self.lose_every = lose_every
        self.lock = threading.Lock()
        self.calls = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is no error here."""


class Books:
    """What was executed: item to the amounts, each time."""

    def __init__(self) -> None:
        self.executed: dict[str, list[str]] = {}
        self.remembered: dict[str, Answer] = {}

    def once(self, key: str, execute: Callable[[], Answer]) -> Answer:
        """The first answer of a key, for ever."""
        if key not in self.remembered:
            self.remembered[key] = execute()
        return self.remembered[key]

    def note(self, item: str, amount: str) -> int:
        """Executes; how many executions there are."""
        self.executed.setdefault(item, []).append(amount)
        return sum(len(found) for found in self.executed.values())

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        """What the provider does."""
        raise NotImplementedError


class PayPalRefunds(Books):
    """A repeat is answered with the latest status."""

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        if method == "GET":  # the capture, as it is before any refund
            whole = {"value": "100000.00", "currency_code": "EUR"}
            return 200, {"id": path.split("/")[4], "status": "COMPLETED", "amount": whole}

        def execute() -> Answer:
            number = self.note(body["custom_id"], body["amount"]["value"])
            capture = path.split("/")[4]
            link = {"rel": "up", "href": f"https://api-m.paypal.com/v2/payments/captures/{capture}"}
            return 201, {"id": f"RF{number:08d}", "status": "COMPLETED", "links": [link], **body}

        return self.once(headers["PayPal-Request-Id"], execute)


class PayPalPayouts(Books):
    """A repeat is refused, with a link to the first."""

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        if method == "GET":
            return 200, self.remembered[path.rsplit("/", 1)[1]][1]
        sender = body["sender_batch_header"]["sender_batch_id"]
        if sender in self.remembered:
            link = {"href": f"https://api-m.paypal.com/v1/payments/payouts/{self.remembered[sender][1]['id']}"}
            return 400, {"name": "USER_BUSINESS_ERROR", "message": "Duplicate batch request", "links": [link]}
        number = self.note(body["items"][0]["sender_item_id"], body["items"][0]["amount"]["value"])
        header = {"payout_batch_id": f"PB{number}", "batch_status": "PENDING"}
        header |= {"sender_batch_header": body["sender_batch_header"]}
        self.remembered[sender] = 201, {"id": f"PB{number}"}
        shown = [{"transaction_status": "PENDING", "payout_item": body["items"][0]}]
        self.remembered[f"PB{number}"] = 200, {"batch_header": header, "items": shown}
        return 201, {"batch_header": header}


class AdyenRefunds(Books):
    """A repeat is answered as the first."""

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        def execute() -> Answer:
            number = self.note(body["reference"], str(body["amount"]["value"]))
            payment = re.fullmatch(r"/payments/(\w+)/refunds", path)
            assert payment is not None
            made = {"pspReference": f"REFUND{number:010d}", "status": "received", "paymentPspReference": payment[1]}
            return 201, {**body, **made}

        return self.once(headers["Idempotency-Key"], execute)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Fake

    def do_GET(self) -> None:
        with self.server.lock:
            self._answer(*self.server.books.answer("GET", self.path, self.headers, None))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/v1/oauth2/token":
            self._answer(200, {"access_token": "A21_marked_run_token", "expires_in": 32400})
            return
        with self.server.lock:
            self.server.calls += 1
            status, found = self.server.books.answer("POST", self.path, self.headers, json.loads(raw))
            lost = bool(self.server.lose_every) and self.server.calls % self.server.lose_every == 0
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
def serving(books: Books, *, lose_every: int = 0) -> Iterator[Fake]:
    """A server until the end of the block."""
    server = Fake(books, lose_every=lose_every)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
