"""The one protocol every ledger speaks: each verb is one transaction, durable when it returns.

A ledger is the single source of truth. A store that cannot make a write durable raises LedgerError and leaves what was
there before; it never answers success for something a crash could lose. Writes are compare-and-set on the item's state
(the table in core.states), generation, step and fence, and say for each command whether it landed.

Stores are synchronous and used from one thread at a time per connection; the engine reaches them through its group
writer. ``payonce.testing.ledger_suite`` is the suite that every store passes; what a store cannot do is a declared
capability in ``info()``, never a skipped test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from payonce.core.commands import Command, Control, Landed
from payonce.core.model import (
    Actor,
    Batch,
    BatchSpec,
    Event,
    Finding,
    Item,
    NewItem,
    OpenIntent,
    PlainItems,
    Status,
    Worker,
)
from payonce.core.overlap import Clearance
from payonce.core.states import ItemState
from payonce.ledger.overlap_port import OverlapReads


@dataclass(frozen=True, slots=True)
class LedgerInfo:
    """What a ledger is: its identity, address, schema, size and head of the trail, and its declared capabilities."""

    id: str
    url: str
    schema: int
    events: int
    root: str
    durable: bool
    one_process: bool
    one_host: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Items in input order after some place, and the place to go on from (None at the end)."""

    items: tuple[Item, ...]
    next_n: int | None


@dataclass(frozen=True, slots=True)
class Output:
    """One item with what its call returned (JSON bytes) and the answer fields kept with the commit, for the results."""

    item: Item
    output: bytes | None
    kept: Mapping[str, Any] = field(default_factory=dict)


class Ledger(OverlapReads, Protocol):
    """Some twenty verbs, and the narrow port that finds overlaps.

    All times are the ledger's clock, which never runs backwards within a ledger.
    """

    def info(self) -> LedgerInfo:
        """Identity, capabilities and the head of the trail."""
        ...

    def close(self) -> None:
        """Releases everything. Nothing is pending: each verb was durable when it returned."""
        ...

    # batches

    def seal(
        self,
        spec: BatchSpec,
        items: Iterable[NewItem] | PlainItems,
        *,
        seal: str,
        actor: Actor,
        clearance: Clearance | None = None,
    ) -> Batch:
        """Stores a new batch with all its items as planned, all or nothing; streams ``items``.

        ``clearance`` says which other batches the items were compared with; overlaps that it allows leave an event
        ``overlap_allowed`` in the same transaction. Raises SealedError ``already_sealed`` where the id exists already,
        ``batches_changed`` where the clearance no longer holds, UsageError ``seal_too_long`` where it takes so long that
        living workers of the ledger, which cannot write meanwhile, would lose their leases. A crash half-way leaves no batch.
        """
        ...

    def amend(
        self,
        spec: BatchSpec,
        items: Iterable[NewItem],
        *,
        seal: str | None,
        actor: Actor,
        clearance: Clearance | None = None,
    ) -> Batch:
        """Adds items to the end of a sealed batch, all or nothing; where there is no such batch, it is sealed with them.

        ``seal`` is the new digest over all items; None chains it: the SHA-256 over the old one and the added items.
        A finished batch can be run again. ``clearance`` as for ``seal``. Raises SealedError for a cancelled batch, or
        where ``spec`` names another operation, provider or namespace, UsageError ``duplicate_item`` where an id is
        there already.
        """
        ...

    def batches(self, batch: str | None = None) -> tuple[Batch, ...]:
        """All batches, newest first, or the one named (empty if there is none)."""
        ...

    def status(self, batch: str) -> Status:
        """Counts and money by state and currency, without counting the items one by one."""
        ...

    def control(self, batch: str, control: Control, *, actor: Actor, worker: Worker | None = None) -> Batch:
        """Pauses, resumes, cancels, stops, finishes, reconfigures or slows a batch; an edge that does not exist (resume
        of a cancelled one) raises UsageError. START resets the tripwires. CANCEL turns planned items into skipped ones
        with code ``cancelled``, each with its event, some ten thousand at most in one transaction: nothing is sent any
        more after the first, and CANCEL is given again while items are planned. FINISH lands only when no item is
        planned or pending."""
        ...

    # workers

    def join(self, batch: str, *, actor: Actor, lease_us: int) -> Worker:
        """Registers a worker with a new, higher fence and a lease from now. Where no other live worker is on the batch
        the handing out of planned items starts from the beginning."""
        ...

    def renew(self, worker: Worker, *, lease_us: int) -> Worker:
        """Extends the lease from now and returns the batch's present state, limits, pace and control counter.

        Raises LeaseLost where the worker was declared dead meanwhile (another took its items over)."""
        ...

    def leave(self, worker: Worker) -> None:
        """The worker is gone; what it left pending may be taken over at once. Unknown workers are no error."""
        ...

    # items on the move

    def planned(self, worker: Worker, *, limit: int) -> tuple[Item, ...]:
        """The next planned items in input order that were not handed to another worker in this sweep. An empty answer
        ends the sweep; the next call starts another from the beginning (items may have come back meanwhile)."""
        ...

    def write(self, worker: Worker, commands: Sequence[Command]) -> tuple[Landed, ...]:
        """Applies a worker's commands in order in one transaction, each on its own: one that does not land changes
        nothing and does not hold up the others. Checks fence, state, generation, step, target, budget and whether the
        batch is running, and trips the tripwires (``limits`` of the batch). Budget: committed billed amounts, plus what
        pending and unknown items hold, plus the new one, per currency, never over ``limits.budget``."""
        ...

    def take_over(self, worker: Worker, *, limit: int) -> tuple[OpenIntent, ...]:
        """Pending items whose worker is dead now belong to this one, each with a TAKEOVER event. Dead: left, lease over
        by the ledger's clock, or on this host with its process gone (pid and start time compared)."""
        ...

    def open_intents(self, batch: str, ns: Sequence[int]) -> tuple[OpenIntent, ...]:
        """The open intents of some pending or unknown items, as they are now."""
        ...

    def operate(self, batch: str, item: str, changes: Sequence[Command], *, actor: Actor, reason: str) -> Landed:
        """An operator's change to one item (resolve, retry, settle), with a reason and without a fence. Refused with
        STALE where the table has no such edge, and while a live worker is resolving the item (it is pending)."""
        ...

    def slots(self, worker: Worker, *, count: int) -> tuple[int, ...]:
        """Start times (ledger's clock, microseconds) of the next ``count`` calls under the batch's rate, over all
        workers together: a bucket that starts empty and holds at most a tenth of a second's worth, at least one."""
        ...

    # reading

    def items(self, batch: str, *, states: Sequence[ItemState] = (), after_n: int = 0, limit: int = 1000) -> Page:
        """A page of items in input order, all states if none is named."""
        ...

    def item(self, batch: str, item: str) -> Item | None:
        """One item by its id, compared exactly."""
        ...

    def events(
        self, batch: str | None = None, *, item: str | None = None, after_seq: int = 0, limit: int = 1000
    ) -> tuple[Event, ...]:
        """Events in sequence: of one item, of one batch, or of the whole ledger."""
        ...

    def billing(self, batch: str) -> Iterator[str]:
        """What a batch's items were billed, as text for a bulk comparison: some thousand items a piece, in input order.

        An item is a line of ``n, id, reference, state, settlement, billed minor units, billed currency, target`` and a
        point, with U+001F between, empty where there is none. A piece may hold its items by column instead: U+001D, then
        the eight columns with U+001F between, in each a value a line.
        """
        ...

    def outputs(self, batch: str, *, after_n: int = 0, limit: int = 1000) -> tuple[Output, ...]:
        """Items in input order with what their committed call returned."""
        ...

    def findings(self, batch: str) -> tuple[Finding, ...]:
        """All discrepancies of a batch, oldest first."""
        ...

    def claimed_references(self, batch: str, references: Sequence[str], *, target: str | None = None) -> frozenset[str]:
        """Those of some provider references that are committed to an item of this or another batch of the ledger.

        With a target: to an item on this target, of a batch with the same operation at the same provider, account and
        mode. Only then they surely name the same execution: many providers count anew for each account or target."""
        ...

    def check(self) -> tuple[str, ...]:
        """A full self-check (tallies recounted, trail re-hashed, database integrity); one sentence per fault."""
        ...
