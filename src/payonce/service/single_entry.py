"""One way through a guarded call: what is asked of the ledger before its body may be entered, and after it was left.

Each verb runs on the desk, one at a time. ``open`` is repeated, with a look-up wherever it asks for one, until it grants
the body or refuses; ``record`` writes down what the body reported. Between the two the item is ``active``: no other task
of this process can have it.
"""

from __future__ import annotations

import functools
import os
import time
from dataclasses import replace
from typing import Any, Final

from payonce.core.commands import Change, Intend, Landed
from payonce.core.decide import (
    Doubt,
    GiveUp,
    LookUp,
    PlanAgain,
    SendAgain,
    SendNext,
    after_reply,
    after_sighting,
    judge,
    next_move,
)
from payonce.core.errors import LedgerError, PayonceError, UsageError
from payonce.core.model import SECOND_US, BatchSpec, Item, NewItem, OpenIntent, Request, Worker
from payonce.core.outcome import Executed, Found, LookupFailed, NotExecuted, Outcome, Reply, Unresolved
from payonce.core.states import ItemEvent, ItemState
from payonce.engine.changes import change_for, evidence_of_found, evidence_of_reply, failed_lookup
from payonce.service.pythonic import check_item
from payonce.service.single_call import Guarded, LookUpDue, OnceCall
from payonce.service.single_desk import Desk

_ATTEMPTS: Final = 5
_WITH_MONEY: Final = frozenset({"refund", "payout", "invoice"})


class Entry:
    """One entry into the body and the way out of it; used once. ``call`` is what was granted, maybe not yet durably."""

    __slots__ = ("__weakref__", "_guarded", "_pid", "_resend", "_started_us", "_worker", "call")

    def __init__(self, guarded: Guarded) -> None:
        self.call: OnceCall | None = None
        self._guarded = guarded
        self._pid = os.getpid()
        self._resend = False
        self._started_us = 0
        self._worker: Worker | None = None

    def entered(self) -> None:
        """The body begins."""
        self._started_us = time.time_ns() // 1000

    @property
    def has_to_record(self) -> bool:
        """Whether there is an intent to answer for. A forked child that comes out of the body has none: its parent
        has it."""
        return self.call is not None and not self.call.done and self._pid == os.getpid()

    def open(self, desk: Desk) -> OnceCall | LookUpDue:
        """One step towards the body: the call, or the look-up that has to come first."""
        name = self._guarded.name
        if name in desk.active:
            raise self._guarded.busy("another task of this process has it")
        desk.active[name] = self
        try:
            found = self._step(desk)
        except PayonceError:
            desk.leave(name, self)
            raise
        if not isinstance(found, OnceCall) or found.done:
            desk.leave(name, self)
        return found

    def _step(self, desk: Desk) -> OnceCall | LookUpDue:
        """A new item is the most frequent one, so it is not looked for: the ledger refuses an id that is there."""
        guarded = self._guarded
        new = NewItem(guarded.item, guarded.money, target=guarded.target, fields=guarded.fields)
        check_item(new, needs_money=guarded.declaration.operation in _WITH_MONEY)
        try:
            return self._first(desk, new)
        except LedgerError:
            raise
        except PayonceError:
            item = desk.item(guarded.batch, guarded.item)
            if item is None:
                raise
        return self._again(desk, item)

    def _first(self, desk: Desk, new: NewItem) -> OnceCall:
        """A new item: added to its batch and its intent written in one transaction, so that it costs one wait for the
        disk. A crash before its end leaves no item, after it a pending one."""
        guarded = self._guarded
        with desk.together():
            spec = _spec(guarded.batch, guarded.declaration.operation, guarded.namespace)
            n = desk.store.add(spec, [new], seal=None, actor=desk.actor).items
            item = Item(n, new.id, new.target or new.id, new.money, new.fields)
            return self._granted(desk, item, ItemEvent.INTENT, guarded.key(item))

    def _again(self, desk: Desk, item: Item) -> OnceCall | LookUpDue:
        """An item that was entered before, here or elsewhere."""
        guarded = self._guarded
        guarded.compare(item)
        match item.state:
            case ItemState.COMMITTED:
                self.call = OnceCall(item, None, guarded.batch, done=True, reference=item.reference)
                return self.call
            case ItemState.UNKNOWN:
                raise guarded.unknown(item.code or "unknown", item.message or "")
            case ItemState.REFUSED | ItemState.SKIPPED:
                raise guarded.refused(item)
            case ItemState.PENDING:
                return self._resolve(desk, item)
            case ItemState.PLANNED:
                return self._granted(desk, item, ItemEvent.INTENT, guarded.key(item))

    def _resolve(self, desk: Desk, item: Item) -> OnceCall | LookUpDue:
        guarded = self._guarded
        worker = desk.worker(guarded.batch, lease_us=guarded.lease_us)
        desk.store.take_over(worker, limit=1000)
        found = desk.store.open_intents(guarded.batch, [item.n])
        if not found or found[0].fence != worker.fence:
            raise guarded.busy("another process has it")
        intent, now = found[0], desk.now_us()
        move = next_move(intent, guarded.declaration, attempts=_ATTEMPTS, now_us=now)
        match move:
            case GiveUp(code, message):
                desk.store.write(worker, [change_for(move, item=intent.item, data={}, now_us=now)])
                raise guarded.unknown(code, message)
            case LookUp(at_us):
                return LookUpDue(intent, at_us, now)
            case SendAgain() | SendNext():
                return self._granted(desk, intent.item, ItemEvent.RESEND, intent.key)

    def looked_up(self, desk: Desk, *, intent: OpenIntent, reply: Any) -> None:
        """Writes down what a look-up showed; the next step reads it from the ledger."""
        guarded = self._guarded
        worker = desk.worker(guarded.batch, lease_us=guarded.lease_us)
        now, item = desk.now_us(), intent.item
        if isinstance(reply, list | tuple):
            reply = Found(tuple(reply))
        if not isinstance(reply, Found):
            failed = reply if isinstance(reply, LookupFailed) else LookupFailed("no_list", "the look-up gave no list")
            desk.store.write(worker, [failed_lookup(failed, item=item, now_us=now, wait_us=SECOND_US)])
            return
        references = [e.reference for e in reply.executions]
        claimed = desk.store.claimed_references(guarded.batch, references)
        here = desk.store.claimed_references(guarded.batch, references, target=item.target) if claimed else claimed
        sighting = judge(reply, intent, guarded.declaration, claimed=claimed, elsewhere=claimed - here)
        verdict = after_sighting(sighting, intent, guarded.declaration, attempts=_ATTEMPTS, now_us=now)
        data = evidence_of_found(reply)
        if isinstance(verdict, SendAgain):
            # Proven absent: back to planned under the same key, so that the next step enters the body.
            verdict = PlanAgain("proven_absent", "the look-up shows no execution")
        change = change_for(verdict, item=item, data=data, now_us=now, lookups=1)
        desk.store.write(worker, [replace(change, not_before_us=0)])

    def _granted(self, desk: Desk, item: Item, event: ItemEvent, key: str | None) -> OnceCall:
        """The call, once its intent is written."""
        guarded = self._guarded
        worker = desk.worker(guarded.batch, lease_us=guarded.lease_us)
        # From here on it may become durable, so that an entry that is broken off has something to give back.
        self._worker, self._resend = worker, event is ItemEvent.RESEND
        self.call = OnceCall(item, key, guarded.batch)
        deadline = desk.now_us() + guarded.settings.timeout_us
        intend = Intend(
            item.n,
            event,
            item.generation,
            item.step,
            key,
            Request("CALL", f"once:{guarded.declaration.operation}"),
            send_by_us=deadline,
            deadline_us=deadline,
            new_key=not self._resend,
        )
        (landed,) = desk.store.write(worker, [intend])
        if landed is not Landed.LANDED:
            if landed is Landed.STALE:
                desk.forget(worker)  # maybe others have declared it dead
            raise guarded.busy(f"the ledger says {landed.value}")
        return self.call

    def withdraw(self, desk: Desk) -> None:
        """The body was never entered, so surely nothing was executed by this grant, if it became durable at all: it is
        given back. One that repeats an earlier call stays pending, since that one may have been executed."""
        name, call = self._guarded.name, self.call
        if desk.active.get(name) is not self:
            return
        try:
            if call is not None and not self._resend:
                found = desk.item(*name)
                if found is not None and (found.n, found.state) == (call.item.n, ItemState.PENDING):
                    call.outcome = NotExecuted("not_sent", "broken off before the body was entered", load=True)
                    self._write(desk, self._change(desk, call.outcome))
        finally:
            desk.leave(name, self)

    def record(self, desk: Desk, *, fault: BaseException | None) -> None:
        """What the body reported becomes durable; a body that reported nothing may have done it.

        A second time, after one that was broken off, changes nothing that the first has written."""
        call, guarded = self.call, self._guarded
        assert call is not None, "left before it was entered"
        outcome = call.outcome
        if outcome is None:
            name = "no_outcome" if fault is None else f"exception:{type(fault).__name__}"
            outcome = Unresolved(name, "" if fault is None else str(fault)[:300])
        try:
            if self._write(desk, self._change(desk, outcome)) is not Landed.LANDED:
                self._compare_recorded(desk, outcome)
        except PayonceError:
            desk.leave(guarded.name, self)
            raise
        desk.leave(guarded.name, self)
        if call.outcome is None and fault is None:
            raise UsageError(
                f"the body reported no outcome for item {guarded.item}, so it counts as may have been executed",
                code="no_outcome",
                hint="call.executed(reference) or call.report(...) before the block ends",
            )

    def _change(self, desk: Desk, outcome: Outcome) -> Change:
        assert self.call is not None
        declaration, item = self._guarded.declaration, self.call.item
        verdict = after_reply(
            outcome, item=item, declaration=declaration, resend=self._resend, replayed=False, attempts=_ATTEMPTS
        )
        if isinstance(verdict, Doubt) and not (declaration.key or declaration.lookup):
            verdict = GiveUp(verdict.code, verdict.message)
        data = evidence_of_reply(Reply(outcome, started_us=self._started_us, ended_us=time.time_ns() // 1000))
        return change_for(verdict, item=item, data=data, now_us=desk.now_us())

    def _write(self, desk: Desk, change: Change) -> Landed:
        """By the worker that wrote the intent, whatever its lease: while nobody took the item over, its word counts."""
        assert self._worker is not None
        return desk.store.write(self._worker, [change])[0]

    def _compare_recorded(self, desk: Desk, outcome: Outcome) -> None:
        """The item is no longer this process's. Raises where that loses an execution that the body has reported."""
        if not isinstance(outcome, Executed):
            return
        found = desk.item(*self._guarded.name)
        if found is None or (found.state, found.reference) != (ItemState.COMMITTED, outcome.reference):
            raise self._guarded.unknown("not_recorded", f"{outcome.reference} came after the item's lease was over")


@functools.lru_cache(maxsize=64)
def _spec(batch: str, operation: str, namespace: str) -> BatchSpec:
    return BatchSpec(batch, operation, "python", namespace=namespace, targets=True)
