"""A server that behaves as badly as a test asks it to, one coroutine a connection, and counts what it was sent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

_LINGER_ZERO = struct.pack("ii", 1, 0)
OK_BODY = b'{"id":"re_1"}'


def answer(body: bytes = OK_BODY, *, status: str = "200 OK", headers: str = "") -> bytes:
    """The bytes of a well-formed answer."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


class Peer:
    """One connection, from the server's side."""

    def __init__(self, server: RawServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer

    async def request(self) -> bytes:
        """Reads one request whole, and counts it. Raises IncompleteReadError where the client is gone."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        size = 0
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        body = await self._reader.readexactly(size) if size else b""
        self._server.requests.append(head + body)
        return head + body

    async def say(self, data: bytes) -> None:
        """Sends bytes."""
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        """Closes in an orderly way."""
        self._writer.close()

    def reset(self) -> None:
        """Resets: the kernel sends RST."""
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self._writer.transport.abort()

    async def gone(self) -> bytes:
        """Waits until the client has closed; what it sent meanwhile."""
        with contextlib.suppress(ConnectionError):
            return await self._reader.read(-1)
        return b""


Behaviour = Callable[[Peer], Awaitable[None]]


class RawServer:
    """See the module's text. ``requests`` are all requests read, ``connections`` how many there were."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self.requests: list[bytes] = []
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._behaviour(Peer(self, reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()

    @contextlib.asynccontextmanager
    async def running(self, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[RawServer]:
        """Listens on the loopback interface while the block runs."""
        server = await asyncio.start_server(self._serve, host, 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)


async def polite(peer: Peer) -> None:
    """Answers every request of the connection."""
    while True:
        await peer.request()
        await peer.say(answer())


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
