"""What `payonce.once` adds to one call: the median over many, on a disk and on a file system without fsync's own time.

    python benchmarks/once.py [--calls 300] [--rounds 5] [--memory /dev/shm] [--out FILE.json]

Each round guards bodies that do nothing, with a key. Beside them stands what the disk alone takes for the same number of
durable writes (two a call: the intent before it, the result after it), since nothing that is durable can be faster than
that; and, in memory, as many plain SQLite statements in two transactions: the reference of the ratio, measured in turn
with the guarded calls of the same round.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from facts import save

import payonce

# Statements of one guarded call besides BEGIN and COMMIT: those of its intent, and of its result.
STATEMENTS = (9, 6)
_BODY = "x" * 300
_WARM = 20


def timed(calls: int, one: Callable[[int], None]) -> float:
    """The median in milliseconds, after some calls to warm up."""
    taken = []
    for k in range(calls + _WARM):
        start = time.perf_counter()
        one(k)
        taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken[_WARM:])


def guarded(folder: Path, calls: int) -> float:
    """Of each guarded call."""
    ledger = f"sqlite:{folder}/payonce.db"

    def one(k: int) -> None:
        money = payonce.Money("12.50", "USD")
        with payonce.once(ledger=ledger, batch="bench", item=f"r{k}", money=money, target=f"ch_{k}", key=True) as call:
            call.executed(f"re_{k}")

    return timed(calls, one)


def plain(folder: Path, calls: int) -> float:
    """Of as many plain inserts and updates, one row each, in two transactions a call."""
    database = sqlite3.connect(folder / "plain.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    tables = range(max(STATEMENTS))
    for table in tables:
        database.execute(f"CREATE TABLE t{table} (n INTEGER PRIMARY KEY, body TEXT)")

    def one(k: int) -> None:
        for begun, statements in enumerate(STATEMENTS):
            database.execute("BEGIN IMMEDIATE")
            for table in range(statements):
                if begun:
                    database.execute(f"UPDATE t{table} SET body = ? WHERE n = ?", (_BODY, k))
                else:
                    database.execute(f"INSERT INTO t{table} (n, body) VALUES (?, ?)", (k, _BODY))
            database.execute("COMMIT")

    found = timed(calls, one)
    database.close()
    return found


def fsyncs(folder: Path, calls: int) -> float:
    """Of two appends with fdatasync each, in a file beside."""
    with (folder / "plain").open("ab", buffering=0) as file:

        def one(k: int) -> None:
            for _ in range(2):
                file.write(b"x" * 4096)
                os.fdatasync(file.fileno())

        return timed(calls, one)


def measured(calls: int, memory: Path) -> dict[str, float]:
    """One round: everything in turn."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="payonce-bench-") as name:
        found["once_ms"] = guarded(Path(name), calls)
        found["two_fsyncs_ms"] = fsyncs(Path(name), calls)
    if memory.is_dir():
        with tempfile.TemporaryDirectory(prefix="payonce-bench-", dir=memory) as name:
            found["plain_without_fsync_ms"] = plain(Path(name), calls)
            found["once_without_fsync_ms"] = guarded(Path(name), calls)
    return found


def main() -> None:
    """One line a figure: the medians over the rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rounds = [measured(given.calls, given.memory) for _ in range(given.rounds)]
    medians = {name: statistics.median(found[name] for found in rounds) for name in rounds[0]}
    ratios = {}
    if "once_without_fsync_ms" in medians:
        ratios["once_without_fsync"] = [r["plain_without_fsync_ms"] / r["once_without_fsync_ms"] for r in rounds]
    for name, value in medians.items():
        print(f"{name:24}{value:8.3f}")
    for name, values in ratios.items():
        print(f"{name:24}{statistics.median(values):8.3f} of as many plain statements")
    save(given.out, "once", ratios=ratios, calls=given.calls, medians=medians, rounds=rounds)


if __name__ == "__main__":
    main()
