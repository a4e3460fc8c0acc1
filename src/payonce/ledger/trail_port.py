"""What a check of the trail reads of a ledger: the narrow port beside the verbs, for the ``trail`` package alone.

Raw rows in order, streamed, nothing interpreted: a check must see what is there, not what a verb makes of it. All of it
changes nothing and works on a ledger that is refused for writing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from payonce.core.states import ItemState
from payonce.ledger.merkle import Head
from payonce.ledger.rows import BatchRow, Tallies

# seq, batch number and item number (None where it is about the ledger itself; n is 0 for a batch), body, mark, item id.
Filed = tuple[int, int | None, int, bytes, int | None, str | None]
# seq, kind, digest, body (None once it is erased), the event that erased it.
KeptPayload = tuple[int, str, bytes, bytes | None, int | None]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the events of one item have to explain, and what was sealed of it."""

    n: int
    id: str
    target: str
    minor: int | None
    currency: str | None
    fields: str
    state: ItemState
    settlement: str
    generation: int
    step: int
    attempts: int
    reference: str | None
    billed_minor: int | None
    billed_currency: str | None
    code: str | None
    message: str | None


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

    def tallies(self, number: int) -> Tallies:
        """A batch's stored tallies."""
        ...

    def facts(self, number: int) -> Iterator[Facts]:
        """The items of a batch in input order."""
        ...

    def holds(self, number: int) -> dict[int, tuple[int | None, str | None]]:
        """What the open intents of a batch hold, by item number: minor units and currency."""
        ...

    def outputs(self, number: int) -> Iterator[tuple[int, bytes]]:
        """What the calls of a batch's items returned, by item number, in order, where it is kept."""
        ...

    def findings(self, number: int) -> list[tuple[str | None, str]]:
        """A batch's discrepancies: item and kind."""
        ...

    def payloads(self, number: int | None = None, n: int = 0) -> Iterator[KeptPayload]:
        """Kept payloads by event: of the whole ledger, or of one item."""
        ...
