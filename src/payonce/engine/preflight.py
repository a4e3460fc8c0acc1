"""The read of an item's target just before its first call, where the adapter offers one (SPEC section 9).

It executes nothing, so it needs no intent and leaves nothing behind: a crash here leaves a planned item, which is read
again. What does not fit is refused with its reason, and the others go on. What could not be read is not called read: its
item waits and is read again, within the bounds of a call. A read keeps to the batch's rate, waits and concurrency.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from payonce.core.backoff import LONGEST_WAIT_US, full_jitter_us
from payonce.core.commands import BatchCommand, Control, StopBatch
from payonce.core.decide import (
    Absent,
    GiveUp,
    LeaveOut,
    PlanAgain,
    Refuse,
    SomeoneElses,
    after_reply,
    after_sighting,
    judge,
)
from payonce.core.events import plain
from payonce.core.model import Item, OpenIntent
from payonce.core.outcome import LookupFailed, NotExecuted
from payonce.core.overlap import Acting, same_account
from payonce.core.preflight import ACTED_OUTSIDE, OWN_EXECUTION, acted_outside
from payonce.core.sighting import under_our_mark
from payonce.core.states import BatchState, ItemState
from payonce.engine.changes import evidence_of_found
from payonce.engine.session import Session
from payonce.providers.protocol import Preflight

Record = Callable[[Item, Refuse | LeaveOut | GiveUp, dict[str, Any]], Awaitable[None]]
# Items in these states may show at the provider.
_SHOWS: Final = (ItemState.PENDING, ItemState.COMMITTED, ItemState.UNKNOWN)


@dataclass(slots=True)
class TargetCheck:
    """Asks before first calls. One a session; ``record`` makes a refusal durable and hands the item back, ``key`` is the
    key an item's call will have."""

    session: Session
    calls: asyncio.Semaphore
    record: Record
    key: Callable[[Item], str | None]
    _failures: dict[int, int] = field(default_factory=dict)
    _ledger: _LedgerReads | None = None

    async def lets_through(self, item: Item) -> bool:
        """Whether the item's first call may be made; otherwise the item has been refused, or handed back.

        Items that were sent before are not read: their call, or the provider's look-up, tells more.
        """
        if item.attempts:
            return True
        session = self.session
        await session.pacer.turn()
        async with self.calls:
            if session.stop.is_set:
                session.schedule.drop(item.n, item.target)
                return False
            found = await self._read(item)
        if found is None:
            return True
        if found.unread is not None:
            await self._wait(item, found.unread)
            return False
        session.pacer.accepted()
        session.heard_us, session.trouble = session.time.now_us(), None
        self._failures.pop(item.n, None)
        return await self._judged(item, found)

    async def _read(self, item: Item) -> Preflight | None:
        session = self.session
        try:
            return await session.provider.preflight(item, timeout_us=session.timeout_us)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            failed = LookupFailed("exception:CancelledError", "the read was cancelled from within")
            return Preflight(False, failed.code, failed.message, unread=failed)

    async def _judged(self, item: Item, found: Preflight) -> bool:
        code, message = found.code or "target_refused", found.message or "the target does not fit"
        evidence = {"preflight": plain(dict(found.data))}
        if found.ok:
            outside = await self._outside(item, found)
            if outside is None:
                return True
            if self.session.declaration.lookup is not None and await self._is_held(item, evidence):
                return False
            if item.code == ACTED_OUTSIDE or self.session.batch.spec.config.get("allow_overlap"):
                return True  # a person has seen it, and put it back or allowed it beforehand
            code, message = ACTED_OUTSIDE, outside
        elif found.stop:
            await self._stop(StopBatch(code, message))
            self.session.schedule.drop(item.n, item.target)
            return False
        elif found.already and self.session.declaration.lookup is not None:
            return await self._done_already(item, Refuse(code, message), evidence)
        await self._refuse(item, Refuse(code, message), evidence)
        return False

    async def _refuse(self, item: Item, verdict: Refuse | LeaveOut | GiveUp, evidence: dict[str, Any]) -> None:
        """Records it. A tripwire it may have sprung is heeded at once: no intent is there to be turned away."""
        session = self.session
        await self.record(item, verdict, evidence)
        if session.limits.stop_after_refusals is None and session.limits.stop_after_consecutive is None:
            return
        (batch,) = await session.ledger.batches(session.batch.spec.id)
        if batch.state is BatchState.STOPPED:
            session.stopped_by(StopBatch(batch.reason_code or "stopped", batch.reason or ""))

    async def _done_already(self, item: Item, refusal: Refuse, evidence: dict[str, Any]) -> bool:
        """The target has been used up: a look-up tells by whom. By this very item, whose ledger was lost: its call finds
        out, under the same key. By somebody else and over exactly this amount: left out. Otherwise it does not fit."""
        session, key = self.session, self.key(item)
        async with self.calls:
            reply = await session.provider.lookup(item, key=key, step=0, timeout_us=session.timeout_us)
        if isinstance(reply, LookupFailed):
            await self._wait(item, reply)
            return False
        references = [execution.reference for execution in reply.executions]
        claimed = await session.ledger.claimed_references(session.batch.spec.id, references) if references else ()
        now = session.time.now_us()
        asked = OpenIntent(
            item, key, None, now, now, now, now, session.worker.fence, seen_us=now, already_done=True, intent=False
        )
        sighting = judge(reply, asked, session.declaration, claimed=frozenset(claimed))
        if not isinstance(sighting, SomeoneElses | Absent):
            return True
        verdict = after_sighting(
            sighting, asked, session.declaration, attempts=session.limits.attempts, now_us=session.time.now_us()
        )
        left_out = verdict if isinstance(verdict, LeaveOut) else refusal
        await self._refuse(item, left_out, evidence | evidence_of_found(reply))
        return False

    async def _is_held(self, item: Item, evidence: dict[str, Any]) -> bool:
        """One look-up after a read that shows an outside use: whether the item is not sent now. An execution under its own
        reference or key is never paid again, whoever allows it: a ledger was lost, and a person says what it is."""
        session, key = self.session, self.key(item)
        await session.pacer.turn()
        async with self.calls:
            reply = await session.provider.lookup(item, key=key, step=0, timeout_us=session.timeout_us)
        if isinstance(reply, LookupFailed):
            await self._wait(item, reply)
            return True
        references = [execution.reference for execution in reply.executions]
        batch = session.batch.spec.id
        # An item on another target may carry the same reference: that does not make an execution under our mark its own.
        known = await session.ledger.claimed_references(batch, references, target=item.target) if references else ()
        own = under_our_mark(reply, item, key=key, claimed=frozenset(known))
        if not own:
            return False
        shown = ", ".join(f"{one.reference}" + (f" over {one.money}" if one.money else "") for one in own)
        text = f"the provider shows {shown} under this item's own reference or key, and this ledger does not know it"
        await self._refuse(item, GiveUp(OWN_EXECUTION, text), evidence | evidence_of_found(reply))
        return True

    async def _outside(self, item: Item, found: Preflight) -> str | None:
        """What was done to the target that no batch of this ledger did, in words; None where there is nothing.

        The ledger is read after the provider, and an intent is there before its call: whatever of ours the provider
        showed, the ledger shows.
        """
        session = self.session
        if not found.touched:
            return None
        if self._ledger is None:
            self._ledger = _LedgerReads(session)
        names = tuple(dict.fromkeys((item.target, *found.names)))
        ours = [one for one in await self._ledger.acting_on(names) if one.state in _SHOWS]
        return acted_outside(item.target, taken=found.taken, ours=ours)

    async def _wait(self, item: Item, failed: LookupFailed) -> None:
        """The target could not be read: later again, as after a call that was surely not executed."""
        session = self.session
        if failed.stop:
            await self._stop(StopBatch(failed.code, f"the target could not be read: {failed.message}"))
            session.schedule.drop(item.n, item.target)
            return
        tries = self._failures.get(item.n, 0)
        outcome = NotExecuted(failed.code, failed.message, failed.load, failed.retry_after_us)
        verdict = after_reply(
            outcome,
            item=replace(item, spent=tries),
            declaration=session.declaration,
            resend=False,
            replayed=False,
            attempts=session.limits.attempts,
        )
        if isinstance(verdict, Refuse):
            self._failures.pop(item.n, None)
            text = f"the target could not be read {tries + 1} times, so nothing was sent; {verdict.message}"
            await self._refuse(item, Refuse(verdict.code, text), {"preflight": {"unread": failed.code}})
            return
        assert isinstance(verdict, PlanAgain), "a read that failed executed nothing"
        if failed.load:
            wait = session.pacer.refused(retry_after_us=failed.retry_after_us, is_rate=failed.code == "rate_limited")
        else:
            self._failures[item.n] = tries + 1
            wait = full_jitter_us(tries + 1, rand=session.clock.rand())
        wait = max(wait, min(failed.retry_after_us or 0, LONGEST_WAIT_US))
        stop = session.patience(verdict)
        if stop is not None:
            await self._stop(stop)
        session.schedule.again(replace(item, not_before_us=session.time.now_us() + wait))

    async def _stop(self, stop: StopBatch) -> None:
        """Every further item would meet the same: no new call, on any worker."""
        session = self.session
        session.stopped_by(stop)
        control = Control(BatchCommand.STOP, code=stop.code, reason=stop.message)
        await session.ledger.control(session.batch.spec.id, control, actor=session.actor, worker=session.worker)


class _LedgerReads:
    """What the ledger's batches of the same account did to some targets. One reading at a time, for all that wait."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: list[tuple[tuple[str, ...], asyncio.Future[list[Acting]]]] = []
        self._reading = asyncio.Lock()

    async def acting_on(self, names: tuple[str, ...]) -> list[Acting]:
        """The items, of every batch of the account, that act on one target under any of its names."""
        answer: asyncio.Future[list[Acting]] = asyncio.get_running_loop().create_future()
        self._waiting.append((names, answer))
        async with self._reading:
            if not answer.done():
                await self._answer()
        return await answer

    async def _answer(self) -> None:
        asked, self._waiting = self._waiting, []
        try:
            found = await self._read(tuple({name for names, _ in asked for name in names}))
        except BaseException:
            self._waiting += asked  # each of the others asks for itself, and meets its own error
            raise
        for names, answer in asked:
            if not answer.done():
                answer.set_result([one for one in found if one.target in names])

    async def _read(self, names: Sequence[str]) -> list[Acting]:
        session = self._session
        spec = session.batch.spec
        found: list[Acting] = []
        for batch in await session.ledger.batches():
            if batch.spec.id == spec.id or same_account(spec, batch.spec):
                found += await session.ledger.acting_on(batch.number, names)
        return found
