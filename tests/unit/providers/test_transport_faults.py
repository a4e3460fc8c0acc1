"""Every fault of the network: what is known to have been sent, and that nothing is ever sent twice."""

from __future__ import annotations

import asyncio
import gzip
import time

import pytest

from payonce.core.model import Request
from payonce.providers.transport import GATE_CLOSED, Answer, Fault
from tests.unit.providers.rawserver import OK_BODY, Behaviour, Peer, RawServer, answer, free_port
from tests.unit.providers.transportkit import CALL, Kit

METHODS = ["POST", "PUT", "PATCH", "DELETE", "GET"]


async def reset_unread(peer: Peer) -> None:
    peer.reset()


async def reset_after_reading(peer: Peer) -> None:
    await peer.request()
    peer.reset()


async def close_after_reading(peer: Peer) -> None:
    await peer.request()
    peer.close()


async def half_then_close(peer: Peer) -> None:
    await peer.request()
    await peer.say(answer()[:-6])
    peer.close()


async def half_then_reset(peer: Peer) -> None:
    await peer.request()
    await peer.say(answer()[:-6])
    await asyncio.sleep(0.02)
    peer.reset()


async def half_a_chunk(peer: Peer) -> None:
    await peer.request()
    await peer.say(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"id":')
    peer.close()


async def chunked_without_end(peer: Peer) -> None:
    await peer.request()
    await peer.say(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{"id":"re_1"}\r\n')
    peer.close()


async def garbage(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"\x00\xff not http at all \r\n\r\n")
    peer.close()


async def half_a_head(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 200 OK\r\nContent-Le")
    peer.close()


async def two_lengths(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Length: 5\r\n\r\n" + OK_BODY)
    peer.close()


async def silent(peer: Peer) -> None:
    await peer.request()
    await peer.gone()


async def slow_body(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    while True:
        await peer.say(b"x")
        await asyncio.sleep(0.03)


async def endless_head(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 200 OK\r\n")
    for n in range(400):
        await peer.say(b"X-Pad-%d: %s\r\n" % (n, b"y" * 4000))
    await peer.gone()


BROKEN: list[tuple[Behaviour, set[str]]] = [
    (reset_unread, {"reset", "closed"}),
    (reset_after_reading, {"reset"}),
    (close_after_reading, {"closed"}),
    (half_then_close, {"cut_short"}),
    (half_then_reset, {"cut_short"}),
    (half_a_chunk, {"cut_short"}),
    (chunked_without_end, {"cut_short"}),
    (garbage, {"bad_answer"}),
    (half_a_head, {"closed"}),
    (two_lengths, {"bad_answer"}),
    (endless_head, {"bad_answer", "reset"}),
]


@pytest.mark.parametrize(("behaviour", "codes"), BROKEN, ids=[b.__name__ for b, _ in BROKEN])
def test_a_broken_exchange_may_have_been_sent_and_is_never_repeated(
    kit: Kit, behaviour: Behaviour, codes: set[str]
) -> None:
    """Once the bytes were handed over, every error says so, and the server never sees a second request."""

    async def main() -> None:
        async with RawServer(behaviour).running() as server:
            result = await kit.call(server.port)
            assert isinstance(result, Fault)
            assert result.sent
            assert not result.load
            assert result.code in codes, result
            assert kit.asked == 1
            assert len(server.requests) <= 1
            assert server.connections <= (2 if kit.kind == "aiohttp" else 1)

    kit.run(main)


@pytest.mark.parametrize("behaviour", [silent, slow_body], ids=["silent", "slow_body"])
def test_the_deadline_is_over_everything(kit: Kit, behaviour: Behaviour) -> None:
    """A call takes no longer than its time, however the answer trickles, and then may have been sent."""

    async def main() -> None:
        async with RawServer(behaviour).running() as server:
            start = time.monotonic()
            result = await kit.call(server.port, timeout_us=150_000)
            took = time.monotonic() - start
            assert isinstance(result, Fault)
            assert (result.code, result.sent) == ("timeout", True)
            assert 0.14 < took < 0.6
            assert len(server.requests) == 1

    kit.run(main)


def test_what_was_received_of_a_broken_answer_is_kept_as_evidence(kit: Kit) -> None:
    """The status and the part of the body that came."""

    async def main() -> None:
        async with RawServer(half_then_close).running() as server:
            result = await kit.call(server.port)
            assert isinstance(result, Fault)
            assert result.status == 200
            assert OK_BODY.startswith(result.body)
            assert result.body

    kit.run(main)


def test_a_refused_connection_sent_nothing(kit: Kit) -> None:
    """Nobody listens: certainly not sent, the gate was not even asked, and it counts as load."""

    async def main() -> None:
        result = await kit.call(free_port())
        assert isinstance(result, Fault)
        assert (result.code, result.sent, result.load) == ("connect_refused", False, True)
        assert kit.asked == 0

    kit.run(main)


def test_an_unknown_name_sent_nothing(kit: Kit) -> None:
    """The name look-up fails: certainly not sent."""

    async def main() -> None:
        transport = kit.transport("http://no-such-host.invalid")
        await transport.open()
        result = await transport.send(CALL, timeout_us=5_000_000, gate=kit.gate)
        await transport.close()
        assert isinstance(result, Fault)
        assert (result.code, result.sent) == ("dns_failed", False)
        assert kit.asked == 0

    kit.run(main)


def test_a_closed_gate_lets_no_byte_out(kit: Kit) -> None:
    """The gate is asked when the connection is up; if it says no, the server never sees a byte."""

    async def main() -> None:
        seen: list[bytes] = []

        async def listen(peer: Peer) -> None:
            seen.append(await peer.gone())

        async with RawServer(listen).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}")
            await transport.open()
            result = await transport.send(CALL, timeout_us=2_000_000, gate=lambda: False)
            assert result == GATE_CLOSED
            await transport.close()
            await asyncio.sleep(0.02)
            assert seen in ([b""], [])

    kit.run(main)


@pytest.mark.parametrize("method", METHODS)
def test_a_kept_connection_that_drops_is_never_a_second_request(kit: Kit, method: str) -> None:
    """The server reads the second request and hangs up: one request on the wire, whatever the method."""

    async def main() -> None:
        async def once_then_drop(peer: Peer) -> None:
            await peer.request()
            await peer.say(answer())
            await peer.request()
            peer.reset()

        async with RawServer(once_then_drop).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}")
            await transport.open()
            request = Request(method, "/v1/thing/1", b"" if method in ("GET", "DELETE") else b"{}")
            first = await transport.send(request, timeout_us=2_000_000, gate=kit.gate)
            second = await transport.send(request, timeout_us=2_000_000, gate=kit.gate)
            await transport.close()
            assert isinstance(first, Answer)
            assert isinstance(second, Fault)
            assert second.sent
            assert len(server.requests) == 2
            assert kit.asked == 2

    kit.run(main)


def test_a_redirect_is_an_answer_and_is_not_followed(kit: Kit) -> None:
    """A 307 to elsewhere ends the call."""

    async def main() -> None:
        async def redirect(peer: Peer) -> None:
            await peer.request()
            await peer.say(answer(b"", status="307 Temporary Redirect", headers="Location: /elsewhere\r\n"))
            await peer.gone()

        async with RawServer(redirect).running() as server:
            result = await kit.call(server.port)
            assert isinstance(result, Answer)
            assert result.status == 307
            assert len(server.requests) == 1

    kit.run(main)


def test_a_long_answer_is_cut_at_the_limit(kit: Kit) -> None:
    """Memory stays bounded; what was cut says so."""

    async def main() -> None:
        async def huge(peer: Peer) -> None:
            await peer.request()
            await peer.say(answer(b"x" * 300_000))
            await peer.gone()

        async with RawServer(huge).running() as server:
            result = await kit.call(server.port, answer_limit=100_000)
            assert isinstance(result, Answer)
            assert result.truncated
            assert len(result.body) == 100_000

    kit.run(main)


def test_a_compressed_answer_is_decoded_inside_the_limit(kit: Kit) -> None:
    """gzip that nobody asked for is undone; a bomb is cut."""

    async def main() -> None:
        for size, truncated in ((10, False), (5_000_000, True)):
            body = gzip.compress(b"z" * size)

            async def packed(peer: Peer, body: bytes = body) -> None:
                await peer.request()
                await peer.say(answer(body, headers="Content-Encoding: gzip\r\n"))
                await peer.gone()

            async with RawServer(packed).running() as server:
                result = await kit.call(server.port, answer_limit=100_000)
                assert isinstance(result, Answer)
                assert result.truncated is truncated
                assert result.body == b"z" * min(size, 100_000)

    kit.run(main)
