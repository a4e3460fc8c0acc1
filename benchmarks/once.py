"""What `payonce.once` adds to one call: the median over many, on a disk and on a file system without fsync's own time.

    python benchmarks/once.py [--calls 300] [--memory /dev/shm] [--out FILE.json]

Each round guards bodies that do nothing. Beside them stands what the disk alone takes for the same number of durable
writes (two a call: the intent before it, the result after it), since nothing that is durable can be faster than that.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import payonce


def guarded(folder: Path, calls: int) -> list[float]:
    """Milliseconds of each guarded call."""
    ledger = f"sqlite:{folder}/payonce.db"
    taken = []
    for k in range(calls + 20):
        start = time.perf_counter()
        money = payonce.Money("12.50", "USD")
        with payonce.once(ledger=ledger, batch="bench", item=f"r{k}", money=money, target=f"ch_{k}") as call:
            call.executed(f"re_{k}")
        taken.append((time.perf_counter() - start) * 1000)
    return taken[20:]


def fsyncs(folder: Path, calls: int) -> list[float]:
    """Milliseconds of two appends with fdatasync each, in a file beside."""
    taken = []
    with (folder / "plain").open("ab", buffering=0) as file:
        for _ in range(calls):
            start = time.perf_counter()
            for _ in range(2):
                file.write(b"x" * 4096)
                os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - start) * 1000)
    return taken


def main() -> None:
    """Prints the medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="payonce-bench-") as disk:
        found["once_ms"] = statistics.median(guarded(Path(disk), given.calls))
        found["two_fsyncs_ms"] = statistics.median(fsyncs(Path(disk), given.calls))
    if given.memory.is_dir():
        with tempfile.TemporaryDirectory(prefix="payonce-bench-", dir=given.memory) as memory:
            found["once_without_fsync_ms"] = statistics.median(guarded(Path(memory), given.calls))
    for name, value in found.items():
        print(f"{name:24}{value:8.2f}")
    if given.out:
        given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
