"""How many calls a second each transport makes, beside a bare aiohttp loop.

    python benchmarks/transports.py [--calls 20000] [--in-flight 64]

The server is a process of its own that answers at once, so what is measured is the client: calls a second, and the
processor time of the client for one call, which says more on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import httptools
import uvloop
from facts import save

from payonce.core.model import Item, Request
from payonce.core.money import Money
from payonce.providers import registry
from payonce.providers.transport import Answer, TransportSettings
from payonce.providers.transport_aiohttp import AiohttpTransport
from payonce.providers.transport_direct import DirectTransport

ANSWER = (
    b'{"id":"re_1","amount":1250,"currency":"usd","status":"succeeded","created":1796038358,"metadata":{"ref":"r-1"}}'
)
BODY = b'{"charge":"ch_1","metadata":{"ref":"r-1"},"amount":1250,"currency":"usd"}'
HEADERS = {
    "Authorization": "Bearer sk_test_0123456789",
    "Content-Type": "application/json",
    "Idempotency-Key": "k" * 64,
}
One = Callable[[], Awaitable[None]]


class Server(asyncio.Protocol):
    """Answers every request at once."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nRequest-Id: req_1\r\nContent-Length: %d\r\n\r\n"
        self.transport.write(head % len(ANSWER) + ANSWER)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@asynccontextmanager
async def bare(url: str, in_flight: int) -> Any:
    """What somebody would write without any of this."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def one() -> None:
            async with session.post(f"{url}/v1/refunds", data=BODY, headers=HEADERS) as response:
                await response.json()

        yield one


def transport(kind: type[AiohttpTransport | DirectTransport]) -> Any:
    @asynccontextmanager
    async def made(url: str, in_flight: int) -> Any:
        made = kind(TransportSettings(url, limit=in_flight))
        await made.open()
        request = Request("POST", "/v1/refunds", BODY, tuple(HEADERS.items()))

        async def one() -> None:
            result = await made.send(request, timeout_us=10_000_000, gate=lambda: True)
            assert isinstance(result, Answer), result

        yield one
        await made.close()

    return made


@asynccontextmanager
async def provider(url: str, in_flight: int) -> Any:
    """The whole of it: templates, gate, transport, classification."""
    table = {"kind": "simulator", "url": url}
    made = registry.build("simulator", table, operation="refund", batch="b", environ={}, concurrency=in_flight)
    await made.open()
    item = Item(1, "r-1", "ch_1", Money("12.50", "USD"), {})

    async def one() -> None:
        request = made.prepare(item, key="k" * 64, step=0)
        reply = await made.send(request, item, key="k" * 64, timeout_us=10_000_000, gate=lambda: True)
        assert reply.status == 200

    yield one
    await made.close()


async def measure(one: One, *, calls: int, in_flight: int) -> tuple[float, float]:
    """Calls a second, and microseconds of processor time a call."""
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            await one()

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    return calls / (time.perf_counter() - wall), (time.process_time() - cpu) / calls * 1e6


async def rounds(make: Any, url: str, *, calls: int, in_flight: int) -> tuple[float, float]:
    """The best of twenty, after one to warm up: other work on the machine only ever makes it slower."""
    async with make(url, in_flight) as one:
        found = [await measure(one, calls=calls // 20, in_flight=in_flight) for _ in range(21)][1:]
    return max(rate for rate, _ in found), min(cpu for _, cpu in found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.serve:
        uvloop.run(serve())
        return
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        kinds = {
            "bare aiohttp loop": bare,
            "aiohttp transport": transport(AiohttpTransport),
            "direct transport": transport(DirectTransport),
            "provider, direct": provider,
        }
        found: list[dict[str, object]] = []
        for loop, run in (("asyncio", asyncio.run), ("uvloop", uvloop.run)):
            for name, make in kinds.items():
                rate, cpu = run(rounds(make, url, calls=args.calls, in_flight=args.in_flight))
                found.append({"what": name, "loop": loop, "calls_per_s": round(rate), "cpu_us": round(cpu, 1)})
                print(f"{name:20} {loop:8} {rate:8.0f} calls/s {cpu:7.1f} us a call")
        save(args.out, "transports", in_flight=args.in_flight, calls=args.calls, rounds=found)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
