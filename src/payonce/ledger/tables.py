"""What a store keeps its rows in: the port below the verbs. One implementation per database, none with rules in it.

``Tables`` is used inside one write transaction, ``Reads`` outside of any. A store that cannot do what it is asked
raises LedgerError; ``begin`` to ``commit`` is all or nothing, and ``commit`` returns only when it is durable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from payonce.core.model import Event, Finding, Item, OpenIntent
from payonce.core.states import ItemState
from payonce.ledger.log import Log
from payonce.ledger.merkle import Head
from payonce.ledger.newcomers import Block
from payonce.ledger.overlap_port import OverlapReads
from payonce.ledger.protocol import LedgerInfo, Output
from payonce.ledger.rows import BatchRow, ItemRow, OpenRow, Saved, Tallies, WorkerRow
from payonce.ledger.trail_port import SealedRow

# A batch with its tallies and the workers that have not left.
Standing = tuple[BatchRow, Tallies, list[WorkerRow]]


class Tables(Protocol):
    """The rows of a ledger inside a write transaction."""

    def begin(self) -> Head:
        """Starts a transaction that no other writer can interleave with; returns the trail's head as it is now."""
        ...

    def unchanged(self) -> bool:
        """Whether nobody else has written since this store's last transaction: what it knew then is still so. Asked
        right after ``begin``; a store that cannot tell says no."""
        ...

    def append(self, log: Log) -> None:
        """Stores a transaction's events, completed nodes and new head."""
        ...

    def commit(self) -> None:
        """Makes everything since ``begin`` durable. Raises LedgerError, and then nothing of it is there."""
        ...

    def rollback(self) -> None:
        """Forgets everything since ``begin``; never raises."""
        ...

    def batch(self, batch: str) -> BatchRow | None:
        """A batch by its id, locked for this transaction."""
        ...

    def extents(self) -> dict[int, int]:
        """How many items each batch has, by its number, as this transaction sees it."""
        ...

    def add_batch(self, row: BatchRow) -> int:
        """Stores a new batch; returns its number."""
        ...

    def add_items(self, number: int, blocks: Iterable[Block]) -> None:
        """Stores new items, streaming. Raises UsageError ``duplicate_item`` where an id comes twice."""
        ...

    def save_batch(self, row: BatchRow) -> None:
        """Writes a batch's mutable columns."""
        ...

    def tallies(self, number: int) -> Tallies:
        """A batch's tallies."""
        ...

    def save_tallies(self, number: int, changed: Tallies) -> None:
        """Writes some tallies, as absolute values."""
        ...

    def rows(self, number: int, ns: Sequence[int]) -> list[ItemRow]:
        """Some items by number, in any order; unknown numbers are left out."""
        ...

    def number_of(self, number: int, item: str) -> int | None:
        """An item's number by its id."""
        ...

    def sealed(self, number: int, *, first: int, last: int) -> Iterator[SealedRow]:
        """What was sealed of the items from ``first`` to ``last``, in input order."""
        ...

    def planned_after(self, number: int, after_n: int, limit: int) -> list[ItemRow]:
        """The next planned items in input order."""
        ...

    def opens(self, number: int, ns: Sequence[int]) -> list[OpenRow]:
        """Open intents of some items, in any order, without their requests."""
        ...

    def open_intents(self, number: int, ns: Sequence[int]) -> list[OpenIntent]:
        """Open intents with everything, in input order, as this transaction sees them."""
        ...

    def holders(self, number: int, targets: Sequence[str]) -> dict[str, int]:
        """Which of some targets are held, and by which item."""
        ...

    def orphans(self, number: int, living: Collection[int], limit: int) -> list[int]:
        """The first pending items in input order whose fence is none of ``living``."""
        ...

    def save(self, number: int, saved: Saved) -> None:
        """Writes what a flush hands over; closed intents go before opened ones come,
        and one that is opened and changed is opened first."""
        ...

    def erase(self, number: int, n: int, *, fields: str, seq: int) -> None:
        """Replaces an item's fields, and erases its payloads and outputs; ``seq`` is the event that says so."""
        ...

    def add_worker(self, row: WorkerRow) -> int:
        """Stores a new worker; returns its fence, higher than any before."""
        ...

    def worker(self, fence: int) -> WorkerRow | None:
        """A worker by its fence."""
        ...

    def workers(self, number: int) -> list[WorkerRow]:
        """A batch's workers that have not left."""
        ...

    def save_worker(self, row: WorkerRow) -> None:
        """Writes a worker's lease and leaving."""
        ...

    def findings(self, number: int) -> list[Finding]:
        """A batch's findings, oldest first, as this transaction sees them."""
        ...

    def meta(self) -> Mapping[str, str]:
        """Facts about the ledger itself, as this transaction sees them."""
        ...

    def save_meta(self, name: str, value: str) -> None:
        """Keeps a fact about the ledger itself."""
        ...

    def claimed(self, references: Sequence[str]) -> frozenset[str]:
        """Those of some references that a committed item of any batch carries."""
        ...

    def claimed_on(self, references: Sequence[str], target: str) -> list[tuple[str, str]]:
        """The same, of items on one target: each reference with the text its item's batch was sealed as."""
        ...


class Reads(OverlapReads, Protocol):
    """A ledger's reading side: what is durable, at any time, beside a running write."""

    def info(self) -> LedgerInfo: ...

    def meta(self) -> Mapping[str, str]: ...

    def batches(self, batch: str | None) -> list[BatchRow]: ...

    def standing(self, batch: str) -> Standing | None: ...

    def items(self, number: int, *, states: Sequence[ItemState], after_n: int, limit: int) -> list[Item]: ...

    def item(self, number: int, item: str) -> Item | None: ...

    def open_intents(self, number: int, ns: Sequence[int]) -> list[OpenIntent]: ...

    def events(self, number: int | None, *, n: int | None, after_seq: int, limit: int) -> list[Event]: ...

    def billing(self, number: int) -> Iterator[str]: ...

    def outputs(self, number: int, *, after_n: int, limit: int) -> list[Output]: ...

    def findings(self, number: int) -> list[Finding]: ...

    def check(self) -> list[str]: ...
