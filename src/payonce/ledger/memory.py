"""The reference ledger: every row in plain dictionaries, obviously right, gone with the process.

It shares the rules with all stores and is what the others are compared with. Each change of a transaction remembers
what it replaced, so an error half-way leaves nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from payonce.core.errors import UsageError
from payonce.core.model import Event, Finding
from payonce.core.states import ItemState
from payonce.ledger.actors import is_alive as process_is_alive
from payonce.ledger.actors import steady_now, wall_clock
from payonce.ledger.log import Log
from payonce.ledger.memory_rows import MemoryRows
from payonce.ledger.merkle import Head
from payonce.ledger.newcomers import Block
from payonce.ledger.rows import (
    UNKNOWN,
    BatchRow,
    ItemRow,
    OpenRow,
    OutputRow,
    Saved,
    Tallies,
    WorkerRow,
    copy_of,
    load,
)
from payonce.ledger.store import Clock, IsAlive, Steady
from payonce.ledger.store_reads import StoreLedger

_GONE: Final = object()


class MemoryTables(MemoryRows):
    """The rows, as ``ledger.tables`` asks for them: the transaction's side beside the reading side."""

    def __init__(self, ledger_id: str) -> None:
        super().__init__(ledger_id)
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
        for node in log.nodes:
            self._put(self.nodes, (node.level, node.index), node.hash)
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

    def add_batch(self, row: BatchRow) -> int:
        """See ledger.tables."""
        number = len(self._batches) + 1
        stored = copy_of(row)
        stored.number = number
        self._put(self._batches, number, stored)
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

    def save_tallies(self, number: int, changed: Tallies) -> None:
        """See ledger.tables."""
        for key, tally in changed.items():
            self._put(self._tallies[number], key, list(tally))

    def rows(self, number: int, ns: Sequence[int]) -> list[ItemRow]:
        """See ledger.tables."""
        table = self._items[number]
        return [copy_of(table[n]) for n in ns if n in table]

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

    def holders(self, number: int, targets: Sequence[str]) -> dict[str, int]:
        """See ledger.tables."""
        return {held.target: n for n, held in self._opens[number].items() if held.target and held.target in targets}

    def orphans(self, number: int, living: Collection[int], limit: int) -> list[int]:
        """See ledger.tables."""
        held = self._opens[number].values()
        return sorted(o.n for o in held if not o.flags & UNKNOWN and o.fence not in living)[:limit]

    def save(self, number: int, saved: Saved) -> None:
        """See ledger.tables."""
        for item in (*saved.begun, *saved.moved()):
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
        for key, kept in list(self._payloads.items()):
            if (kept.batch, kept.n) == (number, n) and key not in self.erased:
                self._put(self._payloads, key, replace(kept, body=b""))  # the digest stays
                self._put(self.erased, key, seq)
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

    def save_worker(self, row: WorkerRow) -> None:
        """See ledger.tables."""
        self._put(self._workers, row.fence, copy_of(row))

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

    def claimed_on(self, references: Sequence[str], target: str) -> list[tuple[str, str]]:
        """See ledger.tables."""
        asked = set(references)
        return [
            (row.reference, self._batches[number].spec)
            for number, table in self._items.items()
            for row in table.values()
            if row.state is ItemState.COMMITTED and row.reference in asked and row.reference and row.target == target
        ]


def duplicate_item(item: str) -> UsageError:
    """The error for an id that a batch has already."""
    return UsageError(f"item {item!r} is in the batch twice", code="duplicate_item", hint="ids are unique in a batch")


class MemoryLedger(StoreLedger):
    """A ledger in memory, for simulation and tests. Nothing of it outlives the process."""

    def __init__(
        self,
        *,
        clock: Clock = wall_clock,
        is_alive: IsAlive = process_is_alive,
        steady: Steady = steady_now,
        ledger_id: str = "",
    ) -> None:
        tables = MemoryTables(ledger_id or uuid.uuid4().hex)
        super().__init__(tables, tables, clock=clock, is_alive=is_alive, steady=steady)
        with self._transaction() as log:
            log.emit({"type": "ledger_created", "ledger": tables.info().id})
