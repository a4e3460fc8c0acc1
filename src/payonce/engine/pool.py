"""The tasks that work on what the dispatcher hands out: so many at most, begun as they are needed, ended in order.

A fault of the ledger halts the run, a lost lease has it join again, and whatever else a task raises ends it as a bug: the
item is pending with its intent, or was never touched. None of that ends a task: only ``drain`` does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from payonce.core.errors import LeaseLost, LedgerError
from payonce.core.model import SECOND_US
from payonce.engine.schedule import Task
from payonce.engine.session import Session
from payonce.engine.stop import Ending

_LAST_LOOK_S: Final = 0.05


class Pool:
    """``most`` tasks at most, and room for as many handed out as there may be calls. ``wake`` is set whenever one is done
    with a piece of work, ``running`` how many are at one, ``bug`` the first exception that nobody expected."""

    def __init__(
        self,
        work: Callable[[Task], Awaitable[None]],
        *,
        session: Session,
        calls: asyncio.Semaphore,
        most: int,
        wake: asyncio.Event,
    ) -> None:
        self._work = work
        self._session = session
        self._stop = session.stop
        self._calls = calls
        self._most = most
        self._wake = wake
        self._queue: asyncio.Queue[Task] = asyncio.Queue(maxsize=max(session.limits.concurrency, 1))
        self._low = self._queue.maxsize // 2
        self._hungry = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.running = 0
        self.bug: BaseException | None = None

    @property
    def only_calls(self) -> bool:
        """Whether everything that was handed out is a call on its way."""
        return self.running == self._session.in_flight and self._queue.empty()

    async def put(self, task: Task) -> None:
        """Gives a piece of work to a free task; a stop request ends the wait. Where there is no room it waits until half
        of the queue is empty, so that it does not wake up for every single item."""
        queue = self._queue
        while queue.full() and not self._stop.is_set:
            self._hungry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._hungry.wait()
        if self._stop.is_set:
            return
        queue.put_nowait(task)
        if len(self._tasks) < self._most and self.running + queue.qsize() > len(self._tasks):
            self._tasks.append(asyncio.create_task(self._serve()))

    async def _serve(self) -> None:
        queue = self._queue
        while True:
            task = await queue.get()
            if queue.qsize() <= self._low:
                self._hungry.set()
            if self._stop.end is not None:
                continue
            self.running += 1
            try:
                await self._work(task)
            except LedgerError as fault:
                self._session.halt(fault)
            except LeaseLost as lost:
                self._stop.request(Ending.LEASE_LOST, code=lost.code, message=lost.message)
            except Exception as bug:
                self.bug = self.bug or bug
                self._stop.request(Ending.INTERRUPTED, code="internal_error", message=repr(bug))
            finally:
                self.running -= 1
                self._wake.set()

    async def drain(self) -> None:
        """Awaits the calls in flight, at most for the grace period; whatever then is left stays pending."""
        if self._tasks:
            self._session.pacer.cancel_waiting()
            for _ in self._tasks:
                self._calls.release()  # an intent that waits for its call comes to the gate, which gives it back
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._session.limits.grace_us / SECOND_US):
                    await self._until_idle()
            if self.running and not self._stop.is_hurried:
                # A machine that was suspended meanwhile finds the grace period over and the answers there: they are read.
                await asyncio.sleep(_LAST_LOOK_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _until_idle(self) -> None:
        while self.running and not self._stop.is_hurried:
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await self._wake.wait()
