"""A relay on loopback in front of a PostgreSQL server: counts round trips, and loses the connection at a chosen moment.

It reads the client's side of the protocol as far as needed to know which statement is executed
(https://www.postgresql.org/docs/current/protocol-message-formats.html): Parse names a statement, Bind uses it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from payonce.ledger.connect import connect
from tests.postgres import Server


class Cut(Enum):
    """When the connection is lost, seen from the statement that was chosen."""

    BEFORE = "before it reaches the server"
    HALF = "when half of it has been sent"
    UNANSWERED = "when the server has executed it, before the answer arrives"


@dataclass
class Proxy:
    """``loses(statement, cut)`` arms it; once it has struck, no connection is taken until ``mend()``."""

    server: Server
    port: int = 0
    round_trips: int = 0
    struck: threading.Event = field(default_factory=threading.Event)
    _armed: tuple[Callable[[str], bool], Cut] | None = None
    _down: bool = False
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def url(self, schema: str) -> str:
        """The address of a ledger by way of this relay."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable&schema={schema}"

    def loses(self, start: str, cut: Cut, *, nth: int = 1) -> None:
        """The connection that executes the nth statement from now that begins so is lost, and all others with it."""
        self.struck.clear()
        left = iter(range(nth - 1, -1, -1))
        self._armed = (lambda sql: sql.lstrip().startswith(start) and next(left) == 0), cut

    def passes(self) -> None:
        """Nothing is lost any more, if it has not struck yet."""
        self._armed = None

    def mend(self) -> None:
        """Connections are taken again."""
        self._down = False

    async def serve(self, ready: threading.Event) -> None:
        """Listens until ``end`` is called."""
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        listener = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self.port = listener.sockets[0].getsockname()[1]
        ready.set()
        async with listener:
            await self._end.wait()
            self._drop()

    def end(self) -> None:
        """Stops listening and drops every connection."""
        self._loop.call_soon_threadsafe(self._end.set)

    def _drop(self) -> None:
        for writer in self._writers:
            with suppress(Exception):
                writer.transport.abort()
        self._writers.clear()

    async def _client(self, near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        if self._down:
            near_out.transport.abort()
            return
        far_in, far_out = await asyncio.open_unix_connection(str(Path(self.server.socket) / ".s.PGSQL.5432"))
        session = _Session()
        self._writers |= {near_out, far_out}
        there = asyncio.create_task(self._there(near_in, far_out, session))
        back = asyncio.create_task(self._back(far_in, near_out, session))
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        for task in (there, back):
            task.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        for writer in (near_out, far_out):
            self._writers.discard(writer)
            with suppress(Exception):
                writer.transport.abort()

    async def _there(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, session: _Session) -> None:
        while data := await source.read(1 << 16):
            if not session.asking:
                session.asking = True
                self.round_trips += 1
            executed = session.statements(data)
            armed = self._armed
            if armed is not None and any(map(armed[0], executed)):
                self._armed = None
                session.silent = True
                if armed[1] is Cut.HALF:
                    sink.write(data[: len(data) // 2])
                    await sink.drain()
                if armed[1] is not Cut.UNANSWERED:
                    self._strike()
                    return
            sink.write(data)
            await sink.drain()

    def _strike(self) -> None:
        self._down = True
        self._drop()
        self.struck.set()

    async def _back(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, session: _Session) -> None:
        while data := await source.read(1 << 16):
            session.asking = False
            if session.silent:
                if data[-6:-1] == b"Z\0\0\0\5":  # ready for the next query: everything was executed
                    self._strike()
                    return
                continue
            sink.write(data)
            await sink.drain()


class _Session:
    """What is known of one connection."""

    def __init__(self) -> None:
        self.asking = False
        self.silent = False
        self._names: dict[bytes, str] = {}
        self._rest = b""
        self._started = False

    def statements(self, data: bytes) -> list[str]:
        """The statements that are executed by what a client sent."""
        self._rest += data
        found: list[str] = []
        while self._rest:
            head = 1 if self._started else 0  # the first message has no type
            if len(self._rest) < head + 4:
                break
            length = head + int.from_bytes(self._rest[head : head + 4], "big")
            if len(self._rest) < length:
                break
            kind, body = self._rest[:head], self._rest[head + 4 : length]
            self._rest, self._started = self._rest[length:], True
            if kind == b"P":
                name, sql, *_ = body.split(b"\0", 2)
                self._names[name] = sql.decode()
            elif kind == b"B":
                found.append(self._names.get(body.split(b"\0", 2)[1], ""))
            elif kind == b"Q":
                found.append(body.rstrip(b"\0").decode())
        return found


@contextmanager
def relayed(server: Server) -> Iterator[Proxy]:
    """A relay until the end of the block."""
    proxy, ready = Proxy(server), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(proxy.serve(ready)), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield proxy
    finally:
        proxy.end()
        thread.join(10)


def check(url: str) -> tuple[str, ...]:
    """The self-check of a ledger."""
    ledger = connect(url, create=False, read_only=True)
    try:
        return ledger.check()
    finally:
        ledger.close()
