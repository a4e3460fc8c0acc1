"""The simulated store: the real verbs and rules of a ledger over rows that are kept as cheaply as possible.

Rules, desk, effects and transactions are those of every store. What is left out is what a store does for durability
only: rows are kept by reference instead of being copied, and unless ``trail`` is asked for the events are counted but
neither encoded nor hashed. A transaction is therefore never rolled back half-way: a simulated fault comes before it
began, or after it is over. Outlives every simulated process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from payonce.core.model import Actor, Batch, Finding, OpenIntent, Status
from payonce.core.states import ItemState
from payonce.ledger import effects, rules
from payonce.ledger.desk import Desk
from payonce.ledger.forms import Form
from payonce.ledger.log import Log
from payonce.ledger.memory import MemoryLedger, MemoryTables
from payonce.ledger.merkle import Head
from payonce.ledger.rows import BatchRow, ItemRow, OpenRow, Saved, Tallies, WorkerRow, as_batch, as_open, load
from payonce.ledger.store import StoreBase, no_such_batch
from payonce.ledger.store_reads import StoreLedger, as_tallies


class _Uncounted(Log):
    """Events that get their number and time, and are then forgotten."""

    __slots__ = ()

    def __init__(self, head: Head, *, clock_us: int) -> None:
        self.head = head
        self.now_us = max(clock_us, head.last_us)
        self.at = ""
        self.entries, self.nodes, self.payloads = [], [], []
        self._said, self._texts = [], []

    def emit(
        self,
        body: dict[str, Any],
        *,
        batch: int | None = None,
        n: int | None = None,
        payloads: Mapping[str, bytes] | None = None,
    ) -> int:
        """See Log."""
        head = self.head
        head.size += 1
        head.last_us = self.now_us
        return head.size

    def say(self, form: Form, values: tuple[Any, ...], texts: Sequence[str], batch: int, n: int) -> None:
        """See Log."""
        self.head.size += 1
        self.head.last_us = self.now_us


@contextmanager
def unsaid() -> Iterator[None]:
    """Events are counted, and not even put into words, for as long as the block lasts: what an event says decides nothing.
    Worlds with a trail do without."""

    def of_intent(desk: Desk, *_: object) -> None:
        desk.log.emit({})

    def of_change(desk: Desk, *_: object, **__: object) -> None:
        desk.log.emit({})

    intent, change = rules._emit_intent, effects._emit
    rules._emit_intent, effects._emit = of_intent, of_change  # type: ignore[assignment]
    try:
        yield
    finally:
        rules._emit_intent, effects._emit = intent, change


class LeanTables(MemoryTables):
    """The rows in dictionaries, by reference."""

    def __init__(self, ledger_id: str) -> None:
        super().__init__(ledger_id)
        self._claimed: set[str] = set()

    def begin(self) -> Head:
        """See ledger.tables."""
        return self._head

    def commit(self) -> None:
        """See ledger.tables."""

    def rollback(self) -> None:
        """See ledger.tables. Whatever ends a transaction here was raised before anything was changed."""

    def append(self, log: Log) -> None:
        """See ledger.tables."""
        head = self._head
        super().append(log)
        self._head = head  # the log has appended to the head itself

    def _put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        table[key] = value

    def _drop(self, table: dict[Any, Any], key: Any) -> None:
        del table[key]

    def batch(self, batch: str) -> BatchRow | None:
        """See ledger.tables."""
        return next((row for row in self._batches.values() if row.id == batch), None)

    def batches(self, batch: str | None) -> list[BatchRow]:
        """See ledger.tables."""
        return [row for row in reversed(self._batches.values()) if batch is None or row.id == batch]

    def save_batch(self, row: BatchRow) -> None:
        """See ledger.tables."""
        self._batches[row.number] = row

    def save_tallies(self, number: int, changed: Tallies) -> None:
        """See ledger.tables."""
        self._tallies[number].update(changed)

    def rows(self, number: int, ns: Sequence[int]) -> list[ItemRow]:
        """See ledger.tables."""
        table = self._items[number]
        return [table[n] for n in ns if n in table]

    def planned_after(self, number: int, after_n: int, limit: int) -> list[ItemRow]:
        """See ledger.tables."""
        table, found = self._items[number], []
        for n in range(after_n + 1, len(table) + 1):
            row = table[n]
            if row.state is ItemState.PLANNED:
                found.append(row)
                if len(found) == limit:
                    break
        return found

    def opens(self, number: int, ns: Sequence[int]) -> list[OpenRow]:
        """See ledger.tables."""
        table = self._opens[number]
        return [table[n] for n in ns if n in table]

    def open_intents(self, number: int, ns: Sequence[int]) -> list[OpenIntent]:
        """See ledger.tables."""
        table, items = self._opens[number], self._items[number]
        return [as_open(table[n], items[n], self._requests[number, n]) for n in sorted(set(ns)) if n in table]

    def save(self, number: int, saved: Saved) -> None:
        """See ledger.tables."""
        items, opens = self._items[number], self._opens[number]
        for item in saved.begun:
            items[item.n] = item
        for item in saved.moved():
            items[item.n] = item
            if item.state is ItemState.COMMITTED and item.reference:
                self._claimed.add(item.reference)
        for n in saved.closed:
            del opens[n]
            del self._requests[number, n]
        for held in saved.opened + saved.changed:
            if held.request is not None:
                self._requests[number, held.n] = held.request
            opens[held.n] = held
        for found in saved.findings:
            finding = Finding(found.kind, found.item, load(found.data), id=len(self._findings) + 1)
            self._findings.append((number, finding))

    def worker(self, fence: int) -> WorkerRow | None:
        """See ledger.tables."""
        return self._workers.get(fence)

    def workers(self, number: int) -> list[WorkerRow]:
        """See ledger.tables."""
        return [row for row in self._workers.values() if row.batch == number and row.left_us is None]

    def claimed(self, references: Sequence[str]) -> frozenset[str]:
        """See ledger.tables."""
        return frozenset(self._claimed.intersection(references))


class _Transaction:
    """The transaction of a SimStore: the same steps as any store's, in an object that is used again and again."""

    def __init__(self, store: SimStore) -> None:
        self._store = store
        self._depth = 0

    def __enter__(self) -> Log:
        store = self._store
        if store._log is not None:
            self._depth += 1
            return store._log
        store._log = store._log_type(store._tables.begin(), clock_us=store._clock())
        return store._log

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._depth:
            self._depth -= 1
            return
        store = self._store
        try:
            if kind is None:
                assert store._log is not None
                for desk in store._active.values():
                    desk.finish()
                store._log.settle()
                if store._log.entries:
                    store._spill(store._log)
            else:
                store._desks = {}
        finally:
            store._log = None
            store._active = {}


class SimStore(MemoryLedger):
    """A ledger in memory for millions of simulated calls. ``trail``: with every event hashed, as in a real ledger."""

    def __init__(
        self,
        *,
        clock: Callable[[], int],
        is_alive: Callable[[Actor], bool | None],
        steady: Callable[[Actor], int | None],
        trail: bool,
    ) -> None:
        tables = self._lean = LeanTables("simulated")
        self._known: tuple[Any, Any] = (None, None)
        self.caller: Actor | None = None  # whose process is at work in it now
        self._log_type: type[Log] = Log if trail else _Uncounted
        self._one_transaction = _Transaction(self)
        StoreBase.__init__(self, tables, tables, clock=clock, is_alive=is_alive, steady=steady)

    def _transaction(self) -> Any:
        return self._one_transaction

    def batches(self, batch: str | None = None) -> tuple[Batch, ...]:
        """See ledger.protocol."""
        return tuple([self._batch(row) for row in self._lean.batches(batch)])

    def status(self, batch: str) -> Status:
        """See ledger.protocol."""
        row = self._lean.batch(batch)
        if row is None:
            raise no_such_batch(batch)
        now_us = self._clock()
        return Status(
            batch=self._batch(row),
            tallies=as_tallies(self._lean._tallies[row.number]),
            calls_sent=row.sent,
            lookups=row.lookups,
            rate_limited=row.rate_limited,
            live_workers=sum(self._is_living(worker, now_us=now_us) for worker in self._lean.workers(row.number)),
        )

    def _batch(self, row: BatchRow) -> Batch:
        """The public value, made anew only where something of it has changed: every process looks four times a second."""
        state = (row.state, row.reason, row.reason_code, row.hold, row.limits, row.started_us, row.ended_us, row.items)
        if state != self._known[0]:
            self._known = (state, as_batch(row))
        batch: Batch = self._known[1]
        return batch

    def check(self) -> tuple[str, ...]:
        """See ledger.protocol. Without a trail, everything but the trail."""
        faults = StoreLedger.check(self)
        if self._log_type is Log:
            return faults
        return tuple(fault for fault in faults if "trail" not in fault)

    def rows(self) -> list[ItemRow]:
        """Every item's row, in order."""
        return [row for _, row in sorted(self._lean._items[1].items())]

    def findings_about(self, batch: str) -> Collection[tuple[str, str | None]]:
        """The discrepancies of a batch as pairs of class and item."""
        return {(finding.kind, finding.item) for finding in self.findings(batch)}
