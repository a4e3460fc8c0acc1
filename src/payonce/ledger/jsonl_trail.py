"""The trail of a JSON Lines ledger, read into memory of its own. See ledger.trail_port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from payonce.core.states import ItemState, Settlement
from payonce.ledger.jsonl_file import JsonlFile
from payonce.ledger.jsonl_tables import JsonlTables
from payonce.ledger.merkle import Head
from payonce.ledger.rows import BatchRow, ItemRow, OutputRow, Tallies
from payonce.ledger.sqlite_open import no_ledger
from payonce.ledger.trail_port import (
    PLACE_MASK,
    PLACE_SHIFT,
    FactRow,
    Filed,
    KeptPayload,
    SealedRow,
    StoredRow,
    TrailReads,
)

_LOWEST: Final = -(1 << 63)
_STATES: Final = {state: code for code, state in enumerate(ItemState)}
_SETTLEMENTS: Final = {settlement: code for code, settlement in enumerate(Settlement)}


class JsonlTrail(TrailReads):
    """A ledger's trail as it was when it was opened: the whole file is read once, and each digest in it is checked.

    Raises LedgerError ``ledger_corrupt`` with the line where one does not fit."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise no_ledger(path)
        self._file = JsonlFile(path, write=False)
        try:
            self._rows = JsonlTables(self._file)
            self._rows.catch_up()
        except BaseException:
            self._file.close()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See ledger.trail_port. It is one for as long as it is open."""
        yield

    def close(self) -> None:
        """See ledger.trail_port."""
        self._file.close()

    def ledger_id(self) -> str:
        """See ledger.trail_port."""
        return self._rows.meta()["id"]

    def head(self) -> Head:
        """See ledger.trail_port."""
        return self._rows.head()

    def extent(self) -> int:
        """See ledger.trail_port."""
        return self._rows.head().size

    def bodies(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """See ledger.trail_port."""
        return ((seq, self._body(seq)) for seq in self._seqs(first, last))

    def filed(self, first: int, last: int) -> Iterator[Filed]:
        """See ledger.trail_port. There are no marks: a changed event does not fit the digest of its lines."""
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
        return [(seq, self._body(seq)) for seq in self._rows.trail.seqs(number, n)]

    def nodes(self, level: int, first: int, last: int) -> dict[int, bytes]:
        """See ledger.trail_port."""
        return {i: value for (at, i), value in sorted(self._rows.nodes.items()) if at == level and first <= i <= last}

    def batches(self) -> list[BatchRow]:
        """See ledger.trail_port."""
        return self._rows.batches(None)[::-1]

    def number_of(self, number: int, item: str) -> int | None:
        """See ledger.trail_port."""
        return self._rows.number_of(number, item)

    def tallies(self, number: int) -> Tallies:
        """See ledger.trail_port."""
        return self._rows.tallies(number)

    def facts(self, number: int) -> Iterator[FactRow]:
        """See ledger.trail_port."""
        return map(_facts, self._rows.item_rows(number))

    def stored(self, number: int, *, first: int, last: int) -> Iterator[StoredRow]:
        """See ledger.trail_port."""
        return map(_stored, self._rows.item_rows(number, first=first, last=last))

    def sealed(self, number: int) -> Iterator[SealedRow]:
        """See ledger.trail_port."""
        return ((r.id, r.target, r.minor, r.currency, r.fields) for r in self._rows.item_rows(number))

    def holds(self, number: int) -> dict[int, tuple[int | None, str | None]]:
        """See ledger.trail_port."""
        return {n: (row.hold_minor, row.hold_currency) for n, row in self._rows.open_rows(number).items()}

    def outputs(self, number: int, *, first: int = 1, last: int = PLACE_MASK) -> Iterator[OutputRow]:
        """See ledger.trail_port."""
        rows = sorted(self._rows.output_rows(number).items())
        there = (row for n, row in rows if first <= n <= last)
        return (row for row in there if row.output is not None or row.kept is not None)

    def findings(self, number: int) -> list[tuple[str | None, str]]:
        """See ledger.trail_port."""
        return [(finding.item, finding.kind) for finding in self._rows.findings(number)]

    def payloads(self, number: int | None = None, n: int = 0) -> Iterator[KeptPayload]:
        """See ledger.trail_port."""
        erased = self._rows.erased
        for kept in self._rows.payload_rows():
            if number is None or (kept.batch, kept.n) == (number, n):
                by = erased.get((kept.seq, kept.kind))
                yield kept.seq, kept.kind, kept.digest, None if by is not None else kept.body, by

    def _seqs(self, first: int, last: int) -> range:
        return range(max(first, 1), min(last, self.extent()) + 1)

    def _body(self, seq: int) -> bytes:
        return self._rows.trail.body(seq) or b""

    def _place(self, seq: int) -> int | None:
        place = self._rows.trail.place_of(seq)
        return None if place is None else place[0] << PLACE_SHIFT | place[1]


def _facts(row: ItemRow) -> FactRow:
    return (row.n, row.id, row.minor, row.currency, *_said(row))


def _stored(row: ItemRow) -> StoredRow:
    return (row.n, row.id, row.target, row.minor, row.currency, row.fields, *_said(row))


def _said(
    row: ItemRow,
) -> tuple[int, int, int, int, int, str | None, int | None, str | None, str | None, str | None]:
    """What the events of an item have to explain."""
    return (
        _STATES[row.state],
        _SETTLEMENTS[row.settlement],
        row.generation,
        row.step,
        row.attempts,
        row.reference,
        row.billed_minor,
        row.billed_currency,
        row.code,
        row.message,
    )
