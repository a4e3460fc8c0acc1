"""A relay in front of a third-party server: counts calls, and loses answers after the server has executed them."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_KEPT = ("content-type", "idempotent-replayed", "request-id", "retry-after")


class Relay(ThreadingHTTPServer):
    """``posts`` counts the calls that arrived; of those, every ``lose_every``-th loses its answer on the way back."""

    daemon_threads = True

    def __init__(self, upstream: str, *, lose_every: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream)
        self.lose_every = lose_every
        self.posts = 0
        self.lost = 0
        self.keys: list[str] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Its own address."""
        return f"http://127.0.0.1:{self.server_port}"

    def arrived(self, key: str) -> bool:
        """Counts a call; whether its answer is to be lost."""
        with self.lock:
            self.posts += 1
            self.keys.append(key)
            lose = bool(self.lose_every) and self.posts % self.lose_every == 0
            self.lost += lose
            return lose

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Relay

    def do_GET(self) -> None:
        self._relay()

    def do_POST(self) -> None:
        self._relay()

    def _relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        lose = self.command == "POST" and self.server.arrived(self.headers.get("Idempotency-Key", ""))
        far = http.client.HTTPConnection(self.server.upstream.hostname or "", self.server.upstream.port, timeout=60)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "content-length")}
        far.request(self.command, self.path, body or None, headers)
        answer = far.getresponse()
        data = answer.read()
        far.close()
        if lose:
            # Executed over there; here the connection just ends.
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() in _KEPT:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def relayed(upstream: str, *, lose_every: int = 0) -> Iterator[Relay]:
    """A relay that serves until the end of the block."""
    relay = Relay(upstream, lose_every=lose_every)
    thread = threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        relay.shutdown()
        relay.server_close()
        thread.join(10)
