"""The simulator over real sockets on the loopback interface, and in process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from payonce.providers.simulator import InProcess, Reset, Silent, open_world, parse
from payonce.providers.simulator.server import Server, start


def request(ref: str, *, chunked: bool = False) -> bytes:
    """The bytes of a refund."""
    body = orjson.dumps({"charge": f"ch_{ref}", "amount": 5, "metadata": {"ref": ref}})
    head = b"POST /v1/refunds HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n"
    if chunked:
        parts = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:]))
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
    """The next answer on a connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next((int(line.split(":")[1]) for line in head.splitlines() if line.startswith("Content-Length")), 0)
    body = await reader.readexactly(length)
    return int(head.split()[1]), orjson.loads(body) if body else None


async def connect(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A raw connection."""
    place = urlsplit(server.url)
    return await asyncio.open_connection(place.hostname, place.port)


async def raw(server: Server, data: bytes) -> bytes:
    """Everything the server says to these bytes, until it closes; raises what the socket raises."""
    reader, writer = await connect(server)
    try:
        writer.write(data)
        return await asyncio.wait_for(reader.read(), 1)
    finally:
        writer.close()


def test_requests_share_a_connection() -> None:
    """Keep-alive, pipelined and chunked requests are answered in their order, with and without latency."""

    async def go() -> None:
        for latency in ("0ms", "2ms"):
            server = await start(parse({"latency": latency}))
            reader, writer = await connect(server)
            writer.write(request("a") + request("b", chunked=True) + request("c"))
            seen = [(await answer(reader))[1]["metadata"]["ref"] for _ in range(3)]
            writer.write(request("d"))
            assert (await answer(reader))[0] == 200
            writer.close()
            await server.close()
            assert seen == ["a", "b", "c"]
            assert [effect.ref for effect in server.world.effects] == ["a", "b", "c", "d"]

    asyncio.run(go())


def test_resets_are_real() -> None:
    """A raw client sees ConnectionResetError, not an orderly end; before and after the execution alike."""

    async def go() -> None:
        server = await start(parse({"script": {"a": ["reset_before"], "b": ["reset_after"]}}))
        for ref in ("a", "b"):
            with pytest.raises(ConnectionResetError):
                await raw(server, request(ref))
        assert [effect.ref for effect in server.world.effects] == ["b"]
        await server.close()

    asyncio.run(go())


def test_an_orderly_close_and_half_an_answer() -> None:
    """close_after ends without a byte, cut_after in the middle of the body."""

    async def go() -> None:
        server = await start(parse({"script": {"a": ["close_after"], "b": ["cut_after"]}}))
        assert await raw(server, request("a")) == b""
        cut = await raw(server, request("b"))
        assert cut.startswith(b"HTTP/1.1 200")
        assert not cut.endswith(b"}")
        await server.close()

    asyncio.run(go())


def test_silence_lasts_and_a_gone_client_is_not_in_flight() -> None:
    """No byte comes back; once the client gives up, nothing is in flight."""

    async def go() -> None:
        server = await start(parse({"script": {"a": ["silent_after"]}}))
        reader, writer = await connect(server)
        writer.write(request("a"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.02)
        assert server.world.stats.as_dict()["in_flight"] == 1
        writer.close()
        await writer.wait_closed()
        while server.world.stats.as_dict()["in_flight"]:
            await asyncio.sleep(0.001)
        assert len(server.world.effects) == 1
        await server.close()

    asyncio.run(go())


def test_slow_calls_answer_when_they_are_done() -> None:
    """The answer of a slow call comes, and the next call on the connection behind it."""

    async def go() -> None:
        server = await start(parse({"script": {"a": ["slow:10ms"]}}))
        reader, writer = await connect(server)
        writer.write(request("a") + request("b"))
        assert [(await answer(reader))[0] for _ in range(2)] == [200, 200]
        writer.close()
        await server.close()

    asyncio.run(go())


def test_connections_can_be_refused() -> None:
    """While the server does not listen, a connection is refused, and afterwards accepted at the same address."""

    async def go() -> None:
        server = await start(parse({}))
        await server.refuse_connections()
        with pytest.raises(ConnectionRefusedError):
            await connect(server)
        await server.listen()
        _, writer = await connect(server)
        writer.close()
        await server.close()

    asyncio.run(go())


def test_what_is_no_http_is_400() -> None:
    """A broken request gets an answer and the connection ends."""

    async def go() -> None:
        server = await start(parse({}))
        assert (await raw(server, b"nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400")
        await server.close()

    asyncio.run(go())


def test_others_cannot_reach_it() -> None:
    """An address beyond the loopback interface is refused unless it is allowed."""
    with pytest.raises(ValueError, match="loopback"):
        asyncio.run(start(parse({}), "0.0.0.0"))


@pytest.mark.parametrize("end", ["signal", "parent"])
def test_the_process_ends_by_signal_or_with_its_parent(end: str, tmp_path: Path) -> None:
    """SIGTERM ends it with status 0; with --parent-pid it does not outlive that process."""
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    config = tmp_path / "sim.toml"
    config.write_text('latency = "1ms"\n[script]\nr1 = ["hang"]\n')
    command = [sys.executable, "-m", "payonce.providers.simulator", "--config", str(config)]
    child = subprocess.Popen([*command, "--parent-pid", str(parent.pid)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline().startswith("http://127.0.0.1:")
    if end == "signal":
        os.kill(child.pid, signal.SIGTERM)
    parent.communicate(b"\n")
    began = time.monotonic()
    assert child.wait(5) == 0
    assert time.monotonic() - began < 3
    child.stdout.close()


def test_in_process_failures_say_what_may_have_been_sent() -> None:
    """Only an unreachable provider is certain to have got nothing; a silent one is met at the deadline."""

    async def go() -> None:
        script = {"a": ["unreachable"], "b": ["reset_after"], "c": ["silent_after"], "d": ["cut_after"]}
        client = InProcess(open_world(parse({"script": script})))
        seen = {ref: await outcome(client, ref) for ref in "abcde"}
        assert seen == {"a": (Reset, False), "b": (Reset, True), "c": (Silent, True), "d": (Reset, True), "e": 200}
        assert [effect.ref for effect in client.world.effects] == ["b", "c", "d", "e"]
        assert client.world.stats.as_dict()["in_flight"] == 0

    asyncio.run(go())


def test_in_process_calls_run_on_a_simulated_clock() -> None:
    """With a sleep that moves the world's clock, hours pass at once and deadlines are exact."""

    async def go() -> None:
        clock = [0]

        async def sleep(duration_us: int) -> None:
            clock[0] += duration_us

        world = open_world(parse({"script": {"a": ["slow:8h"], "b": ["hang"]}}), clock=lambda: clock[0])
        client = InProcess(world, sleep=sleep)
        assert await outcome(client, "a", deadline=10**12) == 200
        assert clock[0] == 8 * 3_600_000_000
        assert await outcome(client, "b", deadline=clock[0] + 5) == (Silent, True)
        assert clock[0] == 8 * 3_600_000_000 + 5

    asyncio.run(go())


async def outcome(client: InProcess, ref: str, *, deadline: int | None = None) -> object:
    """The status of a refund, or what was raised and whether bytes may have been sent."""
    body = orjson.dumps({"charge": f"ch_{ref}", "amount": 5, "metadata": {"ref": ref}})
    at = client.world.now() + 5_000 if deadline is None else deadline
    try:
        status, _, _ = await client.call(
            "POST", "/v1/refunds", headers={"Authorization": "Bearer x"}, body=body, deadline=at
        )
    except (Reset, Silent) as problem:
        return type(problem), problem.may_have_been_sent
    return status
