"""Time and scheduling of a simulated world: one timeline, and an asyncio event loop for each simulated process on it.

Everything that happens is a handle on one timeline, run one after the other in an order that the seed alone decides.
Time passes only when nothing is left to do now: it leaps to the next timer. A process can be killed between any two
handles (none of its code runs any more, no clean-up either), or frozen (its handles wait until it is thawed, while
everybody else's time goes on). There are no threads, no sockets, no real clock and no context variables here.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from typing import Any, cast

START_US = 1_796_025_600_000_000
_set_running_loop = events._set_running_loop


class ProcessGone(BaseException):
    """A dead process reached for something outside. Nothing catches it; nothing comes of it."""


class Handle:
    """One callback that waits for its turn. The interface that asyncio expects of a handle."""

    __slots__ = ("args", "callback", "loop", "when_us")

    def __init__(
        self,
        loop: ProcessLoop | None,
        callback: Callable[..., Any] | None,
        args: tuple[Any, ...],
        when_us: int = 0,
    ) -> None:
        self.loop = loop
        self.callback = callback
        self.args = args
        self.when_us = when_us

    def cancel(self) -> None:
        """It will not run."""
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.callback is None

    def when(self) -> float:
        """When it is due, in seconds of the timeline."""
        return self.when_us / 1_000_000


class Timeline:
    """What is to happen, in order. ``steps`` counts the handles run; at step ``watch_at`` the watcher is called first."""

    def __init__(self) -> None:
        self.now_us = 0
        self.steps = 0
        self.watch_at = 0
        self.watcher: Callable[[], None] = lambda: None
        self.stopped = False
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[int, int, Handle]] = []
        self._made = 0

    def soon(self, callback: Callable[..., Any], *args: Any, loop: ProcessLoop | None = None) -> None:
        """Runs a callback after what is waiting already; where ``loop`` is named it dies with that process."""
        self._ready.append(Handle(loop, callback, args))

    def at(self, when_us: int, callback: Callable[..., Any], *args: Any, loop: ProcessLoop | None = None) -> Handle:
        """Runs a callback at a time of the timeline."""
        handle = Handle(loop, callback, args, when_us)
        self.push(handle)
        return handle

    def push(self, handle: Handle) -> None:
        """Puts a handle where its time says."""
        self._made += 1
        heappush(self._timers, (handle.when_us, self._made, handle))

    def ready(self, handle: Handle) -> None:
        """Puts a handle behind what is waiting already."""
        self._ready.append(handle)

    def run(self, *, until_us: int, most_steps: int) -> bool:
        """Lets things happen until ``stopped`` is set (then True), nothing is left, or a bound is reached."""
        ready, timers = self._ready, self._timers
        running: ProcessLoop | None = None
        last = self.steps + most_steps
        try:
            while not self.stopped:
                if not ready:
                    while timers and timers[0][2].callback is None:
                        heappop(timers)
                    if not timers or timers[0][0] > until_us:
                        break
                    when = timers[0][0]
                    if when > self.now_us:
                        self.now_us = when
                    while timers and timers[0][0] <= self.now_us:
                        ready.append(heappop(timers)[2])
                    continue
                handle = ready.popleft()
                callback = handle.callback
                if callback is None:
                    continue
                self.steps += 1
                if self.steps >= last:
                    break
                if self.steps == self.watch_at:
                    self.watcher()
                loop = handle.loop
                if loop is None:
                    callback(*handle.args)
                    continue
                if loop.stands_still:
                    if not loop.dead:
                        loop.parked.append(handle)
                    continue
                if loop is not running:
                    _set_running_loop(loop._self)
                    running = loop
                callback(*handle.args)
        finally:
            _set_running_loop(None)
        return self.stopped


class ProcessLoop:
    """The event loop of one simulated process: as much of asyncio's as the engine uses, on the shared timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.dead = False
        self.stands_still = False
        self.parked: list[Handle] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self._context = contextvars.Context()
        self._self = cast(asyncio.AbstractEventLoop, self)

    # what asyncio asks of a loop

    def time(self) -> float:
        """Seconds of the timeline."""
        return self.timeline.now_us / 1_000_000

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:
        """See asyncio."""
        handle = Handle(self, callback, args)
        self.timeline._ready.append(handle)
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:
        """See asyncio. Never early: fractions of a microsecond are rounded up."""
        handle = Handle(self, callback, args, -int(-when * 1_000_000 // 1))
        self.timeline.push(handle)
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:
        """See asyncio."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        """See asyncio."""
        return asyncio.Future(loop=self._self)

    def create_task(self, coro: Any, **_: Any) -> asyncio.Task[Any]:
        """See asyncio."""
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self._self)
        self.tasks.append(task)
        return task

    def get_debug(self) -> bool:
        """See asyncio."""
        return False

    def is_running(self) -> bool:
        """See asyncio."""
        return not self.dead

    def is_closed(self) -> bool:
        """See asyncio."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What nobody waited for any more: of a killed process that is nothing to report."""

    def is_same(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether a loop, as asyncio names it, is this one."""
        return loop is self._self

    # what the world does to it

    def start(self, main: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """The process begins."""
        return self._context.run(self.create_task, main)

    def freeze(self) -> None:
        """As SIGSTOP: nothing of it runs, its timers wait."""
        self.stands_still = True

    def thaw(self) -> None:
        """As SIGCONT: what waited runs, in its order."""
        if self.dead:
            return
        self.stands_still = False
        self.timeline._ready.extend(self.parked)
        self.parked.clear()

    def kill(self) -> None:
        """As SIGKILL: nothing of it runs any more. The memory of its coroutines is freed, without any effect outside:
        whatever they reach for refuses a dead process."""
        self.dead = self.stands_still = True
        self.parked.clear()
        for task in self.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            if not task.done():
                _close(task.get_coro())
        self.tasks.clear()


def _close(coro: Any) -> None:
    """Ends a coroutine that will never run on; one that waits again while it is closed is closed again."""
    for _ in range(20):
        try:
            coro.close()
        except BaseException:  # noqa: S112
            continue
        return
