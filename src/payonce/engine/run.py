"""Running a batch: join, take in the spool, take over the dead, hand out work until the batch is settled, leave.

States of a run: it joins as a worker with a fence and a lease; a heartbeat renews the lease and takes over dead
workers' items; a watcher looks whether an operator paused, stopped or cancelled the batch; a dispatcher hands planned
and due work to as many calls as may be in flight. Guarantees: after the first reason to stop, no new intent is
written; calls in flight are awaited (for the grace period) and what became of them is recorded; what is left pending
has its intent in the ledger. Killing the process at any instant loses nothing that ``resolve`` cannot find again.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import LeaseLost, LedgerError, UsageError
from payonce.core.keys import KeyMaker
from payonce.core.model import SECOND_US, Actor, Batch, Limits, Status, Worker
from payonce.core.states import BatchState, ItemState
from payonce.engine.attempt import Caller
from payonce.engine.clock import SystemClock
from payonce.engine.crashpoints import hit
from payonce.engine.pacing import LedgerTime, Pacer
from payonce.engine.ports import Clock, EngineLedger, Progress
from payonce.engine.schedule import Task
from payonce.engine.session import Session, lease_for
from payonce.engine.spool import Spool
from payonce.engine.stop import End, Ending, StopRequest
from payonce.engine.takein import take_in_spool
from payonce.providers.protocol import Provider

_CHUNK: Final = 256
_TAKE_OVER: Final = 1000
_WATCH_S: Final = 0.25
_PROGRESS_S: Final = 0.5
_REJOINS: Final = 1000


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended. ``exit_code`` as in SPEC section 9; ``lost`` are answers that neither ledger nor spool took."""

    exit_code: int
    state: BatchState
    code: str | None
    reason: str | None
    status: Status | None
    spooled: int = 0
    lost: tuple[str, ...] = ()


async def run_batch(
    ledger: EngineLedger,
    provider: Provider,
    *,
    batch: Batch,
    limits: Limits,
    actor: Actor,
    spool: Spool,
    ledger_id: str,
    stop: StopRequest,
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> RunOutcome:
    """Runs or resumes a sealed batch until it is settled or has to stop; the only way calls are ever made.

    Raises LedgerError only where the ledger fails before the first call; later faults end in exit code 3. A crash at
    any point leaves each item in exactly one state; the same call goes on.
    """
    for _ in range(_REJOINS):
        runner = _Runner(
            ledger,
            provider,
            batch=batch,
            limits=limits,
            actor=actor,
            stop=stop,
            progress=progress,
            clock=clock or SystemClock(),
        )
        outcome = await runner.run(spool, ledger_id)
        if outcome is not None:
            return outcome
        stop.forget_lost_lease()
    raise LeaseLost("the lease was lost again and again", code="lease_lost", hint="raise [limits] lease")


_EXITS: Final = {
    Ending.INTERRUPTED: 75,
    Ending.STOPPED: 4,
    Ending.HALTED: 3,
    Ending.HELD: 1,
}


class _Runner:
    """One session of a run, from joining to leaving."""

    def __init__(
        self,
        ledger: EngineLedger,
        provider: Provider,
        *,
        batch: Batch,
        limits: Limits,
        actor: Actor,
        stop: StopRequest,
        progress: Progress | None,
        clock: Clock,
    ) -> None:
        self.ledger = ledger
        self.provider = provider
        self.batch = batch
        self.limits = limits
        self.actor = actor
        self.stop = stop
        self.progress = progress
        self.clock = clock
        self.wake = asyncio.Event()
        self.queue: asyncio.Queue[Task] = asyncio.Queue(maxsize=max(limits.concurrency, 1))
        self.calls = asyncio.Semaphore(limits.concurrency)
        self.running = 0
        self.paused = False
        self.bug: BaseException | None = None
        self.session: Session

    async def run(self, spool: Spool, ledger_id: str) -> RunOutcome | None:
        """The session; None where the lease was lost and the worker should join again."""
        session = await self._join(spool, ledger_id)
        self.session = session
        workers: list[asyncio.Task[None]] = []
        helpers = [asyncio.create_task(c) for c in (self._heartbeat(), self._watch(), self._report())]
        try:
            await self._take_over(everything=True)
            await take_in_spool(session, spool)
            caller = Caller(session, self._keys(), self.calls)
            workers = [asyncio.create_task(self._work(caller)) for _ in range(self._worker_count())]
            await self._dispatch()
        except LedgerError as fault:
            session.halt(fault)
        finally:
            await self._drain(workers)
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
        if self.bug is not None:
            await self._leave()
            raise self.bug
        return await self._end()

    async def _join(self, spool: Spool, ledger_id: str) -> Session:
        declaration = self.provider.declaration
        lease_us = lease_for(self.limits, declaration.timeout_us)
        asked = self.clock.steady_us()
        worker = await self.ledger.join(self.batch.spec.id, actor=self.actor, lease_us=lease_us)
        time = LedgerTime.at(self.clock, worker.now_us)
        if not worker.others:
            await self._control(BatchCommand.START, worker=worker)
        spool.reserve(concurrency=self._worker_count())
        pacer = Pacer(
            self.ledger,
            self.batch.spec.id,
            self.actor,
            clock=self.clock,
            time=time,
            worker=worker,
            rate_per_ks=self.limits.rate_per_ks,
        )
        pacer.follow(worker)
        session = Session(
            self.ledger,
            self.provider,
            self.batch,
            self.limits,
            self.actor,
            clock=self.clock,
            worker=worker,
            time=time,
            pacer=pacer,
            stop=self.stop,
            spool=spool,
            ledger_id=ledger_id,
            lease_us=lease_us,
            lease_steady_us=asked + lease_us,
            heard_us=worker.now_us,
        )
        return session

    def _keys(self) -> KeyMaker | None:
        declared, spec = self.provider.declaration.key, self.batch.spec
        if declared is None:
            return None
        return KeyMaker(declared.format, namespace=spec.namespace, batch=spec.id, operation=spec.operation)

    def _worker_count(self) -> int:
        """More coroutines than calls in flight where intents may wait for a free place: then the ledger's time is
        hidden behind the provider's. Where nothing can resolve an item in doubt, exactly as many."""
        declaration = self.provider.declaration
        ahead = min(self.limits.concurrency, 256) if declaration.key or declaration.lookup else 0
        return self.limits.concurrency + ahead

    async def _control(self, command: BatchCommand, *, worker: Worker | None = None, **more: str) -> None:
        control = Control(command, reason=more.get("reason"), code=more.get("code"))
        self.batch = await self.ledger.control(self.batch.spec.id, control, actor=self.actor, worker=worker)

    # handing out work

    async def _work(self, caller: Caller) -> None:
        while True:
            task = await self.queue.get()
            if self.stop.is_set:
                continue
            self.running += 1
            try:
                await caller.work(task)
            except LedgerError as fault:
                self.session.halt(fault)
            except Exception as bug:
                self.bug = self.bug or bug
                self.stop.request(Ending.INTERRUPTED, code="internal_error", message=repr(bug))
            finally:
                self.running -= 1
                self.wake.set()

    async def _dispatch(self) -> None:
        """Hands out work until the batch is settled or there is a reason to stop."""
        schedule, session = self.session.schedule, self.session
        sweeping, pause_s = True, 0.02
        while not self.stop.is_set:
            task = None if self.paused else schedule.take(session.time.now_us())
            if task is not None:
                await self._put(task)
                pause_s = 0.02
                continue
            if sweeping and not self.paused:
                items = await self.ledger.planned(session.worker, limit=_CHUNK)
                for item in items:
                    schedule.offer(item, now_us=session.time.now_us())
                sweeping = bool(items)
                continue
            if schedule.is_empty and not self.paused and await self._settled():
                return
            slept = await self._sleep(pause_s)
            if slept and not self.paused:
                sweeping, pause_s = True, min(pause_s * 2, 1.0)
                session.blocked_by_budget = session.blocked_by_target = False

    async def _put(self, task: Task) -> None:
        """Gives a task to a free worker; a stop request ends the wait."""
        while not self.stop.is_set:
            try:
                async with asyncio.timeout(1):
                    await self.queue.put(task)
            except TimeoutError:
                continue
            return

    async def _sleep(self, at_most_s: float) -> bool:
        """Waits until something finished, timed work is due, or the time is over (True)."""
        due = self.session.schedule.next_us()
        until_due = at_most_s if due is None else max(0.0, (due - self.session.time.now_us()) / SECOND_US)
        self.wake.clear()
        try:
            async with asyncio.timeout(min(at_most_s, until_due)):
                await self.wake.wait()
        except TimeoutError:
            return until_due >= at_most_s
        return False

    async def _settled(self) -> bool:
        """Whether the batch is over, as the ledger sees it; also finds what blocks the rest for good."""
        session = self.session
        status = await self.ledger.status(self.batch.spec.id)
        planned, pending = status.count(ItemState.PLANNED), status.count(ItemState.PENDING)
        if planned == 0 and pending == 0:
            if status.batch.state is not BatchState.FINISHED:
                hit("before_finish")
                await self._control(BatchCommand.FINISH, worker=session.worker)
            return True
        if pending:
            await self._take_over(everything=False)
            return False
        if session.blocked_by_budget:
            text = "the next item would exceed the budget; raise [limits] budget and run the command again"
            await self._control(BatchCommand.STOP, worker=session.worker, code="budget", reason=text)
            self.stop.request(Ending.STOPPED, code="budget", message=text)
            return True
        if session.blocked_by_target:
            text = (
                f"{planned} items wait for targets that unknown items hold; resolve those, then run the command again"
            )
            await self._control(BatchCommand.STOP, worker=session.worker, code="targets_held", reason=text)
            self.stop.request(Ending.HELD, code="targets_held", message=text)
            return True
        return False

    async def _take_over(self, *, everything: bool) -> None:
        """Dead workers' pending items become this one's, to be resolved at once."""
        session = self.session
        while True:
            intents = await self.ledger.take_over(session.worker, limit=_TAKE_OVER)
            for intent in intents:
                session.schedule.resolve_at(intent.item.n, intent.item.target, intent.retry_at_us)
            if intents:
                hit("after_take_over")
                self.wake.set()
            if not everything or len(intents) < _TAKE_OVER:
                return

    # beside the work

    async def _heartbeat(self) -> None:
        """Renews the lease four times in its length, shares what 429s taught, takes over the dead."""
        session = self.session
        period_s = min(session.lease_us / 4 / SECOND_US, 2.0)
        while True:
            await asyncio.sleep(period_s)
            asked = self.clock.steady_us()
            try:
                worker = await self.ledger.renew(session.worker, lease_us=session.lease_us)
                session.renewed(worker, asked_steady_us=asked)
                await session.pacer.publish()
                if not self.stop.is_set:
                    await self._take_over(everything=False)
            except LeaseLost as lost:
                self.stop.request(Ending.LEASE_LOST, code=lost.code, message=lost.message)
                return
            except LedgerError as fault:
                session.halt(fault)
                return

    async def _watch(self) -> None:
        """Looks whether an operator or another worker changed the batch's state."""
        while True:
            await asyncio.sleep(_WATCH_S)
            try:
                (batch,) = await self.ledger.batches(self.batch.spec.id)
            except LedgerError as fault:
                self.session.halt(fault)
                return
            self.paused = batch.state is BatchState.PAUSED
            if batch.state is BatchState.STOPPED:
                self.stop.request(Ending.STOPPED, code=batch.reason_code or "stopped", message=batch.reason or "")
            elif batch.state is BatchState.CANCELLED:
                self.stop.request(Ending.CANCELLED, code="cancelled", message=batch.reason or "")

    async def _report(self) -> None:
        """Tells the progress now and then."""
        while self.progress is not None:
            try:
                self.progress(await self.ledger.status(self.batch.spec.id))
            except LedgerError:
                return
            await asyncio.sleep(_PROGRESS_S)

    # ending

    async def _drain(self, workers: list[asyncio.Task[None]]) -> None:
        """Awaits the calls in flight, at most for the grace period; whatever then is left stays pending."""
        if workers:
            self.session.pacer.cancel_waiting()
            for _ in workers:
                self.calls.release()  # an intent that waits for its call comes to the gate, which gives it back
            grace_s = self.limits.grace_us / SECOND_US
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._until_idle()
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _until_idle(self) -> None:
        while self.running and not self.stop.is_hurried:
            self.wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await self.wake.wait()

    async def _leave(self) -> None:
        with contextlib.suppress(LedgerError):
            await self.ledger.leave(self.session.worker)

    async def _end(self) -> RunOutcome | None:
        end = self.stop.end
        if end is not None and end.ending is Ending.LEASE_LOST:
            await self._leave()
            return None
        status = await self._say_how_it_ended(end)
        await self._leave()
        if status is not None and end is None:
            with contextlib.suppress(LedgerError):
                status = await self.ledger.status(self.batch.spec.id)
        return _outcome(end, status, self.session)

    async def _say_how_it_ended(self, end: End | None) -> Status | None:
        """Writes the ending to the ledger, as far as it still takes anything."""
        commands = {Ending.INTERRUPTED: BatchCommand.INTERRUPT, Ending.HALTED: BatchCommand.HALT}
        try:
            if end is not None and end.ending in commands and not self.session.worker.others:
                await self._control(commands[end.ending], worker=self.session.worker, code=end.code, reason=end.message)
            return await self.ledger.status(self.batch.spec.id)
        except (LedgerError, UsageError):
            return None


def _outcome(end: End | None, status: Status | None, session: Session) -> RunOutcome:
    left = 1 if status is None else status.count(ItemState.REFUSED) + status.count(ItemState.UNKNOWN)
    open_items = 0 if status is None else sum(status.count(s) for s in ItemState if s.is_open)
    if end is not None and end.ending is Ending.INTERRUPTED and status is not None and not open_items:
        end = None  # the signal came when everything was done
    exit_code = (1 if left or open_items else 0) if end is None else _EXITS.get(end.ending, 1 if left else 0)
    state = BatchState.HALTED if status is None else status.batch.state
    return RunOutcome(
        exit_code,
        state,
        code=end.code if end else None,
        reason=end.message if end else None,
        status=status,
        spooled=session.spool.written,
        lost=tuple(session.spool_lost),
    )
