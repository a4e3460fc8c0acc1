"""The group writer: many coroutines, one writing thread, one transaction and one fsync for everything that waits.

``AsyncLedger`` gives the verbs of a ledger as coroutines. What the engine writes goes into a bounded queue; the writer
thread takes everything that waits, applies it in order inside one transaction, and answers all of it with a single call
into the event loop once it is durable. Under load a group grows by itself while the disk is busy with the last one.

Failure. Where a group cannot be made durable (LedgerError), each of its waiters gets that error, the writer is failed
for good, and every later write fails at once with the same error: the engine halts on it, and whoever starts next finds
exactly what was durable. A verb that refuses (UsageError, LeaseLost) concerns its own caller alone. A caller that is
cancelled while it waits does not take its command back: it may be written.

Reading runs in a second thread on a connection of its own, so that a status never waits behind a write.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from payonce.core.commands import Command, Landed
from payonce.core.errors import LedgerConflict, LedgerError, PayonceError
from payonce.core.model import Worker
from payonce.ledger.store_reads import StoreLedger
from payonce.ledger.verbs import AsyncVerbs, Kind

T = TypeVar("T")
_ROOM: Final = 4096  # waiting jobs; a coroutine that finds no room waits for it
_ENOUGH: Final = 64  # waiting jobs; with these a group is large enough not to wait for more


@dataclass(slots=True)
class _Job:
    """One verb that waits: a write (worker and commands) or any call on the store."""

    future: asyncio.Future[Any]
    kind: Kind
    call: Callable[[StoreLedger], Any] | None = None
    worker: Worker | None = None
    commands: tuple[Command, ...] = ()
    result: Any = None
    error: BaseException | None = None


class AsyncLedger(AsyncVerbs):
    """A ledger for coroutines, over a store that it owns from now on.

    Must be made and used inside one running event loop. ``close`` writes what waits, then closes the store.
    """

    def __init__(self, store: StoreLedger, *, room: int = _ROOM) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._writer = _Thread(store, self._loop, name="payonce-ledger-write", room=room, gather_s=store.gather_s)
        self._reader = _Thread(store, self._loop, name="payonce-ledger-read", room=room)

    @property
    def groups(self) -> int:
        """How many transactions the writer has made durable."""
        return self._writer.groups

    @property
    def failed(self) -> LedgerError | None:
        """Why nothing can be written any more, if so."""
        return self._writer.failed

    @property
    def waiting(self) -> int:
        """How many jobs wait for the writer."""
        return self._writer.waiting

    async def write(self, worker: Worker, command: Command) -> Landed:
        """See AsyncVerbs; one future, no coroutine in between, since a run does this twice for every item."""
        writer = self._writer
        if writer.waiting >= writer.room:
            await writer.has_room()
        job = _Job(self._loop.create_future(), "group", None, worker, (command,))
        writer.put(job)
        landed: tuple[Landed, ...] = await job.future
        return landed[0]

    async def _write(self, worker: Worker, commands: tuple[Command, ...]) -> Any:
        return await self._writer.run(_Job(self._loop.create_future(), "group", worker=worker, commands=commands))

    async def _call(self, kind: Kind, call: Callable[[StoreLedger], T]) -> T:
        thread = self._reader if kind == "read" else self._writer
        result: T = await thread.run(_Job(self._loop.create_future(), kind, call=call))
        return result

    async def close(self) -> None:
        """Writes what waits, ends both threads, closes the store. Raises LedgerError where closing fails."""
        await asyncio.to_thread(self._reader.end)
        await asyncio.to_thread(self._writer.end)
        await asyncio.to_thread(self._store.close)


class _Thread:
    """A thread with a bounded queue that takes everything waiting at once."""

    def __init__(
        self, store: StoreLedger, loop: asyncio.AbstractEventLoop, *, name: str, room: int, gather_s: float = 0.0
    ) -> None:
        self.groups = 0
        self.failed: LedgerError | None = None
        self._store = store
        self._loop = loop
        self.room = room
        self._gather_s = gather_s
        self.waiting = 0
        self._has_room = asyncio.Event()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._ending = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(self, job: _Job) -> Any:
        """Queues a job and waits for its answer."""
        if self.waiting >= self.room:
            await self.has_room()
        self.put(job)
        return await job.future

    async def has_room(self) -> None:
        """Returns when another job may be put."""
        while self.waiting >= self.room:
            self._has_room.clear()
            await self._has_room.wait()

    def put(self, job: _Job) -> None:
        """Queues a job; its future gets the answer. Raises the LedgerError that ended the thread's work, if any."""
        if self.failed is not None:
            raise failure(self.failed)
        assert not self._ending, "the ledger is closed"
        self.waiting += 1
        self._jobs.put(job)

    def end(self) -> None:
        """Does what waits and ends the thread."""
        self._ending = True
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        ending = False
        while not ending:
            waiting = [self._jobs.get()]
            if self._gather_s and self._jobs.qsize() < _ENOUGH and waiting[0] is not None:
                time.sleep(self._gather_s)
            while not self._jobs.empty():
                waiting.append(self._jobs.get())
            ending = None in waiting
            jobs = [job for job in waiting if job is not None]
            for part in split(jobs):
                self._do(part)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._answer, jobs)

    def _do(self, jobs: list[_Job]) -> None:
        """One group, or one job that stands alone; answers are kept in the jobs until all are known."""
        try:
            if self.failed is not None:
                raise failure(self.failed)
            _persist(self._store, jobs)
            self.groups += jobs[0].kind != "read"
        except BaseException as error:
            if is_refusal(error):  # only a job that stands alone gets here
                jobs[0].error = error
                return
            fault = as_fault(error)
            if jobs[0].kind != "read" and self.failed is None:
                self.failed = fault
            for job in jobs:
                job.error = failure(fault)

    def _answer(self, jobs: list[_Job]) -> None:
        self.waiting -= len(jobs)
        self._has_room.set()
        for job in jobs:
            if job.future.done():  # its caller was cancelled
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)


def split(jobs: Iterable[_Job]) -> list[list[_Job]]:
    """Runs of jobs that share a transaction; reads, and verbs that may fail half-way, stand alone."""
    parts: list[list[_Job]] = []
    for job in jobs:
        if parts and job.kind == "group" == parts[-1][0].kind:
            parts[-1].append(job)
        else:
            parts.append([job])
    return parts


def _persist(store: StoreLedger, jobs: list[_Job]) -> None:
    """Performs a group; where the store took it back for another transaction, up to three times in all: nothing of it
    was written then, and whoever it made way for goes on meanwhile. Verbs that stand alone may have used up what they
    were given, so they are not repeated."""
    for last in (False, False, True):
        try:
            perform(store, jobs)
            return
        except LedgerConflict:
            if last or jobs[0].kind != "group":
                raise


def perform(store: StoreLedger, jobs: list[_Job]) -> None:
    """Does a group of jobs in one transaction, in order; writes of one worker that follow each other go together."""
    if jobs[0].kind != "group":
        assert jobs[0].call is not None
        jobs[0].result = jobs[0].call(store)
        return
    for job in jobs:
        job.error = None  # of a try that was taken back
    with store.group():
        at = 0
        while at < len(jobs):
            job = jobs[at]
            if job.worker is None:
                assert job.call is not None
                try:
                    job.result = job.call(store)
                except PayonceError as error:
                    if not is_refusal(error):
                        raise
                    job.error = error
                at += 1
                continue
            end = at + 1
            while end < len(jobs) and jobs[end].worker is not None and jobs[end].worker.fence == job.worker.fence:  # type: ignore[union-attr]
                end += 1
            _write_together(store, jobs[at:end])
            at = end


def _write_together(store: StoreLedger, jobs: list[_Job]) -> None:
    worker = jobs[0].worker
    assert worker is not None
    try:
        landed = store.write(worker, [command for job in jobs for command in job.commands])
    except PayonceError as error:
        if not is_refusal(error):
            raise
        for job in jobs:
            job.error = error
        return
    at = 0
    for job in jobs:
        job.result = landed[at : at + len(job.commands)]
        at += len(job.commands)


def is_refusal(error: BaseException) -> bool:
    """Whether an error concerns its own caller alone: it was raised before anything was changed."""
    return isinstance(error, PayonceError) and not isinstance(error, LedgerError)


def as_fault(error: BaseException) -> LedgerError:
    """Whatever broke a transaction, as the LedgerError that halts the run."""
    if isinstance(error, LedgerError):
        return error
    fault = LedgerError(
        f"a fault inside payonce stopped the ledger's writer: {error!r}",
        code="ledger_bug",
        hint="nothing of this group was written; please report it",
    )
    fault.__cause__ = error
    return fault


def failure(fault: LedgerError) -> LedgerError:
    """A fresh copy of a fault for one waiter: one exception object must not be raised in many places."""
    again = type(fault)(fault.message, code=fault.code, hint=fault.hint)
    again.__cause__ = fault
    return again
