"""Proxies: what they refuse was not sent, what they pass on is sent once."""

from __future__ import annotations

import asyncio

from payonce.providers.transport import Answer, Fault, TransportSettings
from payonce.providers.transport_aiohttp import AiohttpTransport
from tests.unit.providers.rawserver import Peer, RawServer, answer, free_port, polite
from tests.unit.providers.transportkit import CALL


async def through(proxy: str, url: str) -> Answer | Fault:
    transport = AiohttpTransport(TransportSettings(url, proxy=proxy))
    await transport.open()
    try:
        return await transport.send(CALL, timeout_us=2_000_000, gate=lambda: True)
    finally:
        await transport.close()


def test_a_plain_call_goes_through_the_proxy() -> None:
    """With the whole address in its first line."""

    async def main() -> None:
        async with RawServer(polite).running() as proxy:
            result = await through(f"http://127.0.0.1:{proxy.port}", "http://api.example.com")
            assert isinstance(result, Answer)
            assert proxy.requests[0].startswith(b"POST http://api.example.com/v1/refunds HTTP/1.1\r\n")

    asyncio.run(main())


def test_a_proxy_that_refuses_the_tunnel_sent_nothing() -> None:
    """CONNECT is not the call."""

    async def main() -> None:
        async def refuse(peer: Peer) -> None:
            await peer.request()
            await peer.say(answer(b"", status="403 Forbidden"))
            peer.close()

        async with RawServer(refuse).running() as proxy:
            result = await through(f"http://127.0.0.1:{proxy.port}", "https://api.example.com")
            assert isinstance(result, Fault)
            assert (result.code, result.sent) == ("proxy_failed", False)
            assert proxy.requests[0].startswith(b"CONNECT api.example.com:443")
            assert CALL.body not in b"".join(proxy.requests)

    asyncio.run(main())


def test_a_proxy_that_is_not_there_sent_nothing() -> None:
    """Refused before the call."""

    async def main() -> None:
        result = await through(f"http://127.0.0.1:{free_port()}", "https://api.example.com")
        assert isinstance(result, Fault)
        assert (result.code, result.sent, result.load) == ("proxy_failed", False, True)

    asyncio.run(main())


def test_a_proxy_that_hangs_up_in_the_middle_may_have_passed_it_on() -> None:
    """Like a server that does."""

    async def main() -> None:
        async def drop(peer: Peer) -> None:
            await peer.request()
            peer.reset()

        async with RawServer(drop).running() as proxy:
            result = await through(f"http://127.0.0.1:{proxy.port}", "http://api.example.com")
            assert isinstance(result, Fault)
            assert result.sent
            assert len(proxy.requests) == 1

    asyncio.run(main())
