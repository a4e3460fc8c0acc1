"""The transport without a library between us and the socket: plain and TLS connections, no proxy.

Why it exists, with figures: docs/decisions/0003-transport.md. All state belongs to one event loop. A call takes an
idle connection, or opens one up to the limit, or waits for one; then the gate is asked and the bytes are handed over,
in one go, so that before that point nothing was sent, as a fact, and after it everything may have been.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import deque
from typing import Final
from urllib.parse import urlsplit

from payonce.core.model import Request
from payonce.providers.protocol import Gate
from payonce.providers.transport import (
    GATE_CLOSED,
    Answer,
    Fault,
    HeadSeen,
    TransportSettings,
    default_headers,
    tls_context,
)
from payonce.providers.transport_connect import Dialer
from payonce.providers.transport_direct_exchange import Exchange
from payonce.providers.transport_errors import fault_of

# What would end a line, and so could add a header or a request.
_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")


class DirectTransport:
    """See transport.Transport."""

    def __init__(self, settings: TransportSettings) -> None:
        assert settings.proxy is None, "proxies are for the other transport"
        self._settings = settings
        parts = urlsplit(settings.base_url)
        self._base_path = parts.path
        host = parts.netloc.rpartition("@")[2]
        shared = (("Host", host), *default_headers(settings))
        self._shared = tuple((name.lower(), f"{name}: {value}") for name, value in shared)
        self._own_names: tuple[str, ...] = ()
        self._lines = tuple(line for _, line in self._shared)
        self._idle: list[Exchange] = []
        self._waiting: deque[asyncio.Future[Exchange | None]] = deque()
        self._open = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop
        self._dialer: Dialer

    async def open(self) -> None:
        """Prepares; connects to nothing."""
        self._loop = asyncio.get_running_loop()
        parts = urlsplit(self._settings.base_url)
        context: ssl.SSLContext | None = None
        if parts.scheme == "https":
            context = tls_context(self._settings)
            context.set_alpn_protocols(["http/1.1"])
        port = parts.port or (443 if context else 80)
        self._dialer = Dialer(parts.hostname or "", port, context=context)

    async def close(self) -> None:
        """Closes all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in self._idle:
            connection.discard()
        self._idle.clear()
        self._dialer.give_up()
        # The event loop tells a connection that it is lost only on its next turn.
        await asyncio.sleep(0)

    async def send(
        self, request: Request, *, timeout_us: int, gate: Gate, head: HeadSeen | None = None
    ) -> Answer | Fault:
        """See transport.Transport."""
        loop = self._loop
        data = self._encode(request)
        if isinstance(data, Fault):
            return data
        deadline = loop.time() + timeout_us / 1e6
        connection = self._take_idle()
        if connection is None:
            found = await self._obtain(deadline)
            if isinstance(found, Fault):
                return found
            connection = found
        if not gate():
            self._release(connection)
            return GATE_CLOSED
        waiter: asyncio.Future[Answer | Fault] = loop.create_future()
        timer = loop.call_at(deadline, connection.expire)
        connection.hand_over(data, waiter, head=head)
        try:
            result = await waiter
        except BaseException:
            connection.discard()
            raise
        finally:
            timer.cancel()
        self._release(connection)
        return result

    def _encode(self, request: Request) -> bytes | Fault:
        """The request's exact bytes. A head that could be read as more than one request is not sent at all."""
        path = self._base_path + self._settings.target(request.path)
        lines = [f"{name}: {value}" for name, value in request.headers]
        body = request.body
        if body or request.method not in ("GET", "DELETE"):
            lines.append(f"Content-Length: {len(body)}")
        if _FORBIDDEN.search(path + "".join(lines)) or " " in path:
            return Fault("bad_address", "the request's path or headers hold characters HTTP does not allow", sent=False)
        shared = self._shared_for(tuple([name for name, _ in request.headers]))
        head = "\r\n".join((f"{request.method} {path} HTTP/1.1", *shared, *lines, "\r\n"))
        return head.encode("latin-1") + body

    def _shared_for(self, own: tuple[str, ...]) -> tuple[str, ...]:
        """The lines of the shared headers but for those the request has itself. Remembered for the latest header names,
        which are the same for every call of a batch."""
        if own != self._own_names:
            lower = {name.lower() for name in own}
            self._own_names = own
            self._lines = tuple(line for name, line in self._shared if name not in lower)
        return self._lines

    # The pool.

    def _take_idle(self) -> Exchange | None:
        """The connection used last that can be used again; the younger, the less likely the server gave it up."""
        now = self._loop.time()
        while self._idle:
            connection = self._idle.pop()
            if self._may_be_used(connection, now):
                return connection
            connection.discard()
        return None

    def _may_be_used(self, connection: Exchange, now: float) -> bool:
        idle_s = now - connection.idle_since
        return connection.usable and idle_s < self._settings.idle_timeout_s and idle_s < connection.server_keeps_s

    async def _obtain(self, deadline: float) -> Exchange | Fault:
        """A connection: a new one below the limit, else the next that becomes free. Nothing was sent for a fault."""
        try:
            async with asyncio.timeout_at(deadline):
                while self._open >= self._settings.limit:
                    connection = await self._wait()
                    if connection is not None and connection.usable:
                        return connection
                return await self._connect()
        except Exception as error:
            return fault_of(error, sent=False)

    async def _connect(self) -> Exchange:
        self._open += 1
        try:
            return await self._dialer.dial(self._make)
        except BaseException:
            self._forget()
            raise

    def _make(self) -> Exchange:
        return Exchange(limit=self._settings.answer_limit, lost=self._on_lost)

    async def _wait(self) -> Exchange | None:
        """A released connection, or None where there is room for a new one."""
        waiter: asyncio.Future[Exchange | None] = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            return await waiter
        except BaseException:
            # What was given to us in the same moment goes to the next.
            if waiter.done() and not waiter.cancelled():
                given = waiter.result()
                if given is not None:
                    self._release(given)
                else:
                    self._wake(None)
            raise

    def _wake(self, connection: Exchange | None) -> bool:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return True
        return False

    def _release(self, connection: Exchange) -> None:
        """Back to the pool, or away if it cannot be used again."""
        if not connection.usable or connection.server_keeps_s <= 0:
            connection.discard()
            return
        connection.idle_since = self._loop.time()
        if not self._wake(connection):
            self._idle.append(connection)
            if self._sweeper is None:
                self._sweeper = self._loop.call_later(self._settings.idle_timeout_s, self._sweep)

    def _sweep(self) -> None:
        """Closes what has been idle for long, so that no server has to."""
        now = self._loop.time()
        kept = [connection for connection in self._idle if self._may_be_used(connection, now)]
        for connection in set(self._idle).difference(kept):
            connection.discard()
        self._idle = kept
        self._sweeper = self._loop.call_later(self._settings.idle_timeout_s / 2, self._sweep) if kept else None

    def _on_lost(self, connection: Exchange) -> None:
        self._forget()

    def _forget(self) -> None:
        """One connection less: room for somebody who waits."""
        self._open -= 1
        self._wake(None)
