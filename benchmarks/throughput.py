"""Items a second through `payonce run` against a bare aiohttp loop that records nothing: ratios in one round.

    python benchmarks/throughput.py [--items 20000] [--latency 20ms] [--rounds 5] [--proof] [--out FILE.json]

Both sides call the same simulator process with 64 calls in flight and are measured between the first and the last call
as the provider sees them, in turn, so that a machine's changing speed meets both. Full durability: every intent and
every commit is fsynced. ``--proof``: with a key for checkpoints, and after the run the provider's statement is
reconciled and the whole trail verified; a second ratio then compares the time of all commands together (plan and run,
reconcile, verify) with that of the bare loop's process. Loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from facts import save

from tests.crash.harness import Job, Provider

IN_FLIGHT = 64
TOKEN = "sim_secret_token"


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


def bare_rate(folder: Path, items: int, latency: str) -> tuple[float, float]:
    """The bare loop in a process of its own, as the run is: items a second, and the process's seconds."""
    provider = Provider.start(folder, latency=latency)
    try:
        start = time.perf_counter()
        subprocess.run([sys.executable, __file__, "--bare", provider.url, "--items", str(items)], check=True)
        return rate(provider, items), time.perf_counter() - start
    finally:
        provider.close()


def safe_rate(folder: Path, items: int, latency: str, *, proof: bool) -> tuple[float, float]:
    """`payonce run` of a new batch: items a second, and the seconds of all commands."""
    provider = Provider.start(folder, latency=latency)
    try:
        batch = Job(folder, provider.url, items, concurrency=IN_FLIGHT)
        batch.write()
        if proof:
            told(batch.command("plan", "batch.toml"))
            told(batch.command("trail", "key"))
        start = time.perf_counter()
        last = told(batch.run())
        assert last["items"]["committed"] == items, last
        found = rate(provider, items)
        if proof:
            prove(batch, provider)
        return found, time.perf_counter() - start
    finally:
        provider.close()


def told(finished: tuple[int, dict[str, Any], str]) -> dict[str, Any]:
    """A command's document; its exit code must be 0."""
    code, document, err = finished
    assert code == 0, (code, document, err[-2000:])
    return document


def prove(batch: Job, provider: Provider) -> None:
    """What makes the run provable: the provider's own statement, matched to the minor unit, and the trail verified."""
    asked = urllib.request.Request(provider.url + "/v1/statement.csv", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(asked, timeout=120) as answer:
        (batch.folder / "statement.csv").write_bytes(answer.read())
    told(batch.command("reconcile", batch.name, "--statement", "statement.csv"))
    told(batch.command("trail", "verify"))


def main() -> None:
    """One line a round, then the medians; exit code 1 below the wanted ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--proof", action="store_true", help="checkpoints on, then reconcile and verify")
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
            unsafe, unsafe_s = bare_rate(folder, given.items, given.latency)
            safe, safe_s = safe_rate(folder, given.items, given.latency, proof=given.proof)
        found = {"bare_per_s": round(unsafe), "payonce_per_s": round(safe), "ratio": round(safe / unsafe, 3)}
        rounds.append(found | {"whole_ratio": round(unsafe_s / safe_s, 3)})
        text = f"round {k + 1}: bare {unsafe:7.0f}/s  payonce {safe:7.0f}/s  ratio {safe / unsafe:.2f}"
        print(f"{text}  whole commands {unsafe_s / safe_s:.2f}", flush=True)
    median = statistics.median(r["ratio"] for r in rounds)
    whole = statistics.median(r["whole_ratio"] for r in rounds)
    what = f"{given.items} items, {given.latency} latency, {IN_FLIGHT} in flight{', with proof' if given.proof else ''}"
    print(f"median ratio {median:.2f}, whole commands {whole:.2f} ({what})")
    name = f"throughput_{given.latency}{'_proof' if given.proof else ''}"
    ratios = {name: [r["ratio"] for r in rounds]}
    if given.proof:
        ratios[f"{name}_whole"] = [r["whole_ratio"] for r in rounds]
    save(
        given.out,
        "throughput",
        ratios=ratios,
        latency=given.latency,
        proof=given.proof,
        items=given.items,
        in_flight=IN_FLIGHT,
        payonce_per_s=statistics.median(r["payonce_per_s"] for r in rounds),
        bare_per_s=statistics.median(r["bare_per_s"] for r in rounds),
        rounds=rounds,
    )
    sys.exit(median < given.want)


if __name__ == "__main__":
    main()
