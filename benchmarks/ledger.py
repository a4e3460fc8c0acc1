"""The ledger alone: items a second against plain SQLite inserts of two rows an item, and bytes an item on disk.

    python benchmarks/ledger.py [--items 20000] [--group 64] [--rounds 5] [--out FILE.json]

An item is claimed, intended and committed through the verbs that the engine uses, each group of intents and each group
of commits one transaction that is fsynced, trail entries included. The plain side inserts one row an intent and one a
commit, of about as many bytes as an event has, into one table in the same groups, fsynced as well. Both run in turn, so
that a machine's changing speed meets both; the ratio is taken within a round, and its median is what counts.
"""

from __future__ import annotations

import argparse
import hashlib
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from facts import save

from payonce.core.commands import BatchCommand, Change, Control, Intend
from payonce.core.model import SECOND_US, Actor, BatchSpec, Item, NewItem, Request
from payonce.core.money import Money
from payonce.core.outcome import Executed, Reply
from payonce.core.states import ItemEvent, ItemState
from payonce.core.verdict import Commit
from payonce.engine.changes import change_for, evidence_of_reply
from payonce.ledger.connect import connect

ACTOR = Actor(user="bench", host="here", pid=1)
BATCH = "refunds-2026-11-east"  # every event names its batch: as long as people make them
FAR = 4_000_000_000 * SECOND_US
WANTED_RATIO, WANTED_BYTES = 0.5, 900
_EVENT = "x" * 330
_CHUNK = 512
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Side:
    """What one side took: seconds, processor seconds, and bytes on disk."""

    seconds: float
    cpu_s: float
    size: int


class Watch:
    """Adds up what the calls into the ledger take, and nothing of what is made for them."""

    def __init__(self) -> None:
        self.seconds = self.cpu_s = 0.0

    def over(self, call: Callable[[], T]) -> T:
        """Does it."""
        start, cpu = time.perf_counter(), time.process_time()
        done = call()
        self.seconds += time.perf_counter() - start
        self.cpu_s += time.process_time() - cpu
        return done


def new_items(count: int) -> Iterator[NewItem]:
    """Refunds with an id and a charge of their own."""
    for n in range(count):
        fields = {"reason": "requested_by_customer"}
        yield NewItem(f"RF-{n:08d}", Money.of_minor(100 + n % 9_000, "USD"), target=f"ch_3N{n:016x}", fields=fields)


def intent(item: Item) -> Intend:
    """The first call of an item, as the engine writes it down."""
    key = hashlib.sha256(item.id.encode()).hexdigest()
    assert item.money is not None
    body = f"charge={item.target}&amount={item.money.minor}&metadata[payonce_item]={item.id}"
    request = Request("POST", "/v1/refunds", body.encode(), (("Content-Type", "application/x-www-form-urlencoded"),))
    return Intend(item.n, ItemEvent.INTENT, 0, 0, key, request, send_by_us=FAR, deadline_us=FAR)


def commit(item: Item) -> Change:
    """Executed as asked, as the engine writes it down."""
    executed = Executed(f"re_3N{item.n:020x}", item.money)
    now_us = time.time_ns() // 1000
    reply = Reply(
        executed,
        started_us=now_us - 20_000,
        ended_us=now_us,
        status=200,
        response=item.id.encode(),
        request_id=f"req_{item.n:012d}",
    )
    return change_for(Commit(executed), item=item, data=evidence_of_reply(reply), now_us=now_us)


def safe(folder: Path, count: int, group: int) -> Side:
    """Claims, intents and commits through the ledger's own verbs."""
    path = folder / "ledger.db"
    ledger = connect(f"sqlite:{path}", create=True, marks=folder)
    spec = BatchSpec(id=BATCH, operation="refund", provider="simulator", targets=True)
    ledger.seal(spec, new_items(count), seal="0" * 64, actor=ACTOR)
    worker = ledger.join(BATCH, actor=ACTOR, lease_us=FAR)
    ledger.control(BATCH, Control(BatchCommand.START), actor=ACTOR, worker=worker)
    watch = Watch()
    while claimed := watch.over(lambda: ledger.planned(worker, limit=_CHUNK)):
        for first in range(0, len(claimed), group):
            items = claimed[first : first + group]
            for made in ([intent(item) for item in items], [commit(item) for item in items]):
                watch.over(lambda made=made: ledger.write(worker, made))
    assert ledger.status(BATCH).count(ItemState.COMMITTED) == count
    ledger.close()
    return Side(watch.seconds, watch.cpu_s, path.stat().st_size)


def plain(folder: Path, count: int, group: int) -> Side:
    """A table and two rows an item."""
    path = folder / "plain.db"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE log (seq INTEGER PRIMARY KEY, item TEXT, body TEXT)")
    start, cpu = time.perf_counter(), time.process_time()
    for first in range(0, count, group):
        rows = [(f"RF-{n:08d}", _EVENT) for n in range(first, min(first + group, count))]
        for _ in ("intent", "commit"):
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT INTO log (item, body) VALUES (?, ?)", rows)
            database.execute("COMMIT")
    took = time.perf_counter() - start, time.process_time() - cpu
    database.close()
    return Side(*took, path.stat().st_size)


def main() -> None:
    """One line a round, then the medians; exit code 1 where they are not what is wanted."""
    parser = argparse.ArgumentParser(description="The ledger alone against plain inserts.")
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--group", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rounds: list[tuple[Side, Side]] = []
    for number in range(1, options.rounds + 1):
        with tempfile.TemporaryDirectory(prefix="payonce-bench-") as made:
            bare = plain(Path(made), options.items, options.group)
            ours = safe(Path(made), options.items, options.group)
        rounds.append((bare, ours))
        rates = f"plain {options.items / bare.seconds:,.0f}/s, payonce {options.items / ours.seconds:,.0f}/s"
        cpu = (
            f"{1e6 * bare.cpu_s / options.items:.0f} and {1e6 * ours.cpu_s / options.items:.0f} us of processor an item"
        )
        print(f"round {number}: {rates}, {cpu}, ratio {bare.seconds / ours.seconds:.2f}")
    ratio = statistics.median(bare.seconds / ours.seconds for bare, ours in rounds)
    size = rounds[0][1].size / options.items
    print(f"median ratio {ratio:.2f} (wanted {WANTED_RATIO}), {size:.0f} bytes an item (wanted at most {WANTED_BYTES})")
    save(
        options.out,
        "ledger",
        ratios={"ledger_alone": [bare.seconds / ours.seconds for bare, ours in rounds]},
        items=options.items,
        group=options.group,
        bytes_per_item=size,
        payonce_per_s=statistics.median(options.items / ours.seconds for _, ours in rounds),
        plain_per_s=statistics.median(options.items / bare.seconds for bare, _ in rounds),
        rounds=[{"plain": asdict(bare), "payonce": asdict(ours)} for bare, ours in rounds],
    )
    raise SystemExit(ratio < WANTED_RATIO or size > WANTED_BYTES)


if __name__ == "__main__":
    main()
