"""One call for one item: intent, gate, send, verdict, record. Also the resolution of pending items: the same calls.

The order is the safety: the intent is durable before the request is handed to the provider; the gate is asked at the
last moment (lease, send-by, stop); what became of it is durable before the item is let go. Whatever is interrupted in
between leaves the item pending with its intent, and ``resolve`` is the only way on, in this run and in the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from payonce.core.backoff import LONGEST_WAIT_US, full_jitter_us
from payonce.core.commands import Change, Intend, Landed, StopBatch
from payonce.core.decide import (
    Commit,
    Doubt,
    GiveUp,
    LeaveOut,
    LookUp,
    NextStep,
    Ours,
    PayAgain,
    PlanAgain,
    Refuse,
    SendAgain,
    SendNext,
    Verdict,
    after_gate,
    after_reply,
    after_sighting,
    judge,
    key_is_usable,
    next_move,
    with_the_answer,
)
from payonce.core.errors import ConfigError, LedgerError
from payonce.core.keys import KeyMaker
from payonce.core.model import SECOND_US, Finding, Item, OpenIntent, Request
from payonce.core.outcome import Executed, Found, LookupFailed, LookupReply, NotExecuted, Reply, Stop, Unresolved
from payonce.core.states import ItemEvent
from payonce.engine.changes import (
    NOTHING_KEPT,
    change_for,
    evidence_of_found,
    evidence_of_reply,
    failed_lookup,
    is_of_call,
    kept_request,
    kept_response,
)
from payonce.engine.crashpoints import hit
from payonce.engine.evidence import Evidence
from payonce.engine.preflight import TargetCheck
from payonce.engine.schedule import Task
from payonce.engine.session import Session

# What an adapter answers where its gate refused.
_NOT_SENT: Final = Reply(NotExecuted("not_sent"), sent=False)


@dataclass(slots=True)
class Caller:
    """Works on items for one session. Many of its coroutines run at once; each has one item in hand."""

    session: Session
    keys: KeyMaker | None
    calls: asyncio.Semaphore
    check: TargetCheck | None = None
    evidence: Evidence | None = None

    async def work(self, task: Task) -> None:
        """Takes one piece of work to where it can go now, and hands it back to the schedule."""
        if task.item is None:
            await self._resolve(task)
        else:
            await self._first(task.item)

    # a first call

    async def _first(self, item: Item) -> None:
        session = self.session
        if self.check is not None and not await self.check.lets_through(item):
            return
        if not session.pacer.is_free:
            await session.pacer.turn()
        key = self.key(item)
        try:
            request = session.provider.prepare(item, key=key, step=item.step)
        except ConfigError as fault:
            session.pacer.unused()
            await self._record(item, Refuse(fault.code, fault.message), {})
            return
        hit("before_intent")
        if session.intents_wait_for_call:
            async with self.calls:
                if await self._intend(item, ItemEvent.INTENT, key, request, new_key=True):
                    reply = await self._send(item, key, request)
                else:
                    return
        else:
            if not await self._intend(item, ItemEvent.INTENT, key, request, new_key=True):
                return
            async with self.calls:
                reply = await self._send(item, key, request)
        await self._after(item, key, reply, resend=False)

    def key(self, item: Item) -> str | None:
        """The key of the item's present step; None where the provider has no keys."""
        if self.keys is None:
            return None
        step = self.session.declaration.steps[item.step]
        return self.keys.key(item.id, step=step, generation=item.generation)

    async def _intend(self, item: Item, event: ItemEvent, key: str | None, request: Request, *, new_key: bool) -> bool:
        """Makes the intent durable; where it does not land, hands the item back and says no."""
        session = self.session
        if session.stop.is_set:
            self._let_go(item, event)
            return False
        now = session.time.now_us()
        self.session.send_by[item.n] = now + session.send_window_us
        landed = await session.ledger.write(
            session.worker,
            Intend(
                item.n,
                event,
                item.generation,
                item.step,
                key,
                request,
                send_by_us=now + session.send_window_us,
                deadline_us=now + session.send_window_us + session.timeout_us,
                asked_us=now,
                reserve=session.reserve_for(item, request),
                new_key=new_key,
                payloads=kept_request(session.payloads, request),
            ),
        )
        if landed is Landed.LANDED:
            hit("after_intent")
            return True
        session.not_landed(item, landed)
        session.pacer.unused()
        if landed is Landed.TARGET_BUSY and event is ItemEvent.INTENT:
            session.schedule.drop_target(item.n, item.target)
        else:
            self._let_go(item, event)
        return False

    def _let_go(self, item: Item, event: ItemEvent) -> None:
        schedule = self.session.schedule
        if event is ItemEvent.INTENT:
            schedule.drop(item.n, item.target)
        else:
            schedule.reschedule(item.n, item.target, self.session.time.now_us() + SECOND_US // 2)

    async def _send(self, item: Item, key: str | None, request: Request) -> Reply:
        session = self.session
        send_by = session.send_by.pop(item.n)
        if not await session.pacer.guard(send_by):
            return _NOT_SENT
        hit("before_send")
        session.in_flight += 1
        try:
            reply = await session.provider.send(
                request, item, key=key, timeout_us=session.timeout_us, gate=session.gate(send_by)
            )
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            # The operation itself raised it: an exception like any other, after which it may have been executed.
            reply = Reply(Unresolved("exception:CancelledError", "the operation was cancelled from within"))
        finally:
            session.in_flight -= 1
        if self.evidence is not None:
            await self.evidence.settled(item)
        hit("after_answer")
        return reply

    # what an answer means

    async def _after(self, item: Item, key: str | None, reply: Reply, *, resend: bool) -> None:
        session = self.session
        outcome = reply.outcome
        limited = _is_rate(reply)
        if reply.sent and not limited:
            session.heard(session.pacer.accepted())
        data = evidence_of_reply(reply)
        if not reply.sent and isinstance(outcome, NotExecuted) and outcome.code == "not_sent":
            await self._not_sent(item, data, resend=resend)
            return
        verdict = after_reply(
            outcome,
            item=item,
            declaration=session.declaration,
            resend=resend,
            replayed=reply.replayed,
            attempts=session.limits.attempts,
        )
        # An answer that is the product is kept as the output, and once is enough.
        is_output = isinstance(outcome, Executed) and outcome.output is not None
        kept = NOTHING_KEPT if is_output else kept_response(session.payloads, reply.response)
        if isinstance(verdict, Commit):  # nearly all answers; nothing of what follows concerns them
            await self._record(item, verdict, data, payloads=kept)
            return
        stop = StopBatch(outcome.code, outcome.message) if isinstance(outcome, Stop) else None
        wait = self._wait(item, verdict, is_rate=limited)
        stop = stop or session.patience(verdict)
        await self._record(item, verdict, data, wait_us=wait, limited=limited, stop=stop, payloads=kept)

    async def _not_sent(self, item: Item, data: dict[str, Any], *, resend: bool) -> None:
        """The gate refused: nothing left."""
        verdict = after_gate(item=item, declaration=self.session.declaration, resend=resend)
        # A lease that is too short now is longer after the next heartbeat: not to be tried thousands of times until then.
        await self._record(item, verdict, data, wait_us=SECOND_US // 10, seen=False)

    def _wait(self, item: Item, verdict: Verdict, *, is_rate: bool) -> int:
        """How long the item waits before it is looked at again, and what the whole batch learns from the answer."""
        if not isinstance(verdict, PlanAgain | Doubt):
            return 0
        if verdict.load:
            return self.session.pacer.refused(retry_after_us=verdict.retry_after_us, is_rate=is_rate)
        if verdict.retry_after_us is not None:
            return min(verdict.retry_after_us, LONGEST_WAIT_US)
        # A call that is still running uses up no attempts, but it is not to be asked after every 200 ms either.
        tries = item.attempts if isinstance(verdict, Doubt) and verdict.in_progress else item.spent
        return full_jitter_us(tries + 1, rand=self.session.clock.rand())

    async def refuse(self, item: Item, verdict: Refuse | LeaveOut | GiveUp, data: dict[str, Any]) -> None:
        """Records that an item is not sent, and hands it back."""
        await self._record(item, verdict, data)

    async def _record(
        self,
        item: Item,
        verdict: Verdict,
        data: dict[str, Any],
        *,
        wait_us: int = 0,
        limited: bool = False,
        seen: bool = True,
        stop: StopBatch | None = None,
        lookups: int = 0,
        findings: tuple[Finding, ...] = (),
        payloads: Mapping[str, bytes] = NOTHING_KEPT,
    ) -> None:
        """Makes a verdict durable and hands the item back to the schedule."""
        session = self.session
        change = change_for(
            verdict,
            item=item,
            data=data,
            now_us=session.time.now_us(),
            wait_us=wait_us,
            lookups=lookups,
            rate_limited=1 if limited else 0,
            seen=seen,
            stop=stop,
        )
        findings += session.references.shared(item, change)
        if findings:
            change = replace(change, findings=change.findings + findings)
        if payloads and change.output is None:  # the answer that is the product is kept as the output
            change = replace(change, payloads=payloads)
        if change.stop is not None:
            # Before the write is awaited: an intent written ahead must not leave while this answer becomes durable.
            session.stopped_by(change.stop)
        hit("before_commit")
        landed = await self._write(item, change)
        hit("after_commit")
        if landed is not Landed.LANDED:
            session.late(item, change, landed)
            return
        self._hand_back(item, verdict, change)

    async def _write(self, item: Item, change: Change) -> Landed:
        """A change of an item in hand. What the ledger does not take goes to the spool, and the run halts."""
        session = self.session
        try:
            durable = change
            if session.outputs.takes(change):  # its file is durable before the commit that names it
                durable = await asyncio.to_thread(session.outputs.set_aside, change)
                hit("after_output")
            return await session.ledger.write(session.worker, durable)
        except LedgerError as fault:
            session.to_spool(item, change)
            session.halt(fault)
            raise

    def _hand_back(self, item: Item, verdict: Verdict, change: Change) -> None:
        schedule = self.session.schedule
        match verdict:
            case PlanAgain():
                schedule.again(
                    replace(
                        item,
                        attempts=item.attempts + is_of_call(change),
                        spent=item.spent + change.spent,
                        generation=item.generation if change.generation is None else change.generation,
                        not_before_us=change.not_before_us,
                    )
                )
            case Doubt():
                schedule.reschedule(item.n, item.target, change.retry_at_us)
            case NextStep():
                schedule.reschedule(item.n, item.target, self.session.time.now_us())
            case _:
                schedule.finish(item.n, item.target)

    # resolving

    async def _resolve(self, task: Task) -> None:
        """The next step of a pending item: exactly what SPEC section 6 says, in a run and after a crash."""
        session = self.session
        found = await session.ledger.open_intents(session.batch.spec.id, [task.n])
        intent = found[0] if found else None
        if intent is None or intent.fence != session.worker.fence or not intent.item.state.is_open:
            session.schedule.finish(task.n, task.target)
            return
        now = session.time.now_us()
        move = next_move(intent, session.declaration, attempts=session.limits.attempts, now_us=now)
        match move:
            case GiveUp():
                await self._give_up(intent, move, {})
            case LookUp(at_us) | SendAgain(at_us) | SendNext(at_us) if at_us > now:
                session.schedule.reschedule(task.n, task.target, at_us)
            case LookUp():
                await self._look_up(intent)
            case SendAgain() | SendNext() if session.resolve_only:
                text = "the batch is cancelled, so nothing is sent again; it may have been executed"
                await self._record(intent.item, GiveUp("cancelled_while_pending", text), {})
            case SendAgain():
                await self._again(intent)
            case SendNext():
                await self._next_step(intent)

    async def _give_up(self, intent: OpenIntent, verdict: GiveUp, data: dict[str, Any], *, lookups: int = 0) -> None:
        """No rule decides it: unknown, or paid for once more where the batch says so and the ledger lets it."""
        again = self.session.or_pay_again(verdict, intent)
        if isinstance(again, PayAgain):
            if await self._pay_again(intent.item, again, data, lookups=lookups):
                return
            verdict = GiveUp(verdict.code, f"{verdict.message}; paying again is not within its limit")
        await self._record(intent.item, verdict, data, lookups=lookups)

    async def _pay_again(self, item: Item, verdict: PayAgain, data: dict[str, Any], *, lookups: int) -> bool:
        """Whether the ledger let the item be paid for once more: it keeps the limit, over all workers."""
        session = self.session
        change = change_for(verdict, item=item, data=data, now_us=session.time.now_us(), lookups=lookups)
        if await self._write(item, change) is not Landed.LANDED:
            return False
        session.schedule.again(replace(item, attempts=item.attempts, spent=item.spent + change.spent))
        return True

    async def _next_step(self, intent: OpenIntent) -> None:
        item = intent.item
        await self.session.pacer.turn()
        key = self.key(item)
        request = self.session.provider.prepare(item, key=key, step=item.step)
        if await self._intend(item, ItemEvent.RESEND, key, request, new_key=True):
            async with self.calls:
                reply = await self._send(item, key, request)
            await self._after(item, key, reply, resend=False)

    async def _again(self, intent: OpenIntent) -> None:
        """The same key and the same bytes once more."""
        item, request = intent.item, intent.request
        assert request is not None, "a pending item without its request"
        await self.session.pacer.turn()
        now = self.session.time.now_us()
        if intent.key is not None and not key_is_usable(intent, self.session.declaration, now_us=now):
            # The turn took so long that the key's window closed: the resolution decides anew.
            self.session.schedule.reschedule(item.n, item.target, now)
            return
        hit("before_resend")
        if await self._intend(item, ItemEvent.RESEND, intent.key, request, new_key=False):
            async with self.calls:
                reply = await self._send(item, intent.key, request)
            await self._after(item, intent.key, reply, resend=True)

    async def _ask(self, intent: OpenIntent) -> LookupReply:
        session, item = self.session, intent.item
        try:
            return await session.provider.lookup(item, key=intent.key, step=item.step, timeout_us=session.timeout_us)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return LookupFailed("exception:CancelledError", "the look-up was cancelled from within")

    async def _look_up(self, intent: OpenIntent) -> None:
        session = self.session
        await session.pacer.turn()
        hit("before_lookup")
        async with self.calls:
            reply = await self._ask(intent)
        hit("after_lookup")
        if isinstance(reply, LookupFailed):
            await self._lookup_failed(intent, reply)
            return
        session.heard(session.time.now_us())
        await self._found(intent, reply)

    async def _lookup_failed(self, intent: OpenIntent, failed: LookupFailed) -> None:
        session, item = self.session, intent.item
        if failed.final:
            data = {"lookup": {"failed": failed.code}}
            text = with_the_answer(failed.message, intent)
            await self._give_up(intent, GiveUp(failed.code, text), data, lookups=1)
            return
        now = session.time.now_us()
        if failed.load:
            wait = session.pacer.refused(retry_after_us=failed.retry_after_us, is_rate=failed.code == "rate_limited")
        else:
            wait = full_jitter_us(intent.lookup_failures + 1, rand=session.clock.rand())
        wait = max(wait, min(failed.retry_after_us or 0, LONGEST_WAIT_US))
        change = failed_lookup(failed, item=item, now_us=now, wait_us=wait)
        landed = await self._write(item, change)
        if landed is not Landed.LANDED:
            session.late(item, change, landed)
            return
        if change.stop is not None:
            session.stopped_by(change.stop)
        session.schedule.reschedule(item.n, item.target, change.retry_at_us)

    async def _claimed(self, references: list[str], item: Item) -> tuple[frozenset[str], frozenset[str]]:
        """Which references other items are committed with; and which of these only items on other targets."""
        batch, ledger = self.session.batch.spec.id, self.session.ledger
        claimed = await ledger.claimed_references(batch, references) if references else frozenset[str]()
        if not claimed:
            return claimed, claimed
        return claimed, claimed - await ledger.claimed_references(batch, references, target=item.target)

    async def _found(self, intent: OpenIntent, found: Found) -> None:
        session, item = self.session, intent.item
        claimed, elsewhere = await self._claimed([e.reference for e in found.executions], item)
        sighting = judge(found, intent, session.declaration, claimed=claimed, elsewhere=elsewhere)
        verdict = after_sighting(
            sighting,
            intent,
            session.declaration,
            attempts=session.limits.attempts,
            now_us=session.time.now_us(),
        )
        data = evidence_of_found(found)
        if isinstance(verdict, SendAgain) and session.resolve_only:
            verdict = PlanAgain("proven_absent", "the look-up shows no execution")
        if isinstance(verdict, SendAgain):
            change = Change(item.n, ItemEvent.LOOKUP, data={**data, "absent": True}, lookups=1)
            landed = await self._write(item, change)
            if landed is Landed.LANDED:
                await self._again(intent)
            else:
                session.late(item, change, landed)
            return
        findings: tuple[Finding, ...] = ()
        if isinstance(sighting, Ours):
            findings = tuple(
                Finding("duplicate", item.id, {"reference": e.reference, "amount": str(e.money)})
                for e in sighting.extra
            )
        if isinstance(verdict, GiveUp) and not findings and verdict.mismatch is None:
            await self._give_up(intent, verdict, data, lookups=1)
            return
        kept = kept_response(session.payloads, found.response)
        await self._record(item, verdict, data, lookups=1, findings=findings, payloads=kept)


def _is_rate(reply: Reply) -> bool:
    """Whether an answer speaks of the provider's rate limit."""
    if reply.status is not None:
        return reply.status == 429
    return isinstance(reply.outcome, NotExecuted) and reply.outcome.code == "rate_limited"


def _is_cancelled() -> bool:
    """Whether the present task was asked to end, rather than something in it having raised the same exception."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
