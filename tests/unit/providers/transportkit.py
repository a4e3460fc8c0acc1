"""Both transports, made and run in the same way, for the tests of what a transport must never get wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from payonce.core.model import Request
from payonce.providers.transport import Transport, TransportSettings
from payonce.providers.transport_aiohttp import AiohttpTransport
from payonce.providers.transport_direct import DirectTransport

CALL = Request("POST", "/v1/refunds", b'{"amount":1250}', (("Content-Type", "application/json"),))


class Kit:
    """Makes transports of one kind and runs coroutines on one kind of loop."""

    def __init__(self, kind: str, loop: str) -> None:
        self.kind = kind
        self._loop = loop
        self.asked = 0

    def transport(self, url: str, **settings: Any) -> Transport:
        """A transport to this address."""
        made = TransportSettings(url, **settings)
        return DirectTransport(made) if self.kind == "direct" else AiohttpTransport(made)

    def run(self, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs a test's coroutine."""
        if self._loop == "uvloop":
            uvloop.run(main())
        else:
            asyncio.run(main())

    def gate(self) -> bool:
        """A gate that lets everything through and counts."""
        self.asked += 1
        return True

    async def call(self, port: int, request: Request = CALL, *, timeout_us: int = 2_000_000, **settings: Any) -> Any:
        """One call to a port, through a transport of its own."""
        transport = self.transport(f"http://127.0.0.1:{port}", **settings)
        await transport.open()
        try:
            return await transport.send(request, timeout_us=timeout_us, gate=self.gate)
        finally:
            await transport.close()
