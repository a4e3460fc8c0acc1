"""The trail at scale: verify a million events, prove one item among ten million, and what appending costs.

    python benchmarks/trail.py [--verify 1000000] [--prove 10000000] [--folder DIR]

Both ledgers are kept in the folder, so that a second round measures at once. The
processor's time is shown beside the clock's, since the machine may be shared.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from facts import save

from payonce.core.commands import BatchCommand, Change, Control, Intend
from payonce.core.events import iso, leaf_hash
from payonce.core.model import SECOND_US, Actor, BatchSpec, NewItem, Request
from payonce.core.money import Money
from payonce.core.seal import Seal
from payonce.core.states import ItemEvent
from payonce.ledger.connect import connect, connect_trail
from payonce.ledger.merkle import Head, mark_of, pack, unpack
from payonce.ledger.store_reads import StoreLedger
from payonce.trail import proof
from payonce.trail.checkpoint import Checkpoint, origin_of, sign
from payonce.trail.keys import new_key
from payonce.trail.verify import verify

ACTOR = Actor(user="bench", host="here", pid=1)
DATA = {
    "start": "2027-01-15T08:00:00.000000Z",
    "end": "2027-01-15T08:00:00.020000Z",
    "status": 200,
    "response": "ab" * 32,
    "request_id": "req_0123456789",
}
FAR = 4_000_000_000 * SECOND_US


def item(n: int) -> NewItem:
    """One refund."""
    return NewItem(
        f"RR-{n:08d}", Money.of_minor(100 + n % 9_000, "USD"), target=f"ch_{n:08d}", fields={"order": str(n)}
    )


def seal(ledger: StoreLedger, items: int) -> None:
    """A sealed batch."""
    digest = Seal()
    for n in range(1, items + 1):
        digest.add(item(n))
    spec = BatchSpec("bench", "refund", "simulator", targets=True)
    new: Iterator[NewItem] = (item(n) for n in range(1, items + 1))
    ledger.seal(spec, new, seal=digest.hexdigest(), actor=ACTOR)


def intent(n: int) -> Intend:
    """A first call."""
    key = hashlib.sha256(str(n).encode()).hexdigest()
    request = Request("POST", "/v1/refunds", b'{"charge":"ch_%08d"}' % n)
    return Intend(n, ItemEvent.INTENT, 0, 0, key, request, send_by_us=FAR, deadline_us=FAR)


def commit(n: int) -> Change:
    """Executed as asked."""
    return Change(n, ItemEvent.COMMIT, data=DATA, reference=f"re_{n:016d}", billed=item(n).money)


def full_ledger(path: Path, *, events: int) -> None:
    """A finished batch of half as many items, by the ledger's own verbs."""
    if path.exists():
        return
    ledger = connect(f"sqlite:{path}", create=True, marks=path.parent / "marks")
    items = events // 2
    seal(ledger, items)
    worker = ledger.join("bench", actor=ACTOR, lease_us=FAR)
    ledger.control("bench", Control(BatchCommand.START), actor=ACTOR, worker=worker)
    for first in range(1, items + 1, 1000):
        numbers = range(first, min(first + 1000, items + 1))
        ledger.write(worker, [intent(n) for n in numbers])
        ledger.write(worker, [commit(n) for n in numbers])
    ledger.control("bench", Control(BatchCommand.FINISH), actor=ACTOR, worker=worker)
    ledger.close()


def long_ledger(path: Path, *, events: int) -> None:
    """A batch of three items with very many other events before and behind its own."""
    if path.exists():
        return
    url, marks = f"sqlite:{path}", path.parent / "marks"
    connect(url, create=True, marks=marks).close()
    fill(path, events // 2)
    ledger = connect(url, create=False, marks=marks)
    seal(ledger, 3)
    worker = ledger.join("bench", actor=ACTOR, lease_us=FAR)
    ledger.control("bench", Control(BatchCommand.START), actor=ACTOR, worker=worker)
    ledger.write(worker, [intent(n) for n in (1, 2, 3)])
    ledger.write(worker, [commit(n) for n in (1, 2, 3)])
    ledger.leave(worker)
    ledger.close()
    fill(path, events - events // 2)


def fill(path: Path, events: int) -> None:
    """Small notes, written straight into the tables: the ledger's own way would take most of an hour."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    size, last_us, last_leaf, peaks = db.execute("SELECT size, last_us, last_leaf, peaks FROM head").fetchone()
    head = Head(size, unpack(peaks), last_leaf, last_us)
    at = iso(last_us)
    for first in range(size + 1, size + events + 1, 200_000):
        rows, nodes = [], []
        for seq in range(first, min(first + 200_000, size + events + 1)):
            body = f'{{"at":"{at}","code":"bench","seq":{seq},"type":"note"}}'
            leaf = leaf_hash(body.encode())
            rows.append((seq, None, body, mark_of(leaf)))
            nodes += [(node.level, node.index, node.hash) for node in head.append(leaf)]
        db.execute("BEGIN")
        db.executemany("INSERT INTO events (seq, place, body, mark) VALUES (?, ?, ?, ?)", rows)
        db.executemany("INSERT INTO nodes (level, idx, hash) VALUES (?, ?, ?)", nodes)
        db.execute("UPDATE head SET size = ?, last_leaf = ?, peaks = ?", (head.size, head.last_leaf, pack(head.peaks)))
        db.execute("COMMIT")
    db.close()


def measured(what: str, work: Callable[[], object]) -> dict[str, object]:
    """Runs something and prints both times."""
    cpu, wall = _cpu(), time.perf_counter()
    said = work()
    took, used = time.perf_counter() - wall, _cpu() - cpu
    print(f"{what:<44} {took:8.3f} s   {used:8.3f} s of processor   {said}", flush=True)
    return {"what": what, "seconds": round(took, 3), "cpu_s": round(used, 3), "said": str(said)}


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def verified(path: Path) -> str:
    """The whole check, as the command does it."""
    reads = connect_trail(f"sqlite:{path}")
    found = verify(reads, url=f"sqlite:{path}")
    reads.close()
    assert found.ok, found.faults[:3]
    return f"{found.events} events, {found.items} items"


def proven(path: Path) -> str:
    """One proof, from opening the ledger to the document."""
    key = new_key("payonce/bench")
    reads = connect_trail(f"sqlite:{path}")
    with reads.snapshot():
        head = reads.head()
        signed = sign(Checkpoint(origin_of(reads.ledger_id()), head.size, head.root()), [key])
        number = reads.batches()[0].number
        n = reads.number_of(number, item(2).id)
        assert n is not None
        document = proof.prove(reads, number=number, batch="bench", n=n, item=item(2).id, signed=signed)
    reads.close()
    return f"{len(document['events'])} events of {head.size}"


def share_of_hashing(folder: Path, *, events: int = 40_000) -> str:
    """What leaf hashes, marks and the tree take of the processor's time of writing events, without any network."""
    began = time.process_time()
    full_ledger(folder / "append.db", events=events)
    whole = time.process_time() - began
    reads = connect_trail(f"sqlite:{folder / 'append.db'}")
    bodies = [body for _, body in reads.bodies(1, events)]
    reads.close()
    began, head = time.process_time(), Head()
    for body in bodies:
        leaf = leaf_hash(body)
        mark_of(leaf)
        head.append(leaf)
    return f"{(time.process_time() - began) / whole:.1%} of the processor's time of writing {events} events"


def main() -> None:
    """Builds what is missing and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verify", type=int, default=1_000_000, help="events of the ledger that is verified")
    parser.add_argument("--prove", type=int, default=10_000_000, help="events of the ledger that one item is proven in")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "payonce-bench-trail")
    chosen = parser.parse_args()
    chosen.folder.mkdir(exist_ok=True)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as scratch:
        steps = [measured("the trail's share of appending", lambda: share_of_hashing(Path(scratch)))]
    if chosen.verify:
        path = chosen.folder / f"full-{chosen.verify}.db"
        measured(f"make a ledger of {chosen.verify} events", lambda: full_ledger(path, events=chosen.verify) or "")
        steps.append(measured(f"verify {chosen.verify} events", lambda: verified(path)))
    if chosen.prove:
        path = chosen.folder / f"long-{chosen.prove}.db"
        measured(f"make a ledger of {chosen.prove} events", lambda: long_ledger(path, events=chosen.prove) or "")
        prove = f"prove one item of {chosen.prove} events"
        steps += [measured(prove, lambda: proven(path)) for _ in range(3)]
    save(chosen.out, "trail", verify=chosen.verify, prove=chosen.prove, steps=steps)


if __name__ == "__main__":
    main()
