"""Well-formed answers in all their forms, and connections that are kept, shared, limited and given up."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from payonce.core.model import Request
from payonce.providers.transport import Answer, Fault
from tests.unit.providers.rawserver import OK_BODY, Peer, RawServer, answer, polite
from tests.unit.providers.transportkit import CALL, Kit

TLS = Path(__file__).parent / "tls"
FORMS = {
    "content length": answer(),
    "chunked": b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{"id":\r\n7\r\n"re_1"}\r\n0\r\n\r\n',
    "trailer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n" + OK_BODY + b"\r\n0\r\nX-T: 1\r\n\r\n",
    "until close": b"HTTP/1.1 200 OK\r\n\r\n" + OK_BODY,
    "http 1.0": b"HTTP/1.0 200 OK\r\n\r\n" + OK_BODY,
    "continue first": b"HTTP/1.1 100 Continue\r\n\r\n" + answer(),
    "hints first": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + answer(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_answer_is_read(kit: Kit, form: str) -> None:
    """The body is the same however it was framed."""

    async def main() -> None:
        async def speak(peer: Peer) -> None:
            await peer.request()
            await peer.say(FORMS[form])
            peer.close()

        async with RawServer(speak).running() as server:
            result = await kit.call(server.port)
            assert isinstance(result, Answer)
            assert (result.status, result.body, result.truncated) == (200, OK_BODY, False)
            assert result.header("link") is None

    kit.run(main)


def test_bytes_that_arrive_one_by_one_make_the_same_answer(kit: Kit) -> None:
    """Framing does not depend on packets."""

    async def main() -> None:
        async def dribble(peer: Peer) -> None:
            await peer.request()
            for byte in answer():
                await peer.say(bytes([byte]))
                await asyncio.sleep(0)
            await peer.gone()

        async with RawServer(dribble).running() as server:
            result = await kit.call(server.port)
            assert isinstance(result, Answer)
            assert result.body == OK_BODY

    kit.run(main)


def test_the_request_arrives_exactly(kit: Kit) -> None:
    """Path, headers and body as prepared; credentials added; no cookie, no encoding asked for."""

    async def main() -> None:
        async with RawServer(polite).running() as server:
            request = Request("POST", "/v1/a%2Fb?x=%20y", b'{"a":1}', (("Idempotency-Key", "k1"), ("X-Ref", "r")))
            await kit.call(server.port, request, headers=(("Authorization", "Bearer abc"),), query="key=v")
            head, _, body = server.requests[0].partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            assert lines[0] == "POST /v1/a%2Fb?x=%20y&key=v HTTP/1.1"
            assert body == b'{"a":1}'
            headers = {line.partition(":")[0].lower(): line.partition(": ")[2] for line in lines[1:]}
            assert headers["host"] == f"127.0.0.1:{server.port}"
            assert headers["idempotency-key"] == "k1"
            assert headers["authorization"] == "Bearer abc"
            assert headers["accept-encoding"] == "identity"
            assert headers["content-length"] == "7"
            assert headers["user-agent"].startswith("payonce/")
            assert "cookie" not in headers

    kit.run(main)


def test_an_items_own_header_replaces_a_shared_one(kit: Kit) -> None:
    """Never two headers of one name with two values."""

    async def main() -> None:
        async with RawServer(polite).running() as server:
            request = Request("POST", "/", b"{}", (("Accept", "application/problem+json"),))
            await kit.call(server.port, request)
            assert server.requests[0].lower().count(b"\r\naccept:") == 1
            assert b"application/problem+json" in server.requests[0]

    kit.run(main)


def test_a_connection_is_kept_for_the_next_call(kit: Kit) -> None:
    """Calls in a row share one connection."""

    async def main() -> None:
        async with RawServer(polite).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}")
            await transport.open()
            for _ in range(5):
                assert isinstance(await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate), Answer)
            await transport.close()
            assert (server.connections, len(server.requests)) == (1, 5)

    kit.run(main)


@pytest.mark.parametrize("last", ["Connection: close\r\n", ""])
def test_a_connection_the_server_closed_is_replaced_unnoticed(kit: Kit, last: str) -> None:
    """Announced or not: once we know that it is closed, nothing is handed to it."""

    async def main() -> None:
        async def one_answer(peer: Peer) -> None:
            await peer.request()
            await peer.say(answer(headers=last))
            peer.close()

        async with RawServer(one_answer).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}")
            await transport.open()
            for _ in range(3):
                assert isinstance(await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate), Answer)
                await asyncio.sleep(0.02)
            await transport.close()
            assert (server.connections, len(server.requests)) == (3, 3)

    kit.run(main)


def test_an_answer_nobody_asked_for_is_never_given_to_the_next_call(kit: Kit) -> None:
    """A server that answers twice: the second answer belongs to no call."""

    async def main() -> None:
        async def twice(peer: Peer) -> None:
            while True:
                await peer.request()
                n = len(server.requests)
                await peer.say(answer(b'{"id":"re_%d"}' % n) + answer(b'{"id":"stray"}'))

        async with RawServer(twice).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}")
            await transport.open()
            bodies = []
            for _ in range(3):
                result = await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate)
                assert isinstance(result, Answer)
                bodies.append(result.body)
                await asyncio.sleep(0.02)
            await transport.close()
            assert bodies == [b'{"id":"re_1"}', b'{"id":"re_2"}', b'{"id":"re_3"}']

    kit.run(main)


def test_a_stray_answer_that_comes_later_is_not_given_to_the_next_call_either(kit: Kit) -> None:
    """Bytes on an idle connection end it."""

    async def main() -> None:
        async def later(peer: Peer) -> None:
            await peer.request()
            await peer.say(answer(b'{"id":"re_%d"}' % len(server.requests)))
            await asyncio.sleep(0.02)
            await peer.say(answer(b'{"id":"stray"}'))
            await peer.request()
            await peer.say(answer(b'{"id":"re_%d"}' % len(server.requests)))
            await peer.gone()

        async with RawServer(later).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}")
            await transport.open()
            await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate)
            await asyncio.sleep(0.06)
            second = await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate)
            await transport.close()
            assert isinstance(second, Answer)
            assert second.body == b'{"id":"re_2"}'
            assert server.connections == 2

    kit.run(main)


def test_no_more_connections_than_the_limit(kit: Kit) -> None:
    """Calls beyond it wait their turn, and all are made."""

    async def main() -> None:
        async def slow(peer: Peer) -> None:
            while True:
                await peer.request()
                await asyncio.sleep(0.005)
                await peer.say(answer())

        async with RawServer(slow).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}", limit=3)
            await transport.open()
            calls = [transport.send(CALL, timeout_us=2_000_000, gate=kit.gate) for _ in range(20)]
            results = await asyncio.gather(*calls)
            await transport.close()
            assert all(isinstance(result, Answer) for result in results)
            assert server.most_open == 3
            assert len(server.requests) == 20

    kit.run(main)


def test_waiting_for_a_connection_is_inside_the_deadline_and_sends_nothing(kit: Kit) -> None:
    """A call that never got a connection is surely not sent."""

    async def main() -> None:
        async def stuck(peer: Peer) -> None:
            await peer.request()
            await peer.gone()

        async with RawServer(stuck).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}", limit=1)
            await transport.open()
            first = asyncio.ensure_future(transport.send(CALL, timeout_us=300_000, gate=kit.gate))
            await asyncio.sleep(0.05)
            second = await transport.send(CALL, timeout_us=100_000, gate=kit.gate)
            assert isinstance(second, Fault)
            assert (second.code, second.sent, second.load) == ("connect_timeout", False, True)
            assert (await first).sent is True  # type: ignore[union-attr]
            await transport.close()
            assert len(server.requests) == 1

    kit.run(main)


def test_a_cancelled_call_leaves_no_connection_behind_for_others(kit: Kit) -> None:
    """Its late answer must not become the answer of the next call."""

    async def main() -> None:
        async def late(peer: Peer) -> None:
            while True:
                await peer.request()
                n = len(server.requests)
                if n == 1:
                    await asyncio.sleep(0.08)
                await peer.say(answer(b'{"id":"re_%d"}' % n))

        async with RawServer(late).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}", limit=1)
            await transport.open()
            first = asyncio.ensure_future(transport.send(CALL, timeout_us=2_000_000, gate=kit.gate))
            async with asyncio.timeout(10):
                while not server.requests:  # it has left
                    await asyncio.sleep(0.005)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            second = await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate)
            await transport.close()
            assert isinstance(second, Answer)
            assert second.body == b'{"id":"re_2"}'

    kit.run(main)


def test_faults_do_not_use_up_the_limit(kit: Kit) -> None:
    """After resets, timeouts, cancellations and closed gates there is as much room as before."""

    async def main() -> None:
        async def moody(peer: Peer) -> None:
            await peer.request()
            n = len(server.requests)
            if n % 3 == 0:
                peer.reset()
            elif n % 3 == 1:
                await peer.gone()
            else:
                await peer.say(answer())
                await peer.gone()

        async with RawServer(moody).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}", limit=2)
            await transport.open()
            for n in range(12):
                task = asyncio.ensure_future(
                    transport.send(CALL, timeout_us=20_000, gate=(lambda: False) if n % 5 == 0 else kit.gate)
                )
                if n % 4 == 0:
                    await asyncio.sleep(0.002)
                    task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            calls = [transport.send(CALL, timeout_us=50_000, gate=kit.gate) for _ in range(6)]
            results = await asyncio.gather(*calls)
            await transport.close()
            assert len(results) == 6
            assert not [
                r for r in results if isinstance(r, Fault) and r.code == "connect_timeout" and "free" in r.message
            ]
            assert any(isinstance(result, Answer) for result in results)

    kit.run(main)


def test_idle_connections_are_given_up_before_a_server_would(kit: Kit) -> None:
    """After the idle time a call opens a new connection."""

    async def main() -> None:
        async with RawServer(polite).running() as server:
            transport = kit.transport(f"http://127.0.0.1:{server.port}", idle_timeout_s=0.05)
            await transport.open()
            await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate)
            await asyncio.sleep(0.15)
            await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate)
            await transport.close()
            assert server.connections == 2

    kit.run(main)


def test_a_server_that_says_how_long_it_waits_is_believed() -> None:
    """``Keep-Alive: timeout=1``: such a connection is not used again, since it may be closing."""

    async def main() -> None:
        async def impatient(peer: Peer) -> None:
            while True:
                await peer.request()
                await peer.say(answer(headers="Keep-Alive: timeout=1, max=100\r\n"))

        async with RawServer(impatient).running() as server:
            kit = Kit("direct", "asyncio")
            transport = kit.transport(f"http://127.0.0.1:{server.port}")
            await transport.open()
            for _ in range(2):
                assert isinstance(await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate), Answer)
            await transport.close()
            assert server.connections == 2

    asyncio.run(main())


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "loopback.crt", TLS / "loopback.key")
    return context


def test_tls_is_verified_and_a_failure_sent_nothing(kit: Kit) -> None:
    """An unknown authority is refused before a byte of the request leaves; with its file it works."""

    async def main() -> None:
        async with RawServer(polite).running(tls=server_tls()) as server:
            url = f"https://127.0.0.1:{server.port}"
            for settings, works in (
                ({}, False),
                ({"ca_file": str(TLS / "loopback.crt")}, True),
                ({"verify_tls": False}, True),
            ):
                transport = kit.transport(url, **settings)
                await transport.open()
                result = await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate)
                again = await transport.send(CALL, timeout_us=2_000_000, gate=kit.gate)
                await transport.close()
                if works:
                    assert isinstance(result, Answer) and isinstance(again, Answer)
                else:
                    assert isinstance(result, Fault)
                    assert (result.code, result.sent, result.load) == ("tls_failed", False, True)
            assert len(server.requests) == 4

    kit.run(main)


def test_a_name_that_is_not_in_the_certificate_sent_nothing(kit: Kit) -> None:
    """The host name is checked."""

    async def main() -> None:
        async with RawServer(polite).running(tls=server_tls(), host="127.0.0.2") as server:
            transport = kit.transport(f"https://127.0.0.2:{server.port}", ca_file=str(TLS / "loopback.crt"))
            await transport.open()
            result = await transport.send(CALL, timeout_us=1_000_000, gate=kit.gate)
            await transport.close()
            assert isinstance(result, Fault)
            assert (result.code, result.sent) == ("tls_failed", False)
            assert server.requests == []

    kit.run(main)


@pytest.mark.parametrize("speaks", ["nothing", "plain http", "reset"])
def test_a_handshake_that_fails_sent_nothing(kit: Kit, speaks: str) -> None:
    """A server that does not speak TLS, or nothing at all: certainly no byte of the request left."""

    async def main() -> None:
        async def odd(peer: Peer) -> None:
            if speaks == "plain http":
                await peer.say(answer())
            elif speaks == "reset":
                peer.reset()
            await peer.gone()

        async with RawServer(odd).running() as server:
            transport = kit.transport(f"https://127.0.0.1:{server.port}")
            await transport.open()
            result = await transport.send(CALL, timeout_us=150_000, gate=kit.gate)
            await transport.close()
            assert isinstance(result, Fault)
            assert result.sent is False
            assert result.code in {"nothing": {"connect_timeout"}}.get(speaks, {"tls_failed", "connect_failed"})
            assert kit.asked == 0

    kit.run(main)
