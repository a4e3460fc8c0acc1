"""A process's ledger in a simulated world: verbs that take time, fail, or whose success is never heard of; its spool.

Writes of many tasks that wait at once are made durable together, as by the real group writer, and like there nothing is
written any more after the first fault. Between being asked, being durable and being answered the process can die.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

from payonce.core.commands import Command, Landed
from payonce.core.errors import LedgerError
from payonce.core.model import Actor, OpenIntent, Worker
from payonce.ledger.group import as_fault, failure, is_refusal
from payonce.ledger.store_reads import StoreLedger
from payonce.ledger.verbs import AsyncVerbs, Kind
from payonce.testing.simulator.loop import ProcessGone, ProcessLoop
from payonce.testing.simulator.store import SimStore

T = TypeVar("T")


class Faults:
    """What a ledger does wrong next. Set by the world, used up by the first that meets it."""

    __slots__ = ("after", "before", "read", "slow_us")

    def __init__(self) -> None:
        self.before = False  # the next write fails and nothing of it is there
        self.after = False  # the next write is durable, but the process hears of a failure
        self.read = False  # the next read fails
        self.slow_us = 0  # the next write takes so long

    def clear(self) -> None:
        """Nothing goes wrong."""
        self.before = self.after = self.read = False
        self.slow_us = 0


class _Job:
    """One verb that waits."""

    __slots__ = ("alone", "asked_us", "call", "commands", "error", "future", "result", "single", "worker")

    def __init__(
        self,
        future: asyncio.Future[Any],
        worker: Worker | None,
        commands: tuple[Command, ...],
        call: Callable[[StoreLedger], Any] | None,
        asked_us: int,
        alone: bool,
        single: bool,
    ) -> None:
        self.future = future
        self.worker = worker
        self.commands = commands
        self.call = call
        self.asked_us = asked_us
        self.alone = alone
        self.single = single
        self.result: Any = None
        self.error: BaseException | None = None


Landing = Callable[[Worker, tuple[Command, ...], tuple[Landed, ...], int], None]


class SimLedger(AsyncVerbs):
    """The ledger of one process. ``landed`` is told of each worker's commands once they are durable, what became of
    them and when they were asked for; ``failed`` is the fault after which nothing is written any more. ``lease_end_us``
    is when the right of the process ends, in true time."""

    def __init__(
        self,
        store: SimStore,
        loop: ProcessLoop,
        actor: Actor,
        *,
        disk_us: Callable[[], int],
        landed: Landing,
        handed_over: Callable[[int, tuple[OpenIntent, ...]], None],
        heard_fault: Callable[[], None],
    ) -> None:
        self._store = store
        self._loop = loop
        self._actor = actor
        self._disk_us = disk_us
        self._landed = landed
        self._handed_over = handed_over
        self._heard_fault = heard_fault
        self._jobs: list[_Job] = []
        self._under_way = False
        self.faults = Faults()
        self.failed: LedgerError | None = None
        self.lease_end_us = 0
        self.fence = 0

    def write(self, worker: Worker, command: Command) -> Any:
        """See ledger.protocol; one future, without a coroutine around it."""
        return self._queue(worker, (command,), None, single=True)

    async def join(self, batch: str, *, actor: Actor, lease_us: int) -> Worker:
        """See ledger.protocol."""
        asked_us = self._loop.timeline.now_us
        worker = await super().join(batch, actor=actor, lease_us=lease_us)
        self.lease_end_us = asked_us + lease_us
        self.fence = worker.fence
        return worker

    async def take_over(self, worker: Worker, *, limit: int) -> tuple[OpenIntent, ...]:
        """See ledger.protocol."""

        def call(store: StoreLedger) -> tuple[OpenIntent, ...]:
            intents = store.take_over(worker, limit=limit)
            self._handed_over(worker.fence, intents)
            return intents

        return await self._call("group", call)

    async def renew(self, worker: Worker, *, lease_us: int) -> Worker:
        """See ledger.protocol."""
        asked_us = self._loop.timeline.now_us
        renewed = await super().renew(worker, lease_us=lease_us)
        self.lease_end_us = asked_us + lease_us
        return renewed

    def _write(self, worker: Worker, commands: tuple[Command, ...]) -> Any:
        return self._queue(worker, commands, None)

    async def _call(self, kind: Kind, call: Callable[[StoreLedger], T]) -> T:
        if kind == "read":
            if self._loop.dead:
                raise ProcessGone
            if self.faults.read:
                self.faults.read = False
                raise LedgerError("simulated: cannot be read", code="ledger_io", hint="look again")
            return call(self._store)
        return cast(T, await self._queue(None, (), call, alone=kind == "alone"))

    async def close(self) -> None:
        """Nothing to do: the store outlives its processes."""

    def _queue(
        self,
        worker: Worker | None,
        commands: tuple[Command, ...],
        call: Callable[[StoreLedger], Any] | None,
        *,
        alone: bool = False,
        single: bool = False,
    ) -> asyncio.Future[Any]:
        if self._loop.dead:
            raise ProcessGone
        if self.failed is not None:
            raise failure(self.failed)
        job = _Job(self._loop.create_future(), worker, commands, call, self._loop.timeline.now_us, alone, single)
        self._jobs.append(job)
        if not self._under_way:
            self._under_way = True
            wait = self._disk_us() + self.faults.slow_us
            self.faults.slow_us = 0
            timeline = self._loop.timeline
            if wait:
                timeline.at(timeline.now_us + wait, self._make_durable, loop=self._loop)
            else:
                timeline.soon(self._make_durable, loop=self._loop)
        return job.future

    def _make_durable(self) -> None:
        """Everything that waits, in order; then, a moment later, the answers."""
        jobs, self._jobs = self._jobs, []
        faults = self.faults
        if self.failed is None and faults.before:
            self.failed = LedgerError("simulated: the disk is full", code="ledger_full", hint="free some space")
            faults.before = False
        elif self.failed is None:
            self._perform(jobs)
            if faults.after and self.failed is None:
                self.failed = LedgerError("simulated: no answer to the commit", code="ledger_io", hint="look again")
                faults.after = False
                for job in jobs:
                    job.error = failure(self.failed)
        if self.failed is not None:
            for job in jobs:
                job.error = job.error or failure(self.failed)
        self._loop.timeline.soon(self._answer, jobs, loop=self._loop)

    def _perform(self, jobs: list[_Job]) -> None:
        self._store.caller = self._actor
        try:
            apart = any(job.alone for job in jobs)
            with contextlib.nullcontext() if apart else self._store.group():
                self._in_order(jobs)
        except Exception as error:
            self.failed = as_fault(error)
        finally:
            self._store.caller = None

    def _in_order(self, jobs: list[_Job]) -> None:
        """One after the other; writes of one worker that follow each other go together, as in the real group writer."""
        run: list[_Job] = []
        for job in jobs:
            if run and (job.worker is None or job.worker.fence != run[0].worker.fence):  # type: ignore[union-attr]
                self._apply(run)
                run = []
            if job.worker is not None:
                run.append(job)
            elif job.call is not None:
                self._do(job, job.call)
        if run:
            self._apply(run)

    def _apply(self, run: list[_Job]) -> None:
        first, worker = run[0], run[0].worker
        assert worker is not None
        alone = len(run) == 1
        commands = first.commands if alone else [command for job in run for command in job.commands]
        try:
            landed = self._store.write(worker, commands)
        except Exception as error:
            if not is_refusal(error):
                raise
            for job in run:
                job.error = error
            return
        at = 0
        for job in run:
            end = at + len(job.commands)
            job.result = landed if alone else landed[at:end]
            self._landed(worker, job.commands, job.result, job.asked_us)
            at = end

    def _do(self, job: _Job, call: Callable[[StoreLedger], Any]) -> None:
        try:
            job.result = call(self._store)
        except Exception as error:
            if not is_refusal(error):
                raise
            job.error = error

    def _answer(self, jobs: list[_Job]) -> None:
        for job in jobs:
            if job.future.done():
                continue
            if job.error is None:
                job.future.set_result(job.result[0] if job.single else job.result)
                continue
            if isinstance(job.error, LedgerError):
                self._heard_fault()
            job.future.set_exception(job.error)
        if self._jobs:
            self._loop.timeline.soon(self._make_durable, loop=self._loop)
        else:
            self._under_way = False
