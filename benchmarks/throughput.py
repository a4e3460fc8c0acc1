"""Items a second through `payonce run` against a bare aiohttp loop that records nothing: ratios in one round.

    python benchmarks/throughput.py [--items 20000] [--latency 20ms] [--rounds 5] [--out FILE.json]

Both sides call the same simulator process with 64 calls in flight and are measured between the first and the last call
as the provider sees them, in turn, so that a machine's changing speed meets both. Full durability: every intent and
every commit is fsynced. Loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.crash.harness import Job, Provider

IN_FLIGHT = 64


def rate(provider: Provider, items: int) -> float:
    """Items a second between the first and the last call."""
    stats = provider.stats()
    return items / ((stats["last_call_us"] - stats["first_call_us"]) / 1e6)


async def bare(url: str, items: int) -> None:
    """The unsafe loop: no record of anything."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=IN_FLIGHT)) as session:
        numbers = iter(range(items))

        async def worker() -> None:
            for k in numbers:
                body = {"charge": f"ch_{k}", "amount": 100 + k, "currency": "usd", "metadata": {"ref": f"b{k}"}}
                headers = {"Idempotency-Key": f"bare-{k}", "Authorization": "Bearer x"}
                async with session.post(f"{url}/v1/refunds", json=body, headers=headers) as answer:
                    await answer.json()

        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


def bare_rate(folder: Path, items: int, latency: str) -> float:
    """The bare loop in a process of its own, as the run is."""
    provider = Provider.start(folder, latency=latency)
    try:
        subprocess.run([sys.executable, __file__, "--bare", provider.url, "--items", str(items)], check=True)
        return rate(provider, items)
    finally:
        provider.close()


def safe_rate(folder: Path, items: int, latency: str, **job: bool) -> float:
    """`payonce run` of a sealed batch."""
    provider = Provider.start(folder, latency=latency)
    try:
        batch = Job(folder, provider.url, items, concurrency=IN_FLIGHT, **job)
        batch.write()
        code, last, err = batch.run()
        assert code == 0 and last["items"]["committed"] == items, (code, last, err[-2000:])
        return rate(provider, items)
    finally:
        provider.close()


def main() -> None:
    """One line a round, then the medians; exit code 1 below the wanted ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--want", type=float, default=0.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--bare")
    given = parser.parse_args()
    if given.bare:
        asyncio.run(bare(given.bare, given.items))
        return
    rounds = []
    for k in range(given.rounds):
        with tempfile.TemporaryDirectory(prefix="payonce-bench-") as name:
            folder = Path(name)
            unsafe = bare_rate(folder, given.items, given.latency)
            safe = safe_rate(folder, given.items, given.latency)
        rounds.append({"bare_per_s": round(unsafe), "payonce_per_s": round(safe), "ratio": round(safe / unsafe, 3)})
        print(f"round {k + 1}: bare {unsafe:7.0f}/s  payonce {safe:7.0f}/s  ratio {safe / unsafe:.2f}", flush=True)
    median = statistics.median(r["ratio"] for r in rounds)
    print(f"median ratio {median:.2f} ({given.items} items, {given.latency} latency, {IN_FLIGHT} in flight)")
    if given.out:
        given.out.write_text(
            json.dumps({"latency": given.latency, "cores": os.cpu_count(), "rounds": rounds}, indent=1)
        )
    sys.exit(median < given.want)


if __name__ == "__main__":
    main()
