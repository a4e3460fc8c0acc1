"""The trail of a ledger whose rows are in memory: what all such stores share. See ledger.trail_port."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from payonce.core.states import ItemState, Settlement
from payonce.ledger.memory_rows import MemoryRows
from payonce.ledger.merkle import Head
from payonce.ledger.rows import BatchRow, ItemRow, OutputRow, Tallies, WorkerRow, copy_of, dump
from payonce.ledger.trail_port import (
    PLACE_MASK,
    PLACE_SHIFT,
    Filed,
    FoundRow,
    KeptPayload,
    Opened,
    SealedRow,
    StoredRow,
    TrailReads,
)

_LOWEST: Final = -(1 << 63)
_STATES: Final = {state: code for code, state in enumerate(ItemState)}
_SETTLEMENTS: Final = {settlement: code for code, settlement in enumerate(Settlement)}


class RowsTrail(TrailReads):
    """A trail over rows in memory. Where events are is for each store to say."""

    rows: MemoryRows

    @abstractmethod
    def _body(self, seq: int) -> bytes:
        """The bytes of an event."""

    @abstractmethod
    def _place(self, seq: int) -> int | None:
        """What an event is filed under."""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See ledger.trail_port. Nobody writes meanwhile."""
        yield

    def close(self) -> None:
        """See ledger.trail_port."""

    def ledger_id(self) -> str:
        """See ledger.trail_port."""
        return self.rows.meta()["id"]

    def head(self) -> Head:
        """See ledger.trail_port."""
        return self.rows.head()

    def extent(self) -> int:
        """See ledger.trail_port."""
        return self.rows.head().size

    def bodies(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """See ledger.trail_port."""
        return ((seq, self._body(seq)) for seq in self._seqs(first, last))

    def filed(self, first: int, last: int) -> Iterator[Filed]:
        """See ledger.trail_port. There are no marks."""
        return ((seq, self._place(seq), self._body(seq), None) for seq in self._seqs(first, last))

    def chunk(self, first: int, last: int) -> list[tuple[int | None, bytes]]:
        """See ledger.trail_port."""
        return [(self._place(seq), self._body(seq)) for seq in self._seqs(first, last)]

    def chunk_of(self, first: int, last: int, *, low: int, high: int) -> list[tuple[int, int | None, bytes]]:
        """See ledger.trail_port."""
        found = []
        for seq in self._seqs(first, last):
            place = self._place(seq)
            if low <= (_LOWEST if place is None else place) <= high:
                found.append((seq, place, self._body(seq)))
        return found

    def about(self, number: int, n: int) -> list[tuple[int, bytes]]:
        """See ledger.trail_port."""
        place = number << PLACE_SHIFT | n
        return [(seq, self._body(seq)) for seq in self._seqs(1, self.extent()) if self._place(seq) == place]

    def nodes(self, level: int, first: int, last: int) -> dict[int, bytes]:
        """See ledger.trail_port."""
        return {i: value for (at, i), value in sorted(self.rows.nodes.items()) if at == level and first <= i <= last}

    def kept_nodes(self) -> int:
        """See ledger.trail_port."""
        return len(self.rows.nodes)

    def batches(self) -> list[BatchRow]:
        """See ledger.trail_port."""
        return self.rows.batches(None)[::-1]

    def number_of(self, number: int, item: str) -> int | None:
        """See ledger.trail_port."""
        return self.rows.number_of(number, item)

    def tallies(self, number: int) -> Tallies:
        """See ledger.trail_port."""
        return self.rows.tallies(number)

    def stored(self, number: int, *, first: int = 1, last: int = PLACE_MASK) -> Iterator[StoredRow]:
        """See ledger.trail_port."""
        return map(_stored, self.rows.item_rows(number, first=first, last=last))

    def sealed(self, number: int) -> Iterator[SealedRow]:
        """See ledger.trail_port."""
        return self.rows.sealed(number)

    def holds(self, number: int) -> dict[int, tuple[int | None, str | None]]:
        """See ledger.trail_port."""
        return {n: (row.hold_minor, row.hold_currency) for n, row in self.rows.open_rows(number).items()}

    def outputs(self, number: int, *, first: int = 1, last: int = PLACE_MASK) -> Iterator[OutputRow]:
        """See ledger.trail_port."""
        rows = sorted(self.rows.output_rows(number).items())
        there = (row for n, row in rows if first <= n <= last)
        return (row for row in there if row.output is not None or row.kept is not None)

    def opens(self, number: int) -> Iterator[Opened]:
        """See ledger.trail_port."""
        for n, held in sorted(self.rows.open_rows(number).items()):
            (item,) = self.rows.item_rows(number, first=n, last=n)
            row = copy_of(held)
            row.request = self.rows.request_of(number, n)
            yield Opened(row, item.target)

    def findings(self, number: int) -> list[FoundRow]:
        """See ledger.trail_port."""
        found = self.rows.findings(number)
        return [FoundRow(f.id, f.item, f.kind, dump(f.data), f.state, f.opened_us) for f in found]

    def workers(self) -> list[WorkerRow]:
        """See ledger.trail_port."""
        return self.rows.worker_rows()

    def strangers(self) -> list[str]:
        """See ledger.trail_port."""
        return self.rows.strangers()

    def payloads(self, number: int | None = None, n: int = 0) -> Iterator[KeptPayload]:
        """See ledger.trail_port."""
        erased = self.rows.erased
        for kept in self.rows.payload_rows():
            if number is None or (kept.batch, kept.n) == (number, n):
                by, place = erased.get((kept.seq, kept.kind)), kept.batch << PLACE_SHIFT | kept.n
                yield KeptPayload(kept.seq, kept.kind, place, kept.digest, None if by is not None else kept.body, by)

    def _seqs(self, first: int, last: int) -> range:
        return range(max(first, 1), min(last, self.extent()) + 1)


class MemoryTrail(RowsTrail):
    """The trail of a ledger that is nowhere but in memory."""

    def __init__(self, rows: MemoryRows) -> None:
        self.rows = rows
        self._numbers = {row.id: row.number for row in rows.batches(None)}

    def _body(self, seq: int) -> bytes:
        return self.rows.event_rows()[seq - 1].body

    def _place(self, seq: int) -> int | None:
        event = self.rows.event_rows()[seq - 1]
        return None if event.batch is None else self._numbers[event.batch] << PLACE_SHIFT | (event.n or 0)


def _stored(row: ItemRow) -> StoredRow:
    return StoredRow(
        row.n,
        row.id,
        row.target,
        row.minor,
        row.currency,
        row.fields,
        _STATES[row.state],
        _SETTLEMENTS[row.settlement],
        row.generation,
        row.step,
        row.attempts,
        row.spent,
        row.not_before_us,
        row.reference,
        row.billed_minor,
        row.billed_currency,
        row.code,
        row.message,
        row.carry,
        row.first_sent_us,
        row.updated_us,
    )
