"""The verbs that bring items into a ledger: seal and amend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from typing import Any, Final

from payonce.core.errors import SealedError, UsageError
from payonce.core.events import FORM
from payonce.core.keys import digest
from payonce.core.model import SECOND_US, Actor, Batch, BatchSpec, NewItem, PlainItems
from payonce.core.money import format_minor
from payonce.core.overlap import Clearance
from payonce.core.states import BatchState
from payonce.ledger.log import Log
from payonce.ledger.newcomers import Block, Chain, Few, counted
from payonce.ledger.rows import BatchRow, Tallies, actor_fields, as_batch, dump, load, signature
from payonce.ledger.store_overlaps import OverlapVerbs

# Of sealing, while others work on the ledger: what follows takes as long again, and both lie inside a lease.
_LONGEST_US: Final = 10 * SECOND_US


class SealVerbs(OverlapVerbs):
    """New batches, and new items of old ones. See ledger.protocol for what each verb promises."""

    _told: tuple[BatchSpec, str] | None = None

    def seal(
        self,
        spec: BatchSpec,
        items: Iterable[NewItem] | PlainItems,
        *,
        seal: str,
        actor: Actor,
        clearance: Clearance | None = None,
    ) -> Batch:
        """See ledger.protocol."""
        assert self._log is None, "sealing may fail half-way, so it is a transaction of its own"
        with self._transaction() as log:
            if self._tables.batch(spec.id) is not None:
                raise SealedError(
                    f"batch {spec.id!r} is sealed already", code="already_sealed", hint="give the new batch another id"
                )
            self._hold_to(clearance)
            self._refuse_moved()
            row = self._add_batch(log, spec)
            row.seal = seal
            totals: Tallies = {}
            blocks = counted(items, row=row, totals=totals, now_us=log.now_us)
            self._tables.add_items(row.number, self._while_nobody_waits(blocks, spec.id))
            self._tables.save_tallies(row.number, totals)
            self._tables.save_batch(row)
            log.emit(_sealed_event(spec, row, totals, actor), batch=row.number)
            self._note_allowed(log, row, clearance, actor)
        return as_batch(row)

    def _add_batch(self, log: Log, spec: BatchSpec) -> BatchRow:
        """A batch without items yet."""
        row = BatchRow(
            number=0,
            id=spec.id,
            targets=spec.targets,
            spec=_spec_text(spec),
            seal="",
            items=0,
            created_us=log.now_us,
            first_seq=log.next_seq(),
        )
        row.number = self._tables.add_batch(row)
        return row

    def amend(
        self,
        spec: BatchSpec,
        items: Iterable[NewItem],
        *,
        seal: str | None,
        actor: Actor,
        clearance: Clearance | None = None,
    ) -> Batch:
        """See ledger.protocol."""
        return as_batch(self.add(spec, items, seal=seal, actor=actor, clearance=clearance))

    def add(
        self,
        spec: BatchSpec,
        items: Iterable[NewItem],
        *,
        seal: str | None,
        actor: Actor,
        clearance: Clearance | None = None,
    ) -> BatchRow:
        """The same without the batch's public form, which costs as much as all the rest for a single item."""
        with self._transaction() as log:
            self._hold_to(clearance)
            self._refuse_moved()
            new = not self._knows(spec.id) and self._tables.batch(spec.id) is None
            if new:
                self._add_batch(log, spec)
            desk = self._desk(log, spec.id)
            row = desk.batch
            # Whether targets are held was settled with the first item.
            text = self._text_of(spec if spec.targets == row.targets else replace(spec, targets=row.targets))
            if text != row.spec or row.state is BatchState.CANCELLED:
                _refuse_other(row, spec)
            # With a seal of the caller's, which is over a whole input, the digest is over what is added alone.
            chain, before = Chain(row.seal if seal is None else ""), row.items
            totals: Tallies = {}
            added = counted(chain.pass_on(items), row=row, totals=totals, now_us=log.now_us)
            few = Few(self._while_nobody_waits(added, spec.id))
            self._tables.add_items(row.number, few)
            desk.take(few.rows)
            row.seal = seal if seal is not None else chain.hexdigest()
            spec_before, row.spec = row.spec, text
            desk.grow(totals)
            if row.state is BatchState.FINISHED:
                row.state, row.ended_us = BatchState.INTERRUPTED, None
            body: dict[str, Any] = {"type": "amended", "batch": row.id, "actor": actor_fields(actor)}
            body["items"] = row.items - before
            if new or row.spec != spec_before:
                body |= _form(row)
            if seal is not None:
                body["added"] = chain.hexdigest()
            log.emit({**body, "money": _money(totals), "seal": row.seal}, batch=row.number)
            self._note_allowed(log, row, clearance, actor)
            return row

    def _text_of(self, spec: BatchSpec) -> str:
        """A spec as it is stored; the last one is remembered, since items come to one batch again and again."""
        if self._told is None or self._told[0] is not spec:
            self._told = (spec, _spec_text(spec))
        return self._told[1]

    def _while_nobody_waits(self, blocks: Iterable[Block], batch: str) -> Iterator[Block]:
        """The blocks of a batch that is being sealed. All of it is one transaction, during which no worker can write: where
        that lasts so long that the leases of living ones would run out, it is given up, and they go on."""
        began_us, looked = self._clock(), False
        for block in blocks:
            if not looked and self._clock() - began_us > _LONGEST_US:
                self._refuse_workers(batch)
                looked = True
            yield block

    def _refuse_workers(self, batch: str) -> None:
        # Read beside the transaction: in its middle a store may be taking items in and answer nothing.
        now_us = self._clock()
        known = [row.id for row in self._reads.batches(None) if row.state is not BatchState.SEALED or row.id != batch]
        standing = [self._reads.standing(name) for name in known]
        for row, _, workers in (found for found in standing if found is not None):
            worker = next((one for one in workers if self._is_living(one, now_us=now_us)), None)
            if worker is not None:
                raise UsageError(
                    f"batch {batch!r} is so large that sealing it would hold up batch {row.id!r}, which process "
                    f"{worker.actor.pid} on host {worker.actor.host} works on; nothing was sealed",
                    code="seal_too_long",
                    hint="wait until that run has ended, or seal into a ledger of its own: --ledger URL",
                )


def _sealed_event(spec: BatchSpec, row: BatchRow, totals: Tallies, actor: Actor) -> dict[str, Any]:
    known = {
        "operation": spec.operation,
        "provider": spec.provider,
        "namespace": spec.namespace,
        "account": spec.account,
        "mode": spec.mode,
        "source": spec.source,
        "source_digest": spec.source_digest,
        **_form(row),
    }
    return {
        "type": "sealed",
        "batch": spec.id,
        "actor": signature(actor),
        "items": row.items,
        "money": _money(totals),
        "seal": row.seal,
        **{name: value for name, value in known.items() if value is not None},
    }


def _form(row: BatchRow) -> dict[str, Any]:
    """What the events of this batch say, and the digest of what it was sealed as."""
    return {"form": FORM, "spec": digest(row.spec.encode())}


def _spec_text(spec: BatchSpec) -> str:
    return dump({f.name: getattr(spec, f.name) for f in dataclass_fields(spec)})


def _money(totals: Tallies) -> dict[str, str]:
    """Totals in major units by currency."""
    return {currency: format_minor(tally[1], currency) for (_, currency), tally in totals.items() if currency}


def _refuse_other(row: BatchRow, spec: BatchSpec) -> None:
    """Raises SealedError where items cannot be added to this batch under this spec."""
    sealed = load(row.spec)
    for name in ("operation", "provider", "namespace"):
        if sealed[name] != getattr(spec, name):
            raise SealedError(
                f"batch {row.id!r} was sealed with {name} {sealed[name]!r}, not {getattr(spec, name)!r}",
                code="other_spec",
                hint="use another batch id",
            )
    if row.state is BatchState.CANCELLED:
        raise SealedError(
            f"batch {row.id!r} is cancelled, nothing can be added to it", code="batch_cancelled", hint="use another id"
        )
