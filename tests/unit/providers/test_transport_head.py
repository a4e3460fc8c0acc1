"""The head of an answer is told while its body is still on its way: once, whole, whatever becomes of the rest."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from payonce.providers.transport import Answer, Fault
from tests.unit.providers.rawserver import OK_BODY, Peer, RawServer, answer
from tests.unit.providers.transportkit import CALL, Kit

Heads = list[tuple[int, tuple[tuple[bytes, bytes], ...]]]


async def call(kit: Kit, port: int, heads: Heads) -> Any:
    """One call that wants to know of heads."""
    transport = kit.transport(f"http://127.0.0.1:{port}")
    await transport.open()
    try:
        return await transport.send(
            CALL, timeout_us=2_000_000, gate=kit.gate, head=lambda status, headers: heads.append((status, headers))
        )
    finally:
        await transport.close()


@pytest.mark.parametrize("whole", [True, False], ids=["the body comes", "the connection ends"])
def test_the_head_is_told_before_the_body(kit: Kit, whole: bool) -> None:
    """Its status and headers are there while the server has not sent the body yet; a cut body is a fault as ever."""
    heads: Heads = []

    async def main() -> None:
        async def speak(peer: Peer) -> None:
            await peer.request()
            data = answer(headers="X-Generation-Id: gen-1\r\n")
            await peer.say(data[: -len(OK_BODY)])
            for _ in range(200):
                if heads:
                    break
                await asyncio.sleep(0.01)
            assert heads, "the head was not told before the body"
            if whole:
                await peer.say(OK_BODY)
            peer.close()

        async with RawServer(speak).running() as server:
            result = await call(kit, server.port, heads)
            assert isinstance(result, Answer if whole else Fault)
            assert result.status == 200 and len(heads) == 1
            status, headers = heads[0]
            assert (status, dict(headers)[b"X-Generation-Id"]) == (200, b"gen-1")

    kit.run(main)


def test_a_connection_that_is_kept_tells_nothing_of_an_earlier_call(kit: Kit) -> None:
    """Who asks for heads is told of its own call's alone."""
    heads: Heads = []

    async def main() -> None:
        async def speak(peer: Peer) -> None:
            while True:
                await peer.request()
                data = answer()
                await peer.say(data[: -len(OK_BODY)])
                await asyncio.sleep(0.02)
                await peer.say(OK_BODY)

        async with RawServer(speak).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}")
            await transport.open()
            first = await transport.send(
                CALL, timeout_us=2_000_000, gate=kit.gate, head=lambda status, headers: heads.append((status, headers))
            )
            second = await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate)
            await transport.close()
            assert isinstance(first, Answer) and isinstance(second, Answer) and len(heads) == 1

    kit.run(main)
