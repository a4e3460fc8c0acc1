"""The reading verbs, and the whole ledger put together from its parts.

Reading never waits for a write that is under way: a store gives its ``Reads`` a view of its own of what is durable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from payonce.core.errors import UsageError
from payonce.core.model import Batch, Event, Finding, Item, OpenIntent, Status, Tally
from payonce.core.states import ItemState
from payonce.ledger.protocol import LedgerInfo, Output, Page
from payonce.ledger.rows import Tallies, as_batch, load
from payonce.ledger.store import no_such_batch
from payonce.ledger.store_copy import CopyVerbs
from payonce.ledger.store_items import ItemVerbs
from payonce.ledger.store_trail import TrailVerbs
from payonce.ledger.tables import Standing


class StoreLedger(ItemVerbs, TrailVerbs, CopyVerbs):
    """A complete ledger over some tables. See ledger.protocol for what each verb promises.

    ``gather_s`` is how long a group writer waits for more before it begins a transaction: where one costs several round
    trips over a network, a few milliseconds make groups of dozens out of groups of a few."""

    gather_s: float = 0.0

    def info(self) -> LedgerInfo:
        """See ledger.protocol."""
        return self._reads.info()

    def close(self) -> None:
        """See ledger.protocol."""

    def batches(self, batch: str | None = None) -> tuple[Batch, ...]:
        """See ledger.protocol."""
        return tuple(map(as_batch, self._reads.batches(batch)))

    def status(self, batch: str) -> Status:
        """See ledger.protocol."""
        row, tallies, workers = self._reads.standing(batch) or _missing(batch)
        now_us = self._clock()
        return Status(
            batch=as_batch(row),
            tallies=as_tallies(tallies),
            calls_sent=row.sent,
            lookups=row.lookups,
            rate_limited=row.rate_limited,
            live_workers=sum(self._is_living(worker, now_us=now_us) for worker in workers),
        )

    def open_intents(self, batch: str, ns: Sequence[int]) -> tuple[OpenIntent, ...]:
        """See ledger.protocol."""
        return tuple(self._reads.open_intents(self._number(batch), ns))

    def items(self, batch: str, *, states: Sequence[ItemState] = (), after_n: int = 0, limit: int = 1000) -> Page:
        """See ledger.protocol."""
        items = self._reads.items(self._number(batch), states=states, after_n=after_n, limit=limit)
        return Page(tuple(items), items[-1].n if len(items) == limit else None)

    def item(self, batch: str, item: str) -> Item | None:
        """See ledger.protocol."""
        return self._reads.item(self._number(batch), item)

    def events(
        self, batch: str | None = None, *, item: str | None = None, after_seq: int = 0, limit: int = 1000
    ) -> tuple[Event, ...]:
        """See ledger.protocol."""
        if batch is None:
            if item is not None:
                raise UsageError("an item is named with its batch", code="no_batch", hint="name the batch too")
            return tuple(self._reads.events(None, n=None, after_seq=after_seq, limit=limit))
        number, n = self._number(batch), None
        if item is not None:
            found = self._reads.item(number, item)
            if found is None:
                return ()
            n = found.n
        return tuple(self._reads.events(number, n=n, after_seq=after_seq, limit=limit))

    def billing(self, batch: str) -> Iterator[str]:
        """See ledger.protocol."""
        return self._reads.billing(self._number(batch))

    def outputs(self, batch: str, *, after_n: int = 0, limit: int = 1000) -> tuple[Output, ...]:
        """See ledger.protocol."""
        return tuple(self._reads.outputs(self._number(batch), after_n=after_n, limit=limit))

    def findings(self, batch: str) -> tuple[Finding, ...]:
        """See ledger.protocol."""
        return tuple(self._reads.findings(self._number(batch)))

    def claimed_references(self, batch: str, references: Sequence[str], *, target: str | None = None) -> frozenset[str]:
        """See ledger.protocol."""
        with self._transaction() as log:
            desk = self._desk(log, batch)
            desk.flush()
            if target is None:
                return self._tables.claimed(references)
            here = _where(desk.batch.spec)
            found = self._tables.claimed_on(references, target)
            return frozenset(reference for reference, spec in found if _where(spec) == here)

    def check(self) -> tuple[str, ...]:
        """See ledger.protocol."""
        return tuple(self._reads.check())

    def _number(self, batch: str) -> int:
        rows = self._reads.batches(batch)
        return rows[0].number if rows else _missing(batch)[0].number


def _where(spec: str) -> tuple[Any, ...]:
    """What has to agree before one reference of two batches is one execution."""
    sealed = load(spec)
    return tuple(sealed.get(name) for name in ("operation", "provider", "account", "mode"))


def as_tallies(tallies: Tallies) -> tuple[Tally, ...]:
    """The public form of tallies: sorted, without the empty ones."""
    return tuple(
        Tally(state, currency or None, count, minor)
        for (state, currency), (count, minor) in sorted(tallies.items())
        if count
    )


def _missing(batch: str) -> Standing:
    raise no_such_batch(batch)
