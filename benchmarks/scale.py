"""A batch of ten million items: what a restart, a status and a claim cost at its start, half-way and at its end.

    python benchmarks/scale.py [--items 10000000] [--folder DIR] [--out FILE.json]

The ledger is sealed by its own verb. What is then passed over without being measured is marked as committed in the
file itself, as the verbs would leave it but without a trail, which none of the measured steps reads; the stretches whose
claims are measured go through the verbs. A folder that is named keeps the sealed ledger. Each figure is taken in a new process, as a restart is: the time from opening the
ledger to the first items in hand, with the memory of that process at its highest. Counted is the clock's time without
the start of Python itself.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from facts import save

from payonce.core.commands import BatchCommand, Change, Control, Intend
from payonce.core.model import SECOND_US, Actor, BatchSpec, Item, PlainColumns, PlainItems, Request
from payonce.core.states import BatchState, ItemEvent, ItemState
from payonce.ledger.connect import connect
from payonce.ledger.store_reads import StoreLedger

ACTOR = Actor(user="bench", host="here", pid=1)
FAR = 4_000_000_000 * SECOND_US
LEASE_US = 30 * SECOND_US
GROUP = 4096
DATA = {"start": "2027-01-15T08:00:00.000000Z", "end": "2027-01-15T08:00:00.020000Z", "status": 200}
# Seconds and megabytes that a ledger of ten million items may take.
WANTED = {"resume": 1.0, "relaunch": 1.0, "status": 0.2, "peak_mb": 200.0}


def blocks(count: int) -> Iterator[PlainColumns]:
    """Items with an id of their own each, and a fixed amount."""
    for start in range(0, count, GROUP):
        ids = [f"RF-{n:08d}" for n in range(start, min(start + GROUP, count))]
        size = len(ids)
        yield PlainColumns(ids, ids, [1250] * size, ["USD"] * size, ["{}"] * size)


def open_ledger(folder: Path, *, create: bool = False) -> StoreLedger:
    """The ledger in a folder."""
    return connect(f"sqlite:{folder}/ledger.db", create=create, marks=folder)


def intent(item: Item) -> Intend:
    """A first call."""
    key = hashlib.sha256(item.id.encode()).hexdigest()
    return Intend(item.n, ItemEvent.INTENT, 0, 0, key, Request("POST", "/v1/refunds", item.id.encode()), FAR, FAR)


def commit(item: Item) -> Change:
    """Executed as asked."""
    return Change(item.n, ItemEvent.COMMIT, data=DATA, reference=f"re_{item.n:016d}", billed=item.money)


def advance(folder: Path, upto: int) -> float:
    """Commits items until so many are; the seconds that claiming them took, for each thousand items."""
    ledger = open_ledger(folder)
    done = ledger.status("bench").count(ItemState.COMMITTED)
    worker = ledger.join("bench", actor=ACTOR, lease_us=FAR)
    ledger.control("bench", Control(BatchCommand.START), actor=ACTOR, worker=worker)
    claiming = 0.0
    first = done
    while done < upto:
        start = time.process_time()
        items = ledger.planned(worker, limit=min(GROUP, upto - done))
        claiming += time.process_time() - start
        ledger.write(worker, [intent(item) for item in items])
        ledger.write(worker, [commit(item) for item in items])
        done += len(items)
    if done == ledger.status("bench").batch.items:
        ledger.control("bench", Control(BatchCommand.FINISH), actor=ACTOR, worker=worker)
    ledger.leave(worker)
    ledger.close()
    return claiming * 1000 / max(done - first, 1)


def build(folder: Path, items: int) -> None:
    """A sealed batch."""
    ledger = open_ledger(folder, create=True)
    spec = BatchSpec(id="bench", operation="refund", provider="simulator", targets=False)
    ledger.seal(spec, PlainItems(blocks(items)), seal="0" * 64, actor=ACTOR)
    ledger.close()


def pass_over(folder: Path, upto: int) -> None:
    """Items up to a number are committed, as far as rows and tallies say."""
    database = sqlite3.connect(folder / "ledger.db", isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    made = database.execute(
        "UPDATE items SET state = 2, attempts = 1, reference = printf('re_%016d', place & 4294967295), billed_minor = minor,"
        " billed_currency = currency WHERE state = 0 AND place <= (1 << 32) + ?",
        (upto,),
    ).rowcount
    move = "INSERT INTO tallies VALUES (1, ?, 'USD', ?, ?) ON CONFLICT DO UPDATE SET items = items + excluded.items, "
    for state, count in ((0, -made), (2, made)):
        database.execute(move + "minor = minor + excluded.minor", (state, count, count * 1250))
    database.execute("COMMIT")
    database.close()


def resume(folder: Path) -> None:
    """To the first items in hand: what a restart does before its first call."""
    ledger = open_ledger(folder)
    worker = ledger.join("bench", actor=ACTOR, lease_us=LEASE_US)
    ledger.control("bench", Control(BatchCommand.START), actor=ACTOR, worker=worker)
    assert not ledger.take_over(worker, limit=512)
    items = ledger.planned(worker, limit=512)
    assert items and all(item.state is ItemState.PLANNED for item in items)
    ledger.write(worker, [intent(items[0])])
    ledger.write(worker, [commit(items[0])])
    ledger.leave(worker)
    ledger.close()


def relaunch(folder: Path) -> None:
    """A finished batch is seen to be finished, and nothing of it is handed out."""
    ledger = open_ledger(folder)
    assert ledger.status("bench").batch.state is BatchState.FINISHED
    ledger.close()


def status(folder: Path) -> None:
    """Counts and money."""
    ledger = open_ledger(folder)
    found = ledger.status("bench")
    assert sum(tally.items for tally in found.tallies) == found.batch.items
    ledger.close()


def child(step: str, folder: Path, upto: int) -> None:
    """One step in this process: its seconds, what it found, and its memory at its highest."""
    start = time.perf_counter()
    found = 0.0
    match step:
        case "build":
            build(folder, upto)
        case "pass over":
            pass_over(folder, upto)
        case "advance":
            found = advance(folder, upto)
        case "resume":
            resume(folder)
        case "relaunch":
            relaunch(folder)
        case _:
            status(folder)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": time.perf_counter() - start, "found": found, "peak_mb": peak_mb}))


def told(step: str, folder: Path, upto: int = 0) -> dict[str, float]:
    """A step in a process of its own."""
    command = [sys.executable, __file__, "--child", step, "--folder", str(folder), "--items", str(upto)]
    made: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    shown = f", {1000 * made['found']:.1f} us of processor to claim an item" if made["found"] else ""
    print(f"{step:>9} {upto or '':>9}: {made['seconds']:.2f} s, {made['peak_mb']:.0f} MB{shown}", flush=True)
    return made


def measure(folder: Path, items: int) -> dict[str, Any]:
    """All steps in order."""
    if not (folder / "ledger.db").exists():
        told("build", folder, items)
    stretch = min(40_000, items // 10)
    at_start = told("advance", folder, stretch)
    told("pass over", folder, items // 2)
    steps = {"resume": told("resume", folder), "status": told("status", folder)}
    told("pass over", folder, items * 9 // 10)
    at_end = told("advance", folder, items * 9 // 10 + stretch)
    told("pass over", folder, items - 1)
    told("advance", folder, items)
    steps["relaunch"] = told("relaunch", folder)
    return {
        "items": items,
        "seconds": {name: made["seconds"] for name, made in steps.items()},
        "peak_mb": max(made["peak_mb"] for made in (*steps.values(), at_start, at_end)),
        "claim_ratio": at_end["found"] / at_start["found"] if at_start["found"] else None,
    }


def main() -> None:
    """One line a step, then what does not hold; exit code 1 for any."""
    parser = argparse.ArgumentParser(description="A batch of ten million items.")
    parser.add_argument("--items", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child:
        child(options.child, options.folder, options.items)
        return
    with tempfile.TemporaryDirectory(prefix="payonce-bench-") as made:
        folder = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        found = measure(folder, options.items)
    print(json.dumps(found))
    save(options.out, "scale", **found)
    late = [name for name, seconds in found["seconds"].items() if seconds > WANTED[name]]
    late += ["memory"] if found["peak_mb"] > WANTED["peak_mb"] else []
    late += ["claim speed"] if (found["claim_ratio"] or 1) > 1.1 else []
    if late:
        raise SystemExit(f"not held: {', '.join(late)}")


if __name__ == "__main__":
    main()
