"""One guarded call inside someone else's job: a Celery task, an Airflow task, an agent's tool.

The item is added to an open batch, its intent is durable before the body runs, and what the body reports is durable
before the block is left. A crash inside the body leaves a pending item; entering again resolves it by the same rules as
any run (look-up, then the same key inside its window, else it is unknown and an error says so). The body is never
entered again for an item that was executed.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Final, TypeVar

from payonce.core.commands import Command, Intend, Landed
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
from payonce.core.errors import SealedError, UsageError
from payonce.core.keys import derive_key
from payonce.core.model import SECOND_US, BatchSpec, Declaration, Item, NewItem, OpenIntent, Request, Worker
from payonce.core.money import Money
from payonce.core.outcome import Executed, Found, LookupFailed, NotExecuted, Outcome, Reply, Unresolved
from payonce.core.states import ItemEvent, ItemState
from payonce.engine.changes import change_for, evidence_of_found, evidence_of_reply, failed_lookup
from payonce.providers.python_operation import Call, OperationSettings
from payonce.service.pythonic import check_items
from payonce.service.single_desk import MARGIN_US, Desk, ItemBusy, ItemRefused, ItemUnknown, desk_of

_ATTEMPTS: Final = 5
_LONGEST_WAIT_US: Final = 120 * SECOND_US
# So long a task waits for another of this process to leave, which takes a moment after a cancel; then it is told.
_LEAVING_S: Final = 1.0
_LOOK_S: Final = 0.02
T = TypeVar("T")


@dataclass(slots=True)
class OnceCall:
    """What the body sees. ``done``: an earlier call executed it, ``reference`` is its; the body has nothing to do.

    Otherwise the body makes the call with ``key`` and reports one outcome: ``call.report(payonce.Executed(...))``, or
    for short ``call.executed("re_1")``.
    """

    item: Item
    key: str | None
    batch: str
    done: bool = False
    reference: str | None = None
    outcome: Outcome | None = None

    @property
    def money(self) -> Money | None:
        """The item's amount."""
        return self.item.money

    def report(self, outcome: Outcome) -> None:
        """What became of the call. Once; a second, different report is an error of the caller."""
        if self.done or (self.outcome is not None and self.outcome != outcome):
            raise UsageError(f"item {self.item.id} was reported already", code="reported_twice", hint="report once")
        self.outcome = outcome

    def executed(self, reference: str, *, billed: Money | None = None, **kept: Any) -> None:
        """The far side executed it: its reference, and what it billed if it says so."""
        self.report(Executed(reference, billed, kept=kept))
        self.reference = reference


@dataclass(frozen=True, slots=True)
class LookUpDue:
    """The body may not be entered before this item was looked up, which proves nothing before ``at_us``."""

    intent: OpenIntent
    at_us: int
    now_us: int


@dataclass(slots=True)
class Once:
    """Guards one call; see the module's text. Both ``with`` and ``async with``.

    ``key``, ``retention``, ``lookup``, ``lag``, ``max_execution`` are what the far side promises, as for
    ``payonce.operation``. ``timeout_us`` is how long the body may take at most. Raises ItemUnknown, ItemBusy,
    ItemRefused (nothing is sent), LedgerError (nothing is sent, or what was done is pending).
    """

    ledger: str
    batch: str
    item: str
    money: Money | None = None
    target: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    settings: OperationSettings = OperationSettings()
    operation: str = "call"
    namespace: str = "payonce"
    _call: OnceCall | None = None
    _resend: bool = False
    _started_us: int = 0

    @property
    def _declaration(self) -> Declaration:
        return self.settings.declaration(self.operation)

    # entering

    def __enter__(self) -> OnceCall:
        desk = desk_of(self.ledger)
        until_s = time.monotonic() + _LEAVING_S
        while self._is_here(desk) and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
        found = desk.call(self._open)
        while not isinstance(found, OnceCall):
            time.sleep(self._wait(found))
            seen = functools.partial(self._looked_up, intent=found.intent, reply=self._ask(found.intent))
            desk.call(seen)
            found = desk.call(self._open)
        return self._entered(found)

    async def __aenter__(self) -> OnceCall:
        desk = desk_of(self.ledger)
        until_s = time.monotonic() + _LEAVING_S
        while self._is_here(desk) and time.monotonic() < until_s:  # noqa: ASYNC110 - it leaves in another thread
            await asyncio.sleep(_LOOK_S)
        found = await self._opened(desk)
        while not isinstance(found, OnceCall):
            await asyncio.sleep(self._wait(found))
            answer = self._ask(found.intent)
            reply = await answer if inspect.isawaitable(answer) else answer
            await desk.call_async(functools.partial(self._looked_up, intent=found.intent, reply=reply))
            found = await self._opened(desk)
        return self._entered(found)

    def _is_here(self, desk: Desk) -> bool:
        """Whether a task of this process has the item. One that was cancelled may be on its way out: its record takes
        a moment."""
        return (self.batch, self.item) in desk.active

    async def _opened(self, desk: Desk) -> OnceCall | LookUpDue:
        """``_open``; a task that is cancelled meanwhile gives back what was granted to it."""
        opening = desk.submit(self._open)
        try:
            return await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(functools.partial(self._give_back, desk))
            raise

    def _give_back(self, desk: Desk, opening: Future[OnceCall | LookUpDue]) -> None:
        """The body was never entered, so surely nothing was executed by this grant."""
        granted = None if opening.cancelled() or opening.exception() else opening.result()
        if isinstance(granted, OnceCall) and not granted.done:
            granted.outcome = NotExecuted("not_sent", "cancelled before the body was entered", load=True)
            self._entered(granted)
            desk.submit(functools.partial(self._record, fault=None))

    def _entered(self, call: OnceCall) -> OnceCall:
        self._call, self._started_us = call, time.time_ns() // 1000
        return call

    def _wait(self, due: LookUpDue) -> float:
        """Seconds until the look-up proves something. Raises ItemBusy where that is too long to wait for here."""
        wait_us = max(0, due.at_us - due.now_us)
        if wait_us > _LONGEST_WAIT_US:
            raise ItemBusy(
                f"item {self.item} may still be executing; ask again in {wait_us // SECOND_US} s",
                code="item_busy",
                hint="enter again later",
            )
        return wait_us / SECOND_US

    def _ask(self, intent: OpenIntent) -> Any:
        lookup = self.settings.lookup
        assert lookup is not None, "a look-up is due only where one is declared"
        try:
            return lookup(Call(intent.item, intent.key, self.batch, attempt=intent.item.attempts))
        except Exception as fault:
            return LookupFailed(f"exception:{type(fault).__name__}", str(fault)[:300])

    def _open(self, desk: Desk) -> OnceCall | LookUpDue:
        """One step towards the body: the call, or the look-up that has to come first."""
        name = (self.batch, self.item)
        if name in desk.active:
            raise self._busy("another task of this process has it")
        item = desk.item(self.batch, self.item)
        if item is None:
            try:
                return self._first(desk)
            except UsageError as taken:  # another process was quicker by a moment: nothing was written here
                item = desk.item(self.batch, self.item) if taken.code == "duplicate_item" else None
                if item is None:
                    raise
        self._compare(item)
        if item.state is ItemState.COMMITTED:
            return OnceCall(item, None, self.batch, done=True, reference=item.reference)
        if item.state is ItemState.UNKNOWN:
            raise self._unknown(item.code or "unknown", item.message or "")
        if item.state in (ItemState.REFUSED, ItemState.SKIPPED):
            raise ItemRefused(
                f"item {self.item} is {item.state.value}: {item.code} {item.message or ''}",
                code=f"item_{item.state.value}",
                hint=f"payonce retry {self.batch} {self.item} --reason ... puts it back",
            )
        worker = desk.worker(self.batch, lease_us=self._lease_us)
        if item.state is ItemState.PENDING:
            return self._resolve(desk, worker, item)
        key = self._key(item)
        self._intend(desk, worker, item, ItemEvent.INTENT, key)
        return self._granted(desk, item, key, resend=False)

    def _first(self, desk: Desk) -> OnceCall:
        """A new item: added to its batch and its intent written in one transaction, so that it costs one wait for the
        disk. A crash before its end leaves no item, after it a pending one."""
        (new,) = check_items(
            [NewItem(self.item, self.money, target=self.target, fields=self.fields)],
            needs_money=self.operation in ("refund", "payout", "invoice"),
            max_amount={},
        ).items
        spec = BatchSpec(self.batch, self.operation, "python", namespace=self.namespace, targets=True)
        with desk.together(self.batch):
            n = desk.store.amend(spec, [new], seal=None, actor=desk.actor).items
            item = Item(n, new.id, new.target or new.id, new.money, new.fields)
            key = self._key(item)
            worker = desk.worker(self.batch, lease_us=self._lease_us)
            self._intend(desk, worker, item, ItemEvent.INTENT, key)
        return self._granted(desk, item, key, resend=False)

    def _compare(self, found: Item) -> None:
        """Refuses another amount or target than the item was added with."""
        if (found.money, found.target) != (self.money, self.target or self.item):
            raise SealedError(
                f"item {self.item} was {found.money} on {found.target}, now it is {self.money} on "
                f"{self.target or self.item}",
                code="item_changed",
                hint="an item never changes; use another item id for another payment",
            )

    def _resolve(self, desk: Desk, worker: Worker, item: Item) -> OnceCall | LookUpDue:
        desk.store.take_over(worker, limit=1000)
        found = desk.store.open_intents(self.batch, [item.n])
        if not found or found[0].fence != worker.fence:
            raise self._busy("another process has it")
        intent, now = found[0], desk.now_us()
        move = next_move(intent, self._declaration, attempts=_ATTEMPTS, now_us=now)
        match move:
            case GiveUp(code, message):
                self._write(desk, worker, change_for(move, item=intent.item, data={}, now_us=now))
                raise self._unknown(code, message)
            case LookUp(at_us):
                return LookUpDue(intent, at_us, now)
            case SendAgain() | SendNext():
                return self._again(desk, worker, intent)

    def _again(self, desk: Desk, worker: Worker, intent: OpenIntent) -> OnceCall:
        self._intend(desk, worker, intent.item, ItemEvent.RESEND, intent.key)
        return self._granted(desk, intent.item, intent.key, resend=True)

    def _looked_up(self, desk: Desk, *, intent: OpenIntent, reply: Any) -> None:
        """Writes down what a look-up showed; the next step reads it from the ledger."""
        worker = desk.worker(self.batch, lease_us=self._lease_us)
        now, item = desk.now_us(), intent.item
        if isinstance(reply, list | tuple):
            reply = Found(tuple(reply))
        if not isinstance(reply, Found):
            failed = reply if isinstance(reply, LookupFailed) else LookupFailed("no_list", "the look-up gave no list")
            self._write(desk, worker, failed_lookup(failed, item=item, now_us=now, wait_us=SECOND_US))
            return
        claimed = desk.store.claimed_references(self.batch, [e.reference for e in reply.executions])
        sighting = judge(reply, intent, self._declaration, claimed=claimed)
        verdict = after_sighting(sighting, intent, self._declaration, attempts=_ATTEMPTS, now_us=now)
        data = evidence_of_found(reply)
        if isinstance(verdict, SendAgain):
            # Proven absent: back to planned under the same key, so that the next step enters the body.
            verdict = PlanAgain("proven_absent", "the look-up shows no execution")
        change = change_for(verdict, item=item, data=data, now_us=now, lookups=1)
        self._write(desk, worker, replace(change, not_before_us=0))

    def _granted(self, desk: Desk, item: Item, key: str | None, *, resend: bool) -> OnceCall:
        desk.active.add((self.batch, self.item))
        self._resend = resend
        return OnceCall(item, key, self.batch)

    @property
    def _lease_us(self) -> int:
        return self.settings.timeout_us + MARGIN_US

    def _key(self, item: Item) -> str | None:
        declared = self._declaration.key
        if declared is None:
            return None
        return derive_key(
            declared.format,
            namespace=self.namespace,
            batch=self.batch,
            operation=self.operation,
            step="call",
            item=item.id,
            generation=item.generation,
        )

    def _intend(self, desk: Desk, worker: Worker, item: Item, event: ItemEvent, key: str | None) -> None:
        now = desk.now_us()
        deadline = now + self.settings.timeout_us
        request = Request("CALL", f"once:{self.operation}")
        landed = self._write(
            desk,
            worker,
            Intend(
                item.n,
                event,
                item.generation,
                item.step,
                key,
                request,
                send_by_us=deadline,
                deadline_us=deadline,
                new_key=event is ItemEvent.INTENT,
            ),
        )
        if landed is not Landed.LANDED:
            raise self._busy(f"the ledger says {landed.value}")

    def _write(self, desk: Desk, worker: Worker, command: Command) -> Landed:
        return desk.store.write(worker, [command])[0]

    def _busy(self, why: str) -> ItemBusy:
        return ItemBusy(f"item {self.item} is in work: {why}", code="item_busy", hint="enter again later")

    def _unknown(self, code: str, message: str) -> ItemUnknown:
        return ItemUnknown(
            f"item {self.item} may have been executed ({code}: {message})",
            code="item_unknown",
            hint=f"find out, then payonce resolve {self.batch} {self.item} --as committed|refused|planned --reason ...",
        )

    # leaving

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._has_to_record():
            desk_of(self.ledger).call(functools.partial(self._record, fault=fault))

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._has_to_record():
            await asyncio.shield(desk_of(self.ledger).call_async(functools.partial(self._record, fault=fault)))

    def _has_to_record(self) -> bool:
        return self._call is not None and not self._call.done

    def _record(self, desk: Desk, *, fault: BaseException | None) -> None:
        """What the body reported becomes durable; a body that reported nothing may have done it."""
        call = self._call
        assert call is not None, "left before it was entered"
        outcome, forgot = call.outcome, fault is None and call.outcome is None
        if outcome is None:
            name = "no_outcome" if fault is None else f"exception:{type(fault).__name__}"
            outcome = Unresolved(name, "" if fault is None else str(fault)[:300])
        worker = desk.worker(self.batch, lease_us=self._lease_us)
        now = desk.now_us()
        verdict = after_reply(
            outcome,
            item=call.item,
            declaration=self._declaration,
            resend=self._resend,
            replayed=False,
            attempts=_ATTEMPTS,
        )
        if isinstance(verdict, Doubt) and not (self._declaration.key or self._declaration.lookup):
            verdict = GiveUp(verdict.code, verdict.message)
        data = evidence_of_reply(Reply(outcome, started_us=self._started_us, ended_us=time.time_ns() // 1000))
        try:
            self._write(desk, worker, change_for(verdict, item=call.item, data=data, now_us=now))
        finally:
            desk.active.discard((self.batch, self.item))
        if forgot:
            raise UsageError(
                f"the body reported no outcome for item {self.item}, so it counts as may have been executed",
                code="no_outcome",
                hint="call.executed(reference) or call.report(...) before the block ends",
            )
