"""The reference ledger: every row in plain dictionaries, obviously right, gone with the process.

It shares the rules with all stores and is what the others are compared with. Each change of a transaction remembers
what it replaced, so an error half-way leaves nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from payonce.core.errors import UsageError
from payonce.core.model import Event, Finding, Item, OpenIntent, Request
from payonce.core.overlap import ACTING, Acting
from payonce.core.states import ItemState
from payonce.ledger.actors import is_alive as process_is_alive
from payonce.ledger.actors import wall_clock
from payonce.ledger.audit import check_batch, check_trail
from payonce.ledger.log import Log
from payonce.ledger.merkle import Head
from payonce.ledger.newcomers import Block
from payonce.ledger.protocol import LedgerInfo, Output
from payonce.ledger.rows import (
    UNKNOWN,
    BatchRow,
    ItemRow,
    OpenRow,
    OutputRow,
    PayloadRow,
    Saved,
    Tallies,
    WorkerRow,
    as_item,
    as_open,
    copy_of,
    load,
    money,
)
from payonce.ledger.store import Clock, IsAlive
from payonce.ledger.store_reads import StoreLedger
from payonce.ledger.tables import Standing

_GONE: Final = object()


class MemoryTables:
    """The rows, as ``ledger.tables`` asks for them: both the transaction's side and the reading side."""

    def __init__(self, ledger_id: str) -> None:
        self._id = ledger_id
        self._head = Head()
        self._events: list[Event] = []
        self._findings: list[tuple[int, Finding]] = []
        self._batches: dict[int, BatchRow] = {}
        self._tallies: dict[int, Tallies] = {}
        self._items: dict[int, dict[int, ItemRow]] = {}
        self._opens: dict[int, dict[int, OpenRow]] = {}
        self._requests: dict[tuple[int, int], Request] = {}
        self._outputs: dict[tuple[int, int], OutputRow] = {}
        self._workers: dict[int, WorkerRow] = {}
        self._meta: dict[str, str] = {"id": ledger_id}
        self._payloads: dict[tuple[int, str], PayloadRow] = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []
        self._before: tuple[Head, int, int] = (Head(), 0, 0)

    # transactions

    def begin(self) -> Head:
        """See ledger.tables."""
        self._undo = []
        self._before = (self._head, len(self._events), len(self._findings))
        return self._head.copy()

    def unchanged(self) -> bool:
        """See ledger.tables. There is nobody else."""
        return True

    def append(self, log: Log) -> None:
        """See ledger.tables."""
        for p in log.payloads:
            self._put(self._payloads, (p.seq, p.kind), p)
        self._events += [Event(e.seq, self._batch_id(e.batch), e.n, e.body) for e in log.entries]
        self._head = log.head.copy()

    def commit(self) -> None:
        """See ledger.tables."""
        self._undo = []

    def rollback(self) -> None:
        """See ledger.tables."""
        for table, key, old in reversed(self._undo):
            if old is _GONE:
                table.pop(key, None)
            else:
                table[key] = old
        self._undo = []
        self._head, events, findings = self._before
        del self._events[events:]
        del self._findings[findings:]

    def _put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self._undo.append((table, key, table.get(key, _GONE)))
        table[key] = value

    def _drop(self, table: dict[Any, Any], key: Any) -> None:
        self._undo.append((table, key, table.pop(key)))

    # batches and items

    def batch(self, batch: str) -> BatchRow | None:
        """See ledger.tables."""
        return next((copy_of(row) for row in self._batches.values() if row.id == batch), None)

    def extents(self) -> dict[int, int]:
        """See ledger.tables."""
        return {number: row.items for number, row in self._batches.items()}

    def add_batch(self, row: BatchRow) -> int:
        """See ledger.tables."""
        number = len(self._batches) + 1
        self._put(self._batches, number, copy_of(row))
        for table in (self._items, self._opens, self._tallies):
            self._put(table, number, {})
        return number

    def add_items(self, number: int, blocks: Iterable[Block]) -> None:
        """See ledger.tables."""
        ids = {row.id for row in self._items[number].values()}
        for row in (row for block in blocks for row in block.rows()):
            if row.id in ids:
                raise duplicate_item(row.id)
            ids.add(row.id)
            self._put(self._items[number], row.n, row)

    def save_batch(self, row: BatchRow) -> None:
        """See ledger.tables."""
        self._put(self._batches, row.number, copy_of(row))

    def tallies(self, number: int) -> Tallies:
        """See ledger.tables."""
        return {key: list(tally) for key, tally in self._tallies[number].items()}

    def save_tallies(self, number: int, changed: Tallies) -> None:
        """See ledger.tables."""
        for key, tally in changed.items():
            self._put(self._tallies[number], key, list(tally))

    def rows(self, number: int, ns: Sequence[int]) -> list[ItemRow]:
        """See ledger.tables."""
        table = self._items[number]
        return [copy_of(table[n]) for n in ns if n in table]

    def number_of(self, number: int, item: str) -> int | None:
        """See ledger.tables."""
        return next((row.n for row in self._items[number].values() if row.id == item), None)

    def planned_after(self, number: int, after_n: int, limit: int) -> list[ItemRow]:
        """See ledger.tables."""
        table = self._items[number]
        found: list[ItemRow] = []
        for n in range(after_n + 1, len(table) + 1):
            if table[n].state is ItemState.PLANNED:
                found.append(copy_of(table[n]))
                if len(found) == limit:
                    break
        return found

    # open intents

    def opens(self, number: int, ns: Sequence[int]) -> list[OpenRow]:
        """See ledger.tables."""
        table = self._opens[number]
        return [copy_of(table[n]) for n in ns if n in table]

    def open_intents(self, number: int, ns: Sequence[int]) -> list[OpenIntent]:
        """See ledger.tables."""
        table, items = self._opens[number], self._items[number]
        return [as_open(table[n], items[n], self._requests[number, n]) for n in sorted(set(ns)) if n in table]

    def holders(self, number: int, targets: Sequence[str]) -> dict[str, int]:
        """See ledger.tables."""
        return {held.target: n for n, held in self._opens[number].items() if held.target and held.target in targets}

    def orphans(self, number: int, living: Collection[int], limit: int) -> list[int]:
        """See ledger.tables."""
        held = self._opens[number].values()
        return sorted(o.n for o in held if not o.flags & UNKNOWN and o.fence not in living)[:limit]

    def save(self, number: int, saved: Saved) -> None:
        """See ledger.tables."""
        for item in saved.begun + saved.items:
            self._put(self._items[number], item.n, copy_of(item))
        for n in saved.closed:
            self._drop(self._opens[number], n)
            self._drop(self._requests, (number, n))
        for held in saved.opened + saved.changed:
            if held.request is not None:
                self._put(self._requests, (number, held.n), held.request)
            stored = copy_of(held)
            stored.request = None
            self._put(self._opens[number], held.n, stored)
        for output in saved.outputs:
            self._put(self._outputs, (number, output.n), output)
        self.add_findings(number, saved)

    def add_findings(self, number: int, saved: Saved) -> None:
        """Stores findings, numbered on."""
        for found in saved.findings:
            finding = Finding(
                found.kind, found.item, load(found.data), id=len(self._findings) + 1, opened_us=found.opened_us
            )
            self._findings.append((number, finding))

    def erase(self, number: int, n: int, *, fields: str, seq: int) -> None:
        """See ledger.tables."""
        row = copy_of(self._items[number][n])
        row.fields = fields
        self._put(self._items[number], n, row)
        for key in [key for key, p in self._payloads.items() if (p.batch, p.n) == (number, n)]:
            self._drop(self._payloads, key)
        if (number, n) in self._outputs:
            self._put(self._outputs, (number, n), OutputRow(n, None, None))

    # workers

    def add_worker(self, row: WorkerRow) -> int:
        """See ledger.tables."""
        fence = len(self._workers) + 1
        stored = copy_of(row)
        stored.fence = fence
        self._put(self._workers, fence, stored)
        return fence

    def worker(self, fence: int) -> WorkerRow | None:
        """See ledger.tables."""
        row = self._workers.get(fence)
        return None if row is None else copy_of(row)

    def workers(self, number: int) -> list[WorkerRow]:
        """See ledger.tables."""
        return [copy_of(row) for row in self._workers.values() if row.batch == number and row.left_us is None]

    def save_worker(self, row: WorkerRow) -> None:
        """See ledger.tables."""
        self._put(self._workers, row.fence, copy_of(row))

    def meta(self) -> Mapping[str, str]:
        """See ledger.tables."""
        return self._meta

    def save_meta(self, name: str, value: str) -> None:
        """See ledger.tables."""
        self._put(self._meta, name, value)

    def claimed(self, references: Sequence[str]) -> frozenset[str]:
        """See ledger.tables."""
        asked = set(references)
        rows = (row for table in self._items.values() for row in table.values())
        return frozenset(
            row.reference
            for row in rows
            if row.state is ItemState.COMMITTED and row.reference in asked and row.reference
        )

    # reading

    def info(self) -> LedgerInfo:
        """See ledger.tables."""
        return LedgerInfo(
            id=self._id,
            url="memory:",
            schema=1,
            events=self._head.size,
            root=self._head.root().hex(),
            durable=False,
            one_process=True,
            one_host=True,
        )

    def batches(self, batch: str | None) -> list[BatchRow]:
        """See ledger.tables."""
        return [copy_of(row) for row in reversed(self._batches.values()) if batch is None or row.id == batch]

    def standing(self, batch: str) -> Standing | None:
        """See ledger.tables."""
        row = self.batch(batch)
        return None if row is None else (row, self.tallies(row.number), self.workers(row.number))

    def items(self, number: int, *, states: Sequence[ItemState], after_n: int, limit: int) -> list[Item]:
        """See ledger.tables."""
        rows = [row for n, row in sorted(self._items[number].items()) if n > after_n]
        return [as_item(row) for row in rows if not states or row.state in states][:limit]

    def billing(self, number: int) -> Iterator[str]:
        """See ledger.protocol."""
        for _, row in sorted(self._items[number].items()):
            minor = "" if row.billed_minor is None else str(row.billed_minor)
            cells = (str(row.n), row.id, row.reference or "", row.state.value, row.settlement.value, minor,
                     row.billed_currency or "", row.target, ".")  # fmt: skip
            yield "\x1f".join(cells) + "\n"

    def item(self, number: int, item: str) -> Item | None:
        """See ledger.tables."""
        n = self.number_of(number, item)
        return None if n is None else as_item(self._items[number][n])

    def events(self, number: int | None, *, n: int | None, after_seq: int, limit: int) -> list[Event]:
        """See ledger.tables."""
        batch = self._batch_id(number)
        later = self._events[max(0, after_seq) :]
        return [e for e in later if (number is None or e.batch == batch) and (n is None or e.n == n)][:limit]

    def outputs(self, number: int, *, after_n: int, limit: int) -> list[Output]:
        """See ledger.tables."""
        items = self.items(number, states=(), after_n=after_n, limit=limit)
        none = OutputRow(0, None, None)
        rows = ((item, self._outputs.get((number, item.n), none)) for item in items)
        return [Output(item, row.output, load(row.kept or "{}")) for item, row in rows]

    def findings(self, number: int) -> list[Finding]:
        """See ledger.tables."""
        return [finding for batch, finding in self._findings if batch == number]

    def acted_targets(self, number: int) -> Iterator[list[str]]:
        """See ledger.overlap_port."""
        yield [row.target for row in self._items[number].values() if row.state in ACTING]

    def acting_on(self, number: int, targets: Sequence[str]) -> list[Acting]:
        """See ledger.overlap_port."""
        batch, asked = self._batches[number].id, set(targets)
        return [
            Acting(batch, row.id, row.target, row.state, money(row.minor, row.currency))
            for _, row in sorted(self._items[number].items())
            if row.state in ACTING and row.target in asked
        ]

    def check(self) -> list[str]:
        """See ledger.tables."""
        faults = check_trail(((e.seq, e.body) for e in self._events), self._head)
        for number, row in self._batches.items():
            faults += check_batch(row, self._items[number].values(), self._opens[number], self._tallies[number])
        return faults

    def _batch_id(self, number: int | None) -> str | None:
        return None if number is None else self._batches[number].id


def duplicate_item(item: str) -> UsageError:
    """The error for an id that a batch has already."""
    return UsageError(f"item {item!r} is in the batch twice", code="duplicate_item", hint="ids are unique in a batch")


class MemoryLedger(StoreLedger):
    """A ledger in memory, for simulation and tests. Nothing of it outlives the process."""

    def __init__(self, *, clock: Clock = wall_clock, is_alive: IsAlive = process_is_alive, ledger_id: str = "") -> None:
        tables = MemoryTables(ledger_id or uuid.uuid4().hex)
        super().__init__(tables, tables, clock=clock, is_alive=is_alive)
        with self._transaction() as log:
            log.emit({"type": "ledger_created", "ledger": tables.info().id})
