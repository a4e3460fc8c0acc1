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
from payonce.ledger.rows import BatchRow, OpenRow, OutputRow, Tallies, WorkerRow

# An item's place is its batch's number times 2**32 plus its number in the batch; a batch's own place has the number 0.
PLACE_SHIFT: Final = 32
PLACE_MASK: Final = (1 << PLACE_SHIFT) - 1

# seq, place (None where it is about the ledger itself), body, mark.
Filed = tuple[int, int | None, bytes, int | None]


class StoredRow(NamedTuple):
    """Everything that is stored of an item: what was sealed, and what its events have to explain. State and settlement are
    their places in ItemState and Settlement, fields and carry JSON as it is stored."""

    n: int
    id: str
    target: str
    minor: int | None
    currency: str | None
    fields: str
    state: int
    settlement: int
    generation: int
    step: int
    attempts: int
    spent: int
    not_before_us: int
    reference: str | None
    billed_minor: int | None
    billed_currency: str | None
    code: str | None
    message: str | None
    carry: str
    first_sent_us: int
    updated_us: int


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
    spent: Sequence[int]
    not_before: Sequence[int]
    references: Sequence[str | None]
    billed: Sequence[int | None]
    billed_in: Sequence[str | None]
    codes: Sequence[str | None]
    messages: Sequence[str | None]
    carries: Sequence[str]
    first_sent: Sequence[int]
    updated: Sequence[int]


class FoundRow(NamedTuple):
    """A discrepancy as it is stored; data as JSON."""

    id: int
    item: str | None
    kind: str
    data: str
    state: str
    opened_us: int


class Opened(NamedTuple):
    """An open intent as it is stored, with its request, and the target of its item."""

    row: OpenRow
    target: str


class KeptPayload(NamedTuple):
    """What is kept of a payload: where it is filed, the digest beside it, its bytes (None once they are erased), and the
    event that erased them."""

    seq: int
    kind: str
    place: int
    digest: bytes
    body: bytes | None
    erased_by: int | None


# id, target, minor, currency, fields as JSON.
SealedRow = tuple[str, str, int | None, str | None, str]

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

    def kept_nodes(self) -> int:
        """How many hashes are kept, of all levels."""
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

    def stored(self, number: int, *, first: int = 1, last: int = PLACE_MASK) -> Iterator[StoredRow]:
        """Everything that is stored of the items from ``first`` to ``last``, in input order."""
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

    def opens(self, number: int) -> Iterator[Opened]:
        """All open intents of a batch, in input order, with everything."""
        ...

    def findings(self, number: int) -> list[FoundRow]:
        """A batch's discrepancies, by their numbers."""
        ...

    def workers(self) -> list[WorkerRow]:
        """All workers there ever were, by fence."""
        ...

    def strangers(self) -> list[str]:
        """Names of tables in which a row belongs to none of the batches."""
        ...

    def payloads(self, number: int | None = None, n: int = 0) -> Iterator[KeptPayload]:
        """Kept payloads by event: of the whole ledger, or of one item."""
        ...
