"""One batch inside a transaction: rows are laid out here, changed by the rules, and written back together.

A desk serves one transaction after the other as long as the store can tell that nobody else has written in between,
so that an item handed out, intended and committed is read once. It is thrown away whenever a transaction fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

from payonce.core.states import ItemState
from payonce.ledger.log import Log
from payonce.ledger.rows import (
    BatchRow,
    FindingRow,
    ItemRow,
    OpenRow,
    OutputRow,
    Saved,
    Tallies,
    WorkerRow,
    columns_of,
    dump,
    load,
)
from payonce.ledger.tables import Tables

Share = tuple[ItemState, str, int]
# Rows worth keeping on the desk: more will happen to these soon.
_STAYS: Final = frozenset({ItemState.PLANNED, ItemState.PENDING})
_PENDING, _UNKNOWN = ItemState.PENDING, ItemState.UNKNOWN  # they hold money (ItemState.holds_money)
_ROOM: Final = 20_000
# What counts against a budget.
_COUNTS: Final = (ItemState.COMMITTED, ItemState.PENDING, ItemState.UNKNOWN)


def share(row: ItemRow, held: OpenRow | None) -> Share:
    """What an item adds to the tallies: pending and unknown ones what they hold, committed ones what was billed."""
    if held is not None:
        return row.state, held.hold_currency or "", held.hold_minor or 0
    if row.state is ItemState.COMMITTED and row.billed_currency is not None:
        return row.state, row.billed_currency, row.billed_minor or 0
    return row.state, row.currency or "", row.minor or 0


def _mark(kind: str, item: str | None, data: Mapping[str, Any]) -> bytes:
    """What two equal findings have in common. Statements of one fact differ, so a reconciliation says what makes it one;
    that a finding is resolved needs no second word."""
    facts = data.get("fingerprint") or (("of", data["of"]) if data.get("state") == "resolved" else data)
    return blake2b(dump([kind, item, facts]).encode(), digest_size=16).digest()


class Desk:
    """The rows of one batch that transactions work on.

    ``rows``, ``opens`` and ``holders`` hold what was loaded; ``open_up``, ``close`` and ``shift`` keep them, the
    tallies and what has to be written in step.
    """

    log: Log  # of the present transaction

    def __init__(self, batch: BatchRow, *, tables: Tables) -> None:
        self.batch = batch
        self.tallies = tables.tallies(batch.number)
        self.rows: dict[int, ItemRow] = {}
        self.opens: dict[int, OpenRow] = {}
        self.holders: dict[str, int | None] = {}
        # Workers that have written here; emptied by whatever changes one of them.
        self.workers: dict[int, WorkerRow | None] = {}
        self._limits: tuple[str, Mapping[str, Any]] | None = None
        self._tables = tables
        self._changed_tallies: set[tuple[ItemState, str]] = set()
        self._stored = columns_of(batch)
        self._begun: dict[int, ItemRow] = {}
        self._committed: dict[int, ItemRow] = {}
        self._touched: dict[int, ItemRow] = {}
        self._opened: dict[int, OpenRow] = {}
        self._changed: dict[int, OpenRow] = {}
        self._closed: set[int] = set()
        self._outputs: list[OutputRow] = []
        self._findings: list[FindingRow] = []
        # What tells one finding from another; None until somebody asks.
        self._marks: set[bytes] | None = None
        # Minor units that may have been paid twice, by currency; None until somebody asks (ledger.costs).
        self.again: dict[str, int] | None = None

    @property
    def limits(self) -> Mapping[str, Any]:
        """The batch's limits, parsed once per text."""
        if self._limits is None or self._limits[0] is not self.batch.limits:
            self._limits = (self.batch.limits, load(self.batch.limits))
        return self._limits[1]

    def lay_out(self, ns: Iterable[int]) -> None:
        """Loads the items named that are not here yet, with their open intents and the holders of their targets."""
        new = [n for n in ns if n not in self.rows]
        if new:
            self.take(self._tables.rows(self.batch.number, list(dict.fromkeys(new))))

    def take(self, rows: list[ItemRow]) -> None:
        """Lays out rows just loaded; rows that are here already stay as they are."""
        number = self.batch.number
        fresh = [row for row in rows if row.n not in self.rows]
        held = [row.n for row in fresh if row.state is _PENDING or row.state is _UNKNOWN]
        self.rows.update((row.n, row) for row in fresh)
        if held:
            self.opens.update((o.n, o) for o in self._tables.opens(number, held))
        if self.batch.targets:
            targets = list({row.target for row in fresh if row.target not in self.holders})
            found: dict[str, int] = self._tables.holders(number, targets) if targets else {}
            self.holders.update((target, found.get(target)) for target in targets)

    def forget(self, ns: Iterable[int]) -> None:
        """Takes rows that were flushed off the desk again, so that millions can pass over it."""
        for n in ns:
            self.rows.pop(n, None)

    def open_up(self, row: ItemRow, opened: OpenRow) -> None:
        """A planned item got an open intent."""
        self.opens[row.n] = self._opened[row.n] = opened
        if self.batch.targets and opened.target is not None:
            self.holders[row.target] = row.n

    def change(self, held: OpenRow) -> None:
        """An open intent was changed."""
        self._changed[held.n] = held

    def close(self, row: ItemRow) -> None:
        """An open intent is decided and goes."""
        n = row.n
        del self.opens[n]
        if self._changed:
            self._changed.pop(n, None)
        if not self._opened or self._opened.pop(n, None) is None:
            self._closed.add(n)
        if self.batch.targets and self.holders.get(row.target) == n:
            self.holders[row.target] = None

    def shift(self, row: ItemRow, before: Share, *, begun: bool = False) -> None:
        """An item was changed: its old share of the tallies goes, its new one comes, and it will be written.

        ``begun``: by a worker's intent alone, which changes little."""
        n = row.n
        if begun and n not in self._begun and n not in self._touched and n not in self._committed:
            self._begun[n] = row
        else:
            self._touch(row)
        after = share(row, self.opens.get(n))
        if after != before:
            self._count(before, -1)
            self._count(after, 1)

    def begin(self, row: ItemRow, opened: OpenRow) -> None:
        """A first intent of a worker: the item is pending, its target held; ``transfer`` keeps the tallies."""
        self.open_up(row, opened)
        if row.n in self._touched:
            self._touch(row)
        else:
            self._begun[row.n] = row

    def commit(self, row: ItemRow) -> None:
        """The item was executed over the amount asked, and its open intent goes; ``transfer`` keeps the tallies."""
        n = row.n
        self.close(row)
        if (self._begun and n in self._begun) or n in self._touched:
            self._touch(row)
        else:
            self._committed[n] = row

    def transfer(self, before: ItemState, after: ItemState, moved: Mapping[str, list[int]]) -> None:
        """Items went from one state into another: how many and over how many minor units, by currency."""
        for currency, (items, minor) in moved.items():
            for state, sign in ((before, -1), (after, 1)):
                tally = self.tallies.setdefault((state, currency), [0, 0])
                tally[0] += sign * items
                tally[1] += sign * minor
                self._changed_tallies.add((state, currency))

    def _touch(self, row: ItemRow) -> None:
        self._begun.pop(row.n, None)
        self._committed.pop(row.n, None)
        self._touched[row.n] = row

    def _count(self, share: Share, sign: int) -> None:
        state, currency, minor = share
        key = (state, currency)
        tally = self.tallies.get(key)
        if tally is None:
            tally = self.tallies[key] = [0, 0]
        tally[0] += sign
        tally[1] += sign * minor
        self._changed_tallies.add(key)

    def grow(self, totals: Tallies) -> None:
        """Items were added: the tallies grow by theirs."""
        for key, (items, minor) in totals.items():
            tally = self.tallies.setdefault(key, [0, 0])
            tally[0] += items
            tally[1] += minor
            self._changed_tallies.add(key)

    def returned(self, output: OutputRow) -> None:
        """What a committed call returned."""
        self._outputs.append(output)

    def find(self, finding: FindingRow) -> None:
        """A discrepancy to be stored."""
        self._findings.append(finding)
        if self._marks is not None:
            self._marks.add(_mark(finding.kind, finding.item, load(finding.data)))

    def findings_so_far(self) -> Iterator[tuple[str, str | None, Any]]:
        """Class, item and data of every finding of the batch, those of this transaction included."""
        yield from ((found.kind, found.item, found.data) for found in self._tables.findings(self.batch.number))
        yield from ((row.kind, row.item, load(row.data)) for row in self._findings)

    def holds_finding(self, row: FindingRow) -> bool:
        """Whether the batch has this very finding already: its class, item and facts, or the fingerprint among them."""
        if self._marks is None:
            self._marks = {_mark(*found) for found in self.findings_so_far()}
        return _mark(row.kind, row.item, load(row.data)) in self._marks

    def count(self, *states: ItemState) -> int:
        """How many items are in some states."""
        return sum(tally[0] for (state, _), tally in self.tallies.items() if state in states)

    def held_or_billed(self, currency: str) -> int:
        """Committed, pending and unknown minor units of a currency: what counts against its budget."""
        total = 0
        for state in _COUNTS:
            tally = self.tallies.get((state, currency))
            if tally is not None:
                total += tally[1]
        return total

    def flush(self) -> None:
        """Writes items and intents, so that queries inside this transaction see them; rows stay laid out."""
        moved = self._begun or self._touched or self._committed
        if not (moved or self._changed or self._outputs or self._findings):
            return
        self._tables.save(
            self.batch.number,
            Saved(
                begun=list(self._begun.values()),
                committed=list(self._committed.values()),
                items=list(self._touched.values()),
                opened=list(self._opened.values()),
                changed=list(self._changed.values()),
                closed=list(self._closed),
                outputs=self._outputs,
                findings=self._findings,
            ),
        )
        for held in (*self._opened.values(), *self._changed.values()):
            held.request = None  # stored now; it is never built or written again
        for n in self._committed:
            self.rows.pop(n, None)
        for n, row in self._touched.items():
            if row.state not in _STAYS:
                self.rows.pop(n, None)
                self.opens.pop(n, None)
        self._begun, self._touched, self._committed = {}, {}, {}
        self._opened, self._changed, self._closed = {}, {}, set()
        self._outputs, self._findings = [], []

    def finish(self) -> None:
        """Writes everything, the batch and its tallies last: once per transaction."""
        self.flush()
        if self._changed_tallies:
            changed = {key: self.tallies[key] for key in self._changed_tallies}
            self._tables.save_tallies(self.batch.number, changed)
            self._changed_tallies = set()
        columns = columns_of(self.batch)
        if columns != self._stored:
            self._tables.save_batch(self.batch)
            self._stored = columns
        if len(self.rows) > _ROOM or len(self.holders) > _ROOM:
            self.rows, self.opens, self.holders = {}, {}, {}
