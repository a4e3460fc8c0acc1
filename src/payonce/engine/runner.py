"""One session of a run, from joining to leaving: hands out work, ends in order.

After the first reason to stop no new intent is written; calls in flight are awaited for the grace period and what
became of them is recorded; whatever then is left is pending, with its intent in the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import LeaseLost, LedgerError, UsageError
from payonce.core.keys import KeyMaker
from payonce.core.model import SECOND_US, Actor, Batch, Limits, Status, Worker
from payonce.core.payloads import PayloadPolicy, default_for
from payonce.core.states import RUNNABLE, BatchState, ItemState
from payonce.core.wording import some
from payonce.engine.attempt import Caller
from payonce.engine.beside import Beside
from payonce.engine.crashpoints import hit
from payonce.engine.evidence import watch
from payonce.engine.pacing import LedgerTime, Pacer
from payonce.engine.pool import Pool
from payonce.engine.ports import Clock, EngineLedger, Progress
from payonce.engine.preflight import TargetCheck
from payonce.engine.session import Session, lease_for
from payonce.engine.spool import Spool
from payonce.engine.stop import End, Ending, StopRequest
from payonce.engine.takein import take_in_spool
from payonce.ledger.outputs import OutputFiles
from payonce.providers.protocol import Provider

_CHUNK: Final = 256
_REJOINS: Final = 1000


class Runner:
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
        payloads: PayloadPolicy | None = None,
        outputs: OutputFiles | None = None,
        read_targets: bool = True,
    ) -> None:
        self.ledger = ledger
        self.provider = provider
        self.batch = batch
        self.limits = limits
        self.actor = actor
        self.stop = stop
        self.progress = progress
        self.clock = clock
        self.payloads = payloads or default_for(batch.spec.operation)
        self.outputs = outputs or OutputFiles(None)
        self.read_targets = read_targets and bool(provider.declaration.preflight)
        self.wake = asyncio.Event()
        self.calls = asyncio.Semaphore(limits.concurrency)
        # A cancelled batch sends nothing any more; what is pending is still decided, as far as look-ups can.
        self.resolve_only = batch.state is BatchState.CANCELLED
        self.session: Session
        self.pool: Pool
        self.beside: Beside

    async def run(self, spool: Spool, ledger_id: str) -> Status | None:
        """The session; returns the batch's status at its end, None where the ledger no longer tells it."""
        session = await self._join(spool, ledger_id)
        self.session = session
        paused = session.worker.state is BatchState.PAUSED
        self.beside = beside = Beside(session, self.wake, self.progress, paused=paused)
        caller = Caller(session, self._keys(), self.calls)
        self.pool = pool = Pool(
            caller.work, session=session, calls=self.calls, most=self._worker_count(), wake=self.wake
        )
        helpers = [asyncio.create_task(c) for c in (beside.heartbeat(), beside.watch(), beside.report())]
        try:
            await self.beside.take_over(everything=True)
            await take_in_spool(session, spool)
            caller.evidence = watch(session)
            if self.read_targets:
                caller.check = TargetCheck(session, self.calls, caller.refuse, caller.key)
            await self._dispatch()
        except LedgerError as fault:
            session.halt(fault)
        except LeaseLost as lost:  # frozen past its lease: it joins again, as after a heartbeat that finds the same
            self.stop.request(Ending.LEASE_LOST, code=lost.code, message=lost.message)
        finally:
            await pool.drain()
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
        if pool.bug is not None:
            await self._leave()
            raise pool.bug
        return await self._end()

    async def _join(self, spool: Spool, ledger_id: str) -> Session:
        declaration = self.provider.declaration
        lease_us = lease_for(self.limits, declaration.timeout_us)
        asked = self.clock.steady_us()
        actor = replace(self.actor, steady_us=asked)
        worker = await self.ledger.join(self.batch.spec.id, actor=actor, lease_us=lease_us)
        time = LedgerTime.of(self.clock, worker, asked_us=asked)
        if worker.state in RUNNABLE and not worker.others:
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
            payloads=self.payloads,
            outputs=self.outputs,
            resolve_only=self.resolve_only,
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

    async def _dispatch(self) -> None:
        """Hands out work until the batch is settled or there is a reason to stop."""
        schedule, session = self.session.schedule, self.session
        sweeping, pause_s, moved = not self.resolve_only, 0.02, 0
        while not self.stop.is_set:
            task = None if self.beside.paused else schedule.take(session.time.now_us())
            if task is not None:
                await self.pool.put(task)
                continue
            if sweeping and not self.beside.paused:
                items = await self.ledger.planned(session.worker, limit=_CHUNK)
                for item in items:
                    schedule.offer(item, now_us=session.time.now_us())
                sweeping = bool(items)
                continue
            if schedule.is_empty and not self.beside.paused and await self._settled():
                return
            if schedule.moved != moved:  # what only waits for busy targets must not be tried 50 times a second
                moved, pause_s = schedule.moved, 0.02
            if await self._sleep(pause_s) and not self.beside.paused:
                pause_s = min(pause_s * 2, 1.0)
                if self._may_sweep_again():
                    sweeping = not self.resolve_only
                    session.blocked_by_budget = session.blocked_by_target = False

    def _may_sweep_again(self) -> bool:
        """Not while something in hand waits for its turn: what waits for busy targets would take turns again and again,
        and the sweep that finds nothing else would never come to its end."""
        return self.session.pacer.is_free or self.pool.only_calls

    async def _sleep(self, at_most_s: float) -> bool:
        """Waits until something finished, timed work is due, or the time is over (True)."""
        # What is due while the batch is paused waits for the operator, and must not keep the process spinning.
        due = None if self.beside.paused else self.session.schedule.next_us()
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
        if self.resolve_only and not pending:
            return True
        if planned == 0 and pending == 0:
            if status.batch.state is not BatchState.FINISHED:
                hit("before_finish")
                await self._control(BatchCommand.FINISH, worker=session.worker)
            return True
        if pending:
            await self.beside.take_over(everything=False)
            return False
        if session.blocked_by_budget:
            text = "the next item would exceed the budget; raise [limits] budget and run the command again"
            await self._control(BatchCommand.STOP, worker=session.worker, code="budget", reason=text)
            self.stop.request(Ending.STOPPED, code="budget", message=text)
            return True
        if session.blocked_by_target:
            text = f"{some(planned, 'item')} {'waits' if planned == 1 else 'wait'} for targets that unknown items hold; resolve those, then run the command again"
            await self._control(BatchCommand.STOP, worker=session.worker, code="targets_held", reason=text)
            self.stop.request(Ending.HELD, code="targets_held", message=text)
            return True
        return False

    # ending

    async def _leave(self) -> None:
        with contextlib.suppress(LedgerError):
            await self.ledger.leave(self.session.worker)

    async def _end(self) -> Status | None:
        end = self.stop.end
        if end is not None and end.ending is Ending.LEASE_LOST:
            await self._leave()
            return None
        status = await self._say_how_it_ended(end)
        await self._leave()
        return status

    async def _sweep_cancelled(self) -> None:
        """What came back to planned after the batch was cancelled is left out as well."""
        before = None
        while True:
            status = await self.ledger.status(self.batch.spec.id)
            left = status.count(ItemState.PLANNED)
            if not left or left == before or status.batch.state is not BatchState.CANCELLED:
                return
            await self._control(BatchCommand.CANCEL, worker=self.session.worker, reason=status.batch.reason or "")
            before = left

    async def _say_how_it_ended(self, end: End | None) -> Status | None:
        """Writes the ending to the ledger, as far as it still takes anything."""
        commands = {Ending.INTERRUPTED: BatchCommand.INTERRUPT, Ending.HALTED: BatchCommand.HALT}
        try:
            if self.resolve_only or (end is not None and end.ending is Ending.CANCELLED):
                await self._sweep_cancelled()
            if end is not None and end.ending in commands and not self.session.worker.others:
                await self._control(commands[end.ending], worker=self.session.worker, code=end.code, reason=end.message)
                if self.batch.state is BatchState.RUNNING:  # taken, and it runs: others joined since the last heartbeat
                    self.session.worker = replace(self.session.worker, others=1)
        except (LedgerError, UsageError):
            pass  # a ledger that takes nothing any more may still be read
        try:
            return await self.ledger.status(self.batch.spec.id)
        except LedgerError as fault:  # nobody knows how it ended: neither done nor "some items are refused"
            self.session.halt(fault)
        except UsageError:
            pass
        return None
