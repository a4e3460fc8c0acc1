"""What a check of the trail reads of a ledger: the narrow port beside the verbs, for the ``trail`` package alone.

Raw rows in order, streamed, nothing interpreted: a check must see what is there, not what a verb makes of it. All of it
changes nothing and works on a ledger that is refused for writing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Final, NamedTuple, Protocol

from payonce.ledger.merkle import Head
from payonce.ledger.rows import BatchRow, OutputRow, Tallies

# An item's place is its batch's number times 2**32 plus its number in the batch; a batch's own place has the number 0.
PLACE_SHIFT: Final = 32
PLACE_MASK: Final = (1 << PLACE_SHIFT) - 1

# seq, place (None where it is about the ledger itself), body, mark.
Filed = tuple[int, int | None, bytes, int | None]
# n, id, minor, currency, state, settlement, generation, step, attempts, reference, billed minor and currency, code,
# message; state and settlement as their places in ItemState and Settlement.
FactRow = tuple[
    int,
    str,
    int | None,
    str | None,
    int,
    int,
    int,
    int,
    int,
    str | None,
    int | None,
    str | None,
    str | None,
    str | None,
]
# n, id, target, minor, currency, fields as JSON, state, settlement, generation, step, attempts, reference, billed minor
# and currency, code, message: what was sealed of an item, and what its events have to explain.
StoredRow = tuple[
    int,
    str,
    str,
    int | None,
    str | None,
    str,
    int,
    int,
    int,
    int,
    int,
    str | None,
    int | None,
    str | None,
    str | None,
    str | None,
]


class Columns(NamedTuple):
    """Some items in order, turned on their side: the columns of as many StoredRows, each as long as there are items."""

    ns: Sequence[int]
    ids: Sequence[str]
    targets: Sequence[str]
    minors: Sequence[int | None]
    currencies: Sequence[str | None]
    fields: Sequence[str]
    states: Sequence[int]
    settlements: Sequence[int]
    generations: Sequence[int]
    steps: Sequence[int]
    attempts: Sequence[int]
    references: Sequence[str | None]
    billed: Sequence[int | None]
    billed_in: Sequence[str | None]
    codes: Sequence[str | None]
    messages: Sequence[str | None]


# id, target, minor, currency, fields as JSON.
SealedRow = tuple[str, str, int | None, str | None, str]
# seq, kind, digest, body (None once it is erased), the event that erased it.
KeptPayload = tuple[int, str, bytes, bytes | None, int | None]


# Items by columns come by so many at most.
COLUMN_LENGTH: Final = 2000


class TrailReads(Protocol):
    """A ledger's trail and what hangs on it, as it is in one snapshot."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything read inside is of one instant, while others may go on writing."""
        ...

    def close(self) -> None:
        """Releases everything."""
        ...

    def ledger_id(self) -> str:
        """The ledger's identity."""
        ...

    def head(self) -> Head:
        """The head of the trail, as it is stored."""
        ...

    def extent(self) -> int:
        """The number of the last event there is, whatever the head says; 0 for none."""
        ...

    def bodies(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """The stored bytes of events ``first`` to ``last``, both included, in sequence, without those that are missing."""
        ...

    def filed(self, first: int, last: int) -> Iterator[Filed]:
        """The same, with where each is filed."""
        ...

    def chunk(self, first: int, last: int) -> list[tuple[int | None, bytes]]:
        """Place and bytes of some events at once; where none is missing there are as many as asked for."""
        ...

    def chunk_of(self, first: int, last: int, *, low: int, high: int) -> list[tuple[int, int | None, bytes]]:
        """Seq, place and bytes of those of some events that are filed under a place from ``low`` to ``high``, both
        included; what is filed under none counts as the lowest."""
        ...

    def about(self, number: int, n: int) -> list[tuple[int, bytes]]:
        """Events filed under an item, or under a batch itself (n = 0), in sequence."""
        ...

    def nodes(self, level: int, first: int, last: int) -> dict[int, bytes]:
        """Kept hashes of one level, from the index ``first`` to ``last``, both included."""
        ...

    def batches(self) -> Sequence[BatchRow]:
        """All batches, in the order they were sealed."""
        ...

    def number_of(self, number: int, item: str) -> int | None:
        """An item's number by its id, compared exactly."""
        ...

    def ids(self, number: int) -> tuple[int, int] | None:
        """Where a store keeps the ids of a batch's items in a table beside them: how many there are, and how many lead to
        the item that has the id. An id that is missing there would be taken for a new one. None where there is none such."""
        return None

    def tallies(self, number: int) -> Tallies:
        """A batch's stored tallies."""
        ...

    def facts(self, number: int) -> Iterator[FactRow]:
        """What the events of a batch's items have to explain, in input order."""
        ...

    def stored(self, number: int, *, first: int, last: int) -> Iterator[StoredRow]:
        """Everything a check needs of the items from ``first`` to ``last``, in input order."""
        ...

    def columns(self, number: int, *, first: int, last: int) -> Iterator[Columns]:
        """What ``stored`` has, by columns of up to ``COLUMN_LENGTH`` items. A store that has no quicker way turns rows."""
        rows = self.stored(number, first=first, last=last)
        while part := list(islice(rows, COLUMN_LENGTH)):
            yield Columns(*zip(*part, strict=True))

    def sealed(self, number: int) -> Iterator[SealedRow]:
        """What was sealed of a batch's items, in input order."""
        ...

    def holds(self, number: int) -> dict[int, tuple[int | None, str | None]]:
        """What the open intents of a batch hold, by item number: minor units and currency."""
        ...

    def outputs(self, number: int, *, first: int = 1, last: int = PLACE_MASK) -> Iterator[OutputRow]:
        """What the calls of a batch's items returned and what was kept of it, in order, where either is there."""
        ...

    def findings(self, number: int) -> list[tuple[str | None, str]]:
        """A batch's discrepancies: item and kind."""
        ...

    def payloads(self, number: int | None = None, n: int = 0) -> Iterator[KeptPayload]:
        """Kept payloads by event: of the whole ledger, or of one item."""
        ...
