"""A real SQLite ledger with a small, eventful history, and hands that tamper with it as an operator could."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from payonce.core.commands import BatchCommand, Change, Command, Control, Intend, Landed
from payonce.core.events import leaf_hash
from payonce.core.model import SECOND_US, Actor, BatchSpec, Finding, NewItem, Request, Worker
from payonce.core.money import Money
from payonce.core.seal import Seal
from payonce.core.states import ItemEvent, Settlement
from payonce.ledger.connect import connect
from payonce.ledger.merkle import Head, mark_of, pack
from payonce.ledger.sqlite_trail import SqliteTrail
from payonce.ledger.store_reads import StoreLedger
from payonce.trail.verify import Verified, verify

BATCH = "refunds"
ACTOR = Actor(user="ops", host="desk", pid=7)


def new_item(n: int) -> NewItem:
    """Item ``it-N`` of N.00 USD with two fields of a person."""
    return NewItem(f"it-{n}", Money(f"{n}.00", "USD"), fields={"email": f"a{n}@example.com", "name": f"Zoë {n}"})


class Books:
    """One ledger file. ``clock`` moves a second with each transaction."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "payonce.db"
        self.marks = folder / "marks"
        self.now_us = 1_800_000_000 * SECOND_US
        self.ledger: StoreLedger = self.open(create=True)

    @property
    def url(self) -> str:
        """The ledger's address."""
        return f"sqlite:{self.path}"

    def open(self, *, create: bool = False) -> StoreLedger:
        """Opens it for writing."""
        return connect(self.url, create=create, clock=self._tick, marks=self.marks)

    def _tick(self) -> int:
        self.now_us += SECOND_US
        return self.now_us

    def seal(self, items: int, *, batch: str = BATCH) -> None:
        """Seals a batch of so many items."""
        new = [new_item(n) for n in range(1, items + 1)]
        seal = Seal()
        for item in new:
            seal.add(item)
        self.ledger.seal(BatchSpec(batch, "refund", "simulator"), new, seal=seal.hexdigest(), actor=ACTOR)

    def start(self, *, batch: str = BATCH) -> Worker:
        """A worker joins and the batch runs, with a budget."""
        limits = {"budget": {"USD": 10**14}, "attempts": 5}
        self.ledger.control(batch, Control(BatchCommand.CONFIGURE, limits=limits, reason="batch file"), actor=ACTOR)
        worker = self.ledger.join(batch, actor=ACTOR, lease_us=10**12)
        self.ledger.control(batch, Control(BatchCommand.START), actor=ACTOR, worker=worker)
        return worker

    def write(self, worker: Worker, commands: Iterable[Command]) -> None:
        """Commands that all land."""
        landed = self.ledger.write(worker, list(commands))
        assert set(landed) <= {Landed.LANDED}, set(landed)

    def run(self, items: int, *, batch: str = BATCH) -> None:
        """A sealed batch with some of everything that can happen to an item, to the end."""
        self.seal(items, batch=batch)
        worker = self.start(batch=batch)
        numbers = range(1, items + 1)
        self.write(worker, (intent(n) for n in numbers))
        self.write(worker, (self._outcome(n) for n in numbers))
        again = [n for n in numbers if n % 11 == 5]
        self.write(worker, (intent(n, 1) for n in again))
        self.write(worker, (commit(n) for n in again))
        self.write(worker, (resend(n) for n in numbers if n % 11 == 6))
        self.write(worker, (commit(n) for n in numbers if n % 11 == 6))
        self.ledger.control(batch, Control(BatchCommand.FINISH), actor=ACTOR, worker=worker)
        self.ledger.leave(worker)
        for n in numbers:
            if n % 11 == 4:
                decided = Change(n, ItemEvent.COMMIT, reference=f"found-{n}", billed=Money(f"{n}.00", "USD"))
                self.ledger.operate(batch, f"it-{n}", [decided], actor=ACTOR, reason="seen in the statement")

    def _outcome(self, n: int) -> Change:
        match n % 11:
            case 3:
                return Change(n, ItemEvent.REFUSE, code="card_closed", message="no", spent=1)
            case 4:
                finding = (Finding("doubt", f"it-{n}", {"why": "no look-up"}),)
                return Change(n, ItemEvent.UNDECIDED, code="no_rule", message="may have been", findings=finding)
            case 5:
                return Change(n, ItemEvent.NOT_EXECUTED, code="rate_limited", generation=1, rate_limited=1)
            case 6:
                return Change(n, ItemEvent.UNRESOLVED, code="timeout", seen=True, spent=1)
            case _:
                return commit(n)

    def reads(self) -> SqliteTrail:
        """What a check reads of it."""
        return SqliteTrail(self.path)

    def verify(self, **more: object) -> Verified:
        """A check of the whole trail."""
        reads = self.reads()
        try:
            return verify(reads, **more)  # type: ignore[arg-type]
        finally:
            reads.close()

    def close(self) -> None:
        """Closes the ledger, if it is open."""
        if hasattr(self, "ledger"):
            self.ledger.close()

    def tamper(self, *statements: str, script: Iterable[tuple[str, tuple[object, ...]]] = ()) -> None:
        """Does what somebody with the file can do: drops the guards and changes rows."""
        self.close()
        db = sqlite3.connect(self.path, isolation_level=None)
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement)
        for statement, parameters in script:
            db.execute(statement, parameters)
        db.close()


def reworded(old: str, new: str, *, where: str) -> str:
    """A statement that changes the text of some events as somebody would who reads them in the view ``trail``."""
    event = "(SELECT event FROM trail WHERE trail.seq = events.seq)"
    return f"UPDATE events SET body = replace({event}, '{old}', '{new}') WHERE {where}"


def intent(n: int, generation: int = 0) -> Intend:
    """A first call of a generation."""
    return _intend(n, ItemEvent.INTENT, generation)


def resend(n: int) -> Intend:
    """The same call once more."""
    return _intend(n, ItemEvent.RESEND, 0)


def _intend(n: int, event: ItemEvent, generation: int) -> Intend:
    request = Request("POST", "/v1/refunds", b'{"charge":"it-%d"}' % n)
    far = 2_000_000_000 * SECOND_US
    return Intend(n, event, generation, 0, f"key-{n}-{generation}", request, send_by_us=far, deadline_us=far)


def commit(n: int) -> Change:
    """Executed over the amount asked, or a cent more."""
    data = {"start": "2027-01-15T08:00:00.000000Z", "end": "2027-01-15T08:00:00.100000Z", "status": 200}
    return Change(
        n,
        ItemEvent.COMMIT,
        data=data,
        reference=f"re-{n}",
        billed=Money(f"{n}.00", "USD") if n % 7 else Money(f"{n}.01", "USD"),
        settlement=Settlement.PENDING,
        output=b'{"ok":true}' if n % 2 else None,
        kept={"status": "Zoë", "fee": 1.5, "tries": 2**60} if n % 3 else None,
    )


def rehash(path: Path) -> None:
    """What a malicious operator does after a change: all marks, kept hashes and the head are made to fit again."""
    db = sqlite3.connect(path, isolation_level=None)
    head = Head()
    db.execute("DELETE FROM nodes")
    for seq, body in db.execute("SELECT seq, event FROM trail ORDER BY seq").fetchall():
        leaf = leaf_hash(body.encode())
        db.execute("UPDATE events SET mark = ? WHERE seq = ?", (mark_of(leaf), seq))
        for node in head.append(leaf):
            db.execute("INSERT INTO nodes (level, idx, hash) VALUES (?, ?, ?)", (node.level, node.index, node.hash))
    db.execute("UPDATE head SET size = ?, last_leaf = ?, peaks = ?", (head.size, head.last_leaf, pack(head.peaks)))
    db.close()
