"""Opens connections: names, addresses of both families side by side (RFC 8305), TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final, TypeVar

from aiohappyeyeballs import start_connection

P = TypeVar("P", bound=asyncio.Protocol)
# After so long the next address is tried beside the first; the value RFC 8305 recommends.
_HEAD_START_S: Final = 0.25
_NAME_TTL_S: Final = 10.0

AddressInfo = tuple[int, int, int, str, Any]


class Dialer:
    """Connects to one host. Names are kept for a few seconds and asked for once, however many connect at a time."""

    def __init__(self, host: str, port: int, *, context: ssl.SSLContext | None) -> None:
        self._host = host
        self._port = port
        self._context = context
        self._known: list[AddressInfo] = []
        self._known_until = 0.0
        self._asking: asyncio.Task[list[AddressInfo]] | None = None

    async def dial(self, make: Callable[[], P]) -> P:
        """A connected protocol, TLS included. Raises OSError and its kin: of it nothing was sent but TLS itself."""
        addresses = await self._addresses()
        loop = asyncio.get_running_loop()
        sock = await start_connection(addresses, happy_eyeballs_delay=_HEAD_START_S, interleave=1, loop=loop)
        try:
            _, protocol = await loop.create_connection(
                make, sock=sock, ssl=self._context, server_hostname=self._host if self._context else None
            )
        except BaseException:
            sock.close()
            raise
        return protocol

    def give_up(self) -> None:
        """Nobody waits for an answer of the name server any more."""
        if self._asking is not None:
            self._asking.cancel()

    async def _addresses(self) -> list[AddressInfo]:
        loop = asyncio.get_running_loop()
        if loop.time() < self._known_until:
            return self._known
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask(loop))
        # One who gives up must not take the answer away from the others.
        return await asyncio.shield(self._asking)

    async def _ask(self, loop: asyncio.AbstractEventLoop) -> list[AddressInfo]:
        try:
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            self._known = [(int(family), int(kind), proto, name, place) for family, kind, proto, name, place in found]
            self._known_until = loop.time() + _NAME_TTL_S
            return self._known
        finally:
            self._asking = None
