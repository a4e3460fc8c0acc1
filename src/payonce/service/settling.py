"""Later facts about committed items, from webhook files: settlement only, never a new call and never another state.

Each change goes through the ledger with the event it comes from. A repeated, late or early event changes nothing that
is known already; what cannot be matched exactly is listed, not guessed.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from payonce.core.commands import Change, Landed
from payonce.core.errors import UsageError
from payonce.core.model import Actor, Batch, Finding, Item
from payonce.core.states import ItemEvent, ItemState, Settlement
from payonce.ledger.protocol import Ledger
from payonce.providers.official.facts import BadSignature, Delivery, Fact, NotAnEvent, settled
from payonce.service.inspecting import find_batch, items
from payonce.service.settling_files import read_deliveries

KINDS = ("stripe", "adyen", "paypal")


class EventReader(Protocol):
    """A provider's webhooks: see ``providers/*/events.py``."""

    SECRET_VARIABLE: str
    SIGNED: bool
    verify: Callable[[Delivery, str], None]
    facts: Callable[[Delivery], tuple[Fact, ...]]


@dataclass(frozen=True, slots=True)
class Wishes:
    """``unsigned``: a person vouches for files without a signature that can be checked. ``dry_run``: change nothing."""

    provider: str | None = None
    secret_variable: str | None = None
    unsigned: bool = False
    dry_run: bool = False
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class Settled:
    """What became of the events. ``changed`` are items by their new settlement, ``left`` events that changed nothing,
    by reason; ``notes`` name those that a person should look at."""

    events: int = 0
    facts: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def leave(self, why: str, note: str | None = None) -> None:
        """Counts an event that changes nothing."""
        self.left[why] += 1
        if note is not None and len(self.notes) < 1000:
            self.notes.append(note)


def settle(ledger: Ledger, batch_id: str, paths: Sequence[Path], *, wishes: Wishes, actor: Actor) -> Settled:
    """Takes the events of some files into the ledger. All files are read and checked before the first change.

    Raises UsageError for files that are no events, and for events that are not signed as they must be.
    """
    batch = find_batch(ledger, batch_id)
    reader = events_of(wishes.provider or batch.spec.provider)
    done = Settled()
    told: list[Fact] = []
    for delivery in read_deliveries(paths):
        done.events += 1
        _check(reader, delivery, wishes)
        told += _facts(reader, delivery, done)
    done.facts = len(told)
    at_work = _Matcher(ledger, batch, told)
    for fact in told:
        item = at_work.item_of(fact, done)
        if item is not None:
            at_work.learn(item, _apply(ledger, item, fact, batch=batch.spec.id, done=done, wishes=wishes, actor=actor))
    return done


def events_of(kind: str) -> EventReader:
    """A provider's webhooks. Raises UsageError where none can be read."""
    if kind not in KINDS:
        raise UsageError(
            f"there are no webhooks of {kind!r} that payonce can read",
            code="no_webhooks",
            hint=f"--provider is one of {', '.join(KINDS)}; payonce reconcile reads statements of any provider",
        )
    return cast(EventReader, importlib.import_module(f"payonce.providers.{kind}.events"))


def _check(reader: EventReader, delivery: Delivery, wishes: Wishes) -> None:
    if wishes.unsigned:
        return
    name = wishes.secret_variable or reader.SECRET_VARIABLE
    if not reader.SIGNED:
        raise UsageError(
            "signatures of this provider cannot be checked on files",
            code="unverifiable_events",
            hint="--unsigned takes the files on your word: be sure where they come from",
        )
    secret = wishes.environ.get(name, "")
    if not secret:
        raise UsageError(
            f"checking signatures needs the environment variable {name}, which is not set",
            code="missing_variable",
            hint=f"export {name}=... (or name another with --secret-env), or --unsigned to take the files on your word",
        )
    try:
        reader.verify(delivery, secret)
    except BadSignature as error:
        raise UsageError(
            f"{delivery.place}: {error}; nothing was changed",
            code="bad_signature",
            hint="keep the headers and the body as they were received; --unsigned takes the files on your word",
        ) from error


def _facts(reader: EventReader, delivery: Delivery, done: Settled) -> tuple[Fact, ...]:
    try:
        found = reader.facts(delivery)
    except NotAnEvent as error:
        raise UsageError(
            f"{delivery.place}: {error}", code="bad_event_file", hint="--provider names whose events these are"
        ) from error
    if not found:
        done.leave("about something else")
    return found


class _Matcher:
    """Finds the items that some facts are about, in one pass over the batch."""

    def __init__(self, ledger: Ledger, batch: Batch, told: Sequence[Fact]) -> None:
        references = {fact.reference for fact in told}
        own = {fact.own_reference for fact in told if fact.own_reference}
        self._batch = batch
        self._by_reference: dict[str, Item] = {}
        self._by_id: dict[str, Item] = {}
        for item in items(ledger, batch.spec.id) if told else ():
            if item.reference is not None and item.reference in references:
                self._by_reference[item.reference] = item
            if item.id in own:
                self._by_id[item.id] = item

    def item_of(self, fact: Fact, done: Settled) -> Item | None:
        """The committed item that a fact is about: by the provider's reference, and nothing in it may contradict."""
        if fact.batch is not None and fact.batch != self._batch.spec.id:
            done.leave("another batch's")
            return None
        mode = self._batch.spec.mode
        if fact.live is not None and mode is not None and fact.live is not (mode == "live"):
            done.leave("of the other mode", f"{fact.event}: live is {fact.live}, the batch is {mode}")
            return None
        item = self._by_reference.get(fact.reference)
        if item is None:
            self._unmatched(fact, done)
            return None
        amount = item.billed or item.money
        if fact.money is not None and amount is not None and fact.money != amount:
            done.leave("over another amount", f"{fact.event}: {fact.money}, item {item.id} is over {amount}")
            return None
        return item

    def learn(self, item: Item, settlement: Settlement) -> None:
        """What is known of an item now: a later fact of the same files builds on it."""
        assert item.reference is not None, "a settled item without a reference"
        self._by_reference[item.reference] = replace(item, settlement=settlement)

    def _unmatched(self, fact: Fact, done: Settled) -> None:
        """An execution that no item has: ours, if its answer is still on the way or was lost."""
        item = self._by_id.get(fact.own_reference or "")
        if item is None or (item.state is ItemState.COMMITTED and item.reference != fact.reference):
            done.leave("of no item", f"{fact.event}: no item has {fact.reference}")
            return
        done.leave(
            "not committed yet", f"{fact.event}: {fact.reference} names item {item.id}, {self._next(item, fact)}"
        )

    def _next(self, item: Item, fact: Fact) -> str:
        """What a person does about an event of an item that is not committed. A webhook alone decides no item: it may be
        about an earlier try of the same item."""
        if item.state is not ItemState.UNKNOWN:
            return f"which is {item.state}; settle again once it is committed"
        money = item.money if fact.money is None else fact.money
        amount = "" if money is None else f" --amount {money.text}"
        said = fact.word or fact.settlement.value
        return (
            f"which is unknown; the provider says {said}. Look into it, then: payonce resolve {self._batch.spec.id} {item.id} "
            f'--as committed --reference {fact.reference}{amount} --reason "webhook {fact.event}"'
        )


def _apply(
    ledger: Ledger, item: Item, fact: Fact, *, batch: str, done: Settled, wishes: Wishes, actor: Actor
) -> Settlement:
    """Records what a fact adds; returns what is known then."""
    known = item.settlement
    now = settled(known, fact.settlement)
    if now is known:
        done.leave("known already")
        return known
    data: dict[str, Any] = {"event": fact.event, "kind": fact.kind, "status": fact.word, "was": known.value}
    if fact.at is not None:
        data["told_at"] = fact.at
    if not wishes.dry_run:
        change = Change(item.n, ItemEvent.SETTLE, data=data, settlement=now, findings=_findings(item, fact, now))
        landed = ledger.operate(batch, item.id, [change], actor=actor, reason=f"webhook {fact.event}")
        if landed is not Landed.LANDED:
            done.leave("moved meanwhile", f"{fact.event}: item {item.id} changed meanwhile ({landed})")
            return known
    done.changed[now.value] += 1
    return now


def _findings(item: Item, fact: Fact, now: Settlement) -> tuple[Finding, ...]:
    if now not in (Settlement.FAILED, Settlement.RETURNED):
        return ()
    facts = {"reference": fact.reference, "settlement": now.value, "status": fact.word, "event": fact.event}
    return (Finding("status_mismatch", item.id, facts),)
