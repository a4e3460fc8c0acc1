"""Rows in memory, found by what they are looked for: what the reference does by looking at all, in the same results.

For a store that keeps its rows in memory and serves more than tests. Every index is changed through the same record of
what was replaced as the rows are, so a transaction that fails leaves none of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from payonce.core.model import Item
from payonce.core.states import ItemState
from payonce.ledger.memory import MemoryTables, duplicate_item
from payonce.ledger.newcomers import Block
from payonce.ledger.rows import BatchRow, ItemRow, Saved, as_item, copy_of


class IndexedTables(MemoryTables):
    """``MemoryTables`` with an index for ids, targets and references, and for where the planned items begin."""

    def __init__(self, ledger_id: str) -> None:
        super().__init__(ledger_id)
        self._numbers: dict[str, int] = {}
        self._ids: dict[int, dict[str, int]] = {}
        self._held: dict[int, dict[str, int]] = {}
        # Made when it is asked for the first time; dropped by a transaction that failed.
        self._references: set[str] | None = None
        # No item before this one is planned.
        self._from: dict[int, int] = {}

    def rollback(self) -> None:
        """See ledger.tables."""
        super().rollback()
        self._references = None
        self._from = {}

    def batch(self, batch: str) -> BatchRow | None:
        """See ledger.tables."""
        number = self._numbers.get(batch)
        return None if number is None else copy_of(self._batches[number])

    def add_batch(self, row: BatchRow) -> int:
        """See ledger.tables."""
        number = super().add_batch(row)
        self._put(self._numbers, row.id, number)
        self._put(self._ids, number, {})
        self._put(self._held, number, {})
        return number

    def add_items(self, number: int, blocks: Iterable[Block]) -> None:
        """See ledger.tables."""
        for block in blocks:
            self._add_rows(number, block.rows())

    def _add_rows(self, number: int, rows: Iterable[ItemRow]) -> None:
        ids, items = self._ids[number], self._items[number]
        for row in rows:
            if row.id in ids:
                raise duplicate_item(row.id)
            self._put(ids, row.id, row.n)
            self._put(items, row.n, row)

    def number_of(self, number: int, item: str) -> int | None:
        """See ledger.tables."""
        return self._ids[number].get(item)

    def planned_after(self, number: int, after_n: int, limit: int) -> list[ItemRow]:
        """See ledger.tables."""
        table, found = self._items[number], list[ItemRow]()
        known = self._from.get(number, 1)
        for n in range(max(after_n + 1, known), len(table) + 1):
            if table[n].state is ItemState.PLANNED:
                found.append(copy_of(table[n]))
                if len(found) == limit:
                    break
        if after_n < known:
            self._from[number] = found[0].n if found else len(table) + 1
        return found

    def holders(self, number: int, targets: Sequence[str]) -> dict[str, int]:
        """See ledger.tables."""
        held = self._held[number]
        return {target: held[target] for target in targets if target in held}

    def save(self, number: int, saved: Saved) -> None:
        """See ledger.tables."""
        opens, held = self._opens[number], self._held[number]
        for n in saved.closed:
            target = opens[n].target
            if target and held.get(target) == n:
                self._drop(held, target)
        super().save(number, saved)
        for row in saved.opened:
            if row.target:
                self._put(held, row.target, row.n)
        known = self._from.get(number, 1)
        for item in saved.moved():
            if item.state is ItemState.PLANNED and item.n < known:
                known = self._from[number] = item.n
            if self._references is not None and item.state is ItemState.COMMITTED and item.reference:
                self._references.add(item.reference)

    def claimed(self, references: Sequence[str]) -> frozenset[str]:
        """See ledger.tables. An item stays committed to its reference, so the index only grows."""
        if self._references is None:
            rows = (row for table in self._items.values() for row in table.values())
            self._references = {r.reference for r in rows if r.state is ItemState.COMMITTED and r.reference}
        return frozenset(reference for reference in references if reference in self._references)

    def items(self, number: int, *, states: Sequence[ItemState], after_n: int, limit: int) -> list[Item]:
        """See ledger.tables."""
        table, found = self._items[number], list[Item]()
        for n in range(after_n + 1, len(table) + 1):
            if len(found) == limit:
                break
            if not states or table[n].state in states:
                found.append(as_item(table[n]))
        return found
