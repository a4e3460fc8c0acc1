"""The transport on aiohttp: for proxies, and wherever its breadth is worth its price.

aiohttp re-sends an idempotent method by itself when a kept-alive connection drops. Here it cannot: every call has a
cell, marked where the request is handed over, and a marked cell refuses a second hand-over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

import aiohttp
from aiohttp.client_reqrep import ClientRequest, ClientResponse
from aiohttp.connector import Connection
from yarl import URL

from payonce.core.model import Request
from payonce.providers.protocol import Gate
from payonce.providers.transport import (
    GATE_CLOSED,
    Answer,
    Fault,
    HeadSeen,
    TransportSettings,
    decoded,
    default_headers,
    join,
    tls_context,
)
from payonce.providers.transport_aiohttp_errors import PLACES
from payonce.providers.transport_errors import fault_of

# How often a connection found dead before anything was handed to it is replaced by another.
_FRESH_TRIES: Final = 3


class _GateClosed(Exception):
    """The gate said no."""


class _StaleConnection(Exception):
    """The pooled connection is of no use any more; nothing was handed to it."""


class _HandedOverBefore(Exception):
    """The library tried to send the call a second time."""


class _Cell:
    """What one call knows about itself: its gate, and whether its bytes were handed to the socket."""

    __slots__ = ("gate", "sent")

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.sent = False


_CELL: ContextVar[_Cell] = ContextVar("payonce_call")


class _GatedRequest(ClientRequest):
    """aiohttp's request, which asks the gate once the connection is up and its bytes are about to leave."""

    async def send(self, conn: Connection) -> ClientResponse:
        """Hands the request over, if the call may be sent and was not sent before."""
        cell = _CELL.get()
        if cell.sent:
            raise _HandedOverBefore
        # Bytes that nobody asked for are waiting on this connection: they would be taken for our answer.
        if conn.protocol is None or conn.protocol.should_close:
            raise _StaleConnection
        if not cell.gate():
            raise _GateClosed
        cell.sent = True
        return await super().send(conn)


class AiohttpTransport:
    """See transport.Transport."""

    def __init__(self, settings: TransportSettings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._proxy = URL(settings.proxy) if settings.proxy else None

    async def open(self) -> None:
        """Makes the session; connects to nothing."""
        settings = self._settings
        connector = aiohttp.TCPConnector(
            limit=settings.limit,
            keepalive_timeout=settings.idle_timeout_s,
            ttl_dns_cache=10,
            ssl=tls_context(settings) if settings.base_url.startswith("https:") else False,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=_GatedRequest,
            headers=default_headers(settings),
            auto_decompress=False,
            # Reading proxies and .netrc from the environment costs two thread hops a call; settings did it once.
            trust_env=False,
        )

    async def close(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self, request: Request, *, timeout_us: int, gate: Gate, head: HeadSeen | None = None
    ) -> Answer | Fault:
        """See transport.Transport."""
        cell = _Cell(gate)
        token = _CELL.set(cell)
        deadline = asyncio.get_running_loop().time() + timeout_us / 1e6
        try:
            return await self._send(request, cell, deadline=deadline, head=head)
        except _GateClosed:
            return GATE_CLOSED
        except _HandedOverBefore:
            return Fault("closed", "the connection closed after the request was sent, before an answer came")
        except Exception as error:
            return fault_of(error, sent=cell.sent, places=PLACES)
        finally:
            _CELL.reset(token)

    async def _send(self, request: Request, cell: _Cell, *, deadline: float, head: HeadSeen | None) -> Answer | Fault:
        now: Callable[[], float] = asyncio.get_running_loop().time
        for _ in range(_FRESH_TRIES):
            try:
                return await self._exchange(request, cell, left_s=deadline - now(), head=head)
            except _StaleConnection:
                continue
        return Fault("connect_failed", "no usable connection could be had", sent=False)

    async def _exchange(self, request: Request, cell: _Cell, *, left_s: float, head: HeadSeen | None) -> Answer | Fault:
        assert self._session is not None, "the transport is not open"
        if left_s <= 0:
            return Fault("connect_timeout", "no time was left to connect", sent=cell.sent, load=True)
        url = URL(self._settings.base_url + self._settings.target(request.path), encoded=True)
        async with self._session.request(
            request.method,
            url,
            headers=request.headers,
            data=request.body or None,
            allow_redirects=False,
            proxy=self._proxy,
            # The library rounds deadlines over 5 s up to whole seconds; ours have to lie inside a lease.
            timeout=aiohttp.ClientTimeout(total=left_s, ceil_threshold=1e9),
        ) as response:
            if head is not None:
                head(response.status, response.raw_headers)
            return await self._read(response)

    async def _read(self, response: ClientResponse) -> Answer | Fault:
        limit = self._settings.answer_limit
        chunks: list[bytes] = []
        size = 0
        try:
            while chunk := await response.content.readany():
                chunks.append(chunk)
                size += len(chunk)
                if size > limit:
                    response.close()
                    return Answer(response.status, response.raw_headers, join(chunks)[:limit], truncated=True)
        except (aiohttp.ClientError, OSError) as error:
            fault = fault_of(error, sent=True, places=PLACES)
            code = "timeout" if fault.code == "timeout" else "cut_short"
            return Fault(code, fault.message, status=response.status, body=join(chunks)[:limit])
        return decoded(Answer(response.status, response.raw_headers, join(chunks)), limit)
