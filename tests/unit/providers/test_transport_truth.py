"""Many calls at once against a server that fails at random: what each call says of itself is compared with the truth."""

from __future__ import annotations

import asyncio
import random

import pytest

from payonce.core.model import Request
from payonce.providers.transport import Answer, Fault
from tests.unit.providers.rawserver import Peer, RawServer, answer
from tests.unit.providers.transportkit import Kit

CALLS = 240


@pytest.mark.parametrize("seed", [1, 2])
def test_what_a_call_says_of_itself_is_true(kit: Kit, seed: int) -> None:
    """No request is seen twice; what is said not to have been sent was never seen; every answer is the call's own."""
    chance = random.Random(seed)
    seen: list[bytes] = []

    async def moody(peer: Peer) -> None:
        while True:
            if chance.random() < 0.05:
                return peer.reset()
            request = await peer.request()
            own = request.rpartition(b"\r\n\r\n")[2]
            seen.append(own)
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() * 0.02)
            mood = chance.random()
            if mood < 0.08:
                return peer.reset()
            if mood < 0.16:
                return peer.close()
            if mood < 0.22:
                await peer.say(answer(own)[:-3])
                return peer.close()
            if mood < 0.28:
                await peer.say(b"rubbish")
                return peer.close()
            if mood < 0.36:
                # A second answer that nobody asked for, right behind the first.
                await peer.say(answer(own) + answer(b"stray"))
                continue
            if mood < 0.44:
                await peer.say(answer(own, headers="Connection: close\r\n"))
                return peer.close()
            await peer.say(answer(own))

    async def main() -> None:
        async with RawServer(moody).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}", limit=8)
            await transport.open()

            async def call(n: int) -> tuple[bytes, Answer | Fault]:
                own = b"call-%d." % n
                held = n % 17 == 0
                gate = (lambda: False) if held else kit.gate
                request = Request("PUT" if n % 3 else "POST", "/v1/x", own)
                return own, await transport.send(request, timeout_us=chance.choice([15_000, 6_000_000]), gate=gate)

            results = await asyncio.gather(*(call(n) for n in range(CALLS)))
            await transport.close()
            assert len(seen) == len(set(seen))
            unsent = {own for own, result in results if isinstance(result, Fault) and not result.sent}
            assert not unsent & set(seen)
            assert len(unsent) >= CALLS // 17
            for own, result in results:
                if isinstance(result, Answer):
                    assert result.body == own
            assert sum(isinstance(result, Answer) for _, result in results) > CALLS // 10
            assert len(results) == CALLS

    kit.run(main)
