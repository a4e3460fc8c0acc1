"""Throughput of 1, 2 and 4 worker processes on one batch in PostgreSQL, at a provider that takes 20 ms a call.

    python benchmarks/workers.py [--items 4000] [--concurrency 8] [--rounds 3] [--latency 20ms] [--out FILE.json]

A real server from the embedded wheel, `fsync` on, on the machine's own disk; the built-in provider in a process of its own.
Each process has few calls in flight, so that one of them is bound by the provider and not by the processor: throughput grows
with processes until the cores are full. Measured from when all of them have joined, over four fifths of what is left then.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from facts import save

from payonce.ledger.connect import connect
from tests.crash.harness import PAYONCE, Job, Provider, finish
from tests.postgres import Server, new_schema

WORKERS = (1, 2, 4)


def rate(server: Server, workers: int, *, items: int, concurrency: int, latency: str) -> float:
    """Items a second of so many processes together."""
    with tempfile.TemporaryDirectory(prefix="payonce-workers-") as name:
        folder = Path(name)
        provider = Provider.start(folder, latency=latency)
        try:
            job = Job(folder, provider.url, items, concurrency=concurrency, ledger=server.url(new_schema()))
            job.env = {"XDG_STATE_HOME": name, "PAYONCE_LEDGER": job.ledger}
            file = str(job.write())
            code, last, err = job.command("plan", file)
            assert code == 0, (last, err)
            ledger = connect(job.ledger, create=False, read_only=True)
            started = [
                subprocess.Popen(
                    [*PAYONCE, "work", file, "--json"],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=job.environment(),
                )
                for _ in range(workers)
            ]
            while ledger.status(job.name).live_workers < workers:
                time.sleep(0.01)
            first, start = provider.stats()["calls"], time.monotonic()
            while provider.stats()["calls"] < first + (items - first) * 0.8:
                time.sleep(0.01)
            found = (provider.stats()["calls"] - first) / (time.monotonic() - start)
            for process in started:
                code, last, err = finish(process, 600)
                assert code == 0 and last["items"]["committed"] == items, (code, last, err[-2000:])
            ledger.close()
            executed = provider.executed()
            assert len(executed) == sum(executed.values()) == items
            return found
        finally:
            provider.close()


def main() -> None:
    """One line a round, then the medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=4000)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rounds: list[dict[int, float]] = []
    with tempfile.TemporaryDirectory(prefix="payonce-postgres-") as name:
        server = Server.start(run=Path(name), disk=True)
        for k in range(given.rounds):
            found = {
                n: rate(server, n, items=given.items, concurrency=given.concurrency, latency=given.latency)
                for n in WORKERS
            }
            rounds.append(found)
            told = "  ".join(f"{n} processes {found[n]:6.0f}/s" for n in WORKERS)
            print(f"round {k + 1}: {told}", flush=True)
    medians = {n: statistics.median(found[n] for found in rounds) for n in WORKERS}
    grown = ", ".join(f"{n}: {medians[n] / medians[1]:.2f}" for n in WORKERS)
    print(f"medians against one process: {grown} ({given.concurrency} in flight each, {os.cpu_count()} cores)")
    save(
        given.out,
        "workers",
        ratios={f"workers_{n}_to_1": [found[n] / found[1] for found in rounds] for n in WORKERS[1:]},
        items=given.items,
        concurrency=given.concurrency,
        latency=given.latency,
        medians=medians,
        rounds=rounds,
    )


if __name__ == "__main__":
    main()
