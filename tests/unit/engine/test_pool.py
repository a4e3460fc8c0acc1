"""The tasks of a run: no more than are needed, and none is ended while an answer lies there unread."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

from payonce.core.model import SECOND_US, Limits
from payonce.engine.pool import Pool
from payonce.engine.schedule import Task
from payonce.engine.stop import Ending, StopRequest
from tests.unit.engine.virtualtime import VirtualClock, run_virtually


@dataclass
class Running:
    """As much of a session as the tasks ask for."""

    limits: Limits
    stop: StopRequest = field(default_factory=StopRequest)
    in_flight: int = 0

    def __post_init__(self) -> None:
        self.pacer = self

    def cancel_waiting(self) -> None:
        """Nobody waits."""


def pool_of(work: Any, running: Running) -> Pool:
    calls = asyncio.Semaphore(running.limits.concurrency)
    return Pool(work, session=cast(Any, running), calls=calls, most=8, wake=asyncio.Event())


def test_no_more_tasks_than_work() -> None:
    """Two pieces of work begin two tasks, whatever the limit; a third that comes when both are idle begins none."""

    async def main(clock: VirtualClock) -> int:
        async def work(task: Task) -> None:
            await asyncio.sleep(0.01)

        pool = pool_of(work, Running(Limits(concurrency=4)))
        for n in (1, 2):
            await pool.put(Task(n, f"t{n}", None))
        await asyncio.sleep(1)
        await pool.put(Task(3, "t3", None))
        begun = len(pool._tasks)
        await pool.drain()
        return begun

    assert run_virtually(main) == 2


def test_an_answer_that_is_there_when_the_grace_period_is_over_is_read() -> None:
    """As after a suspension, when both come at once."""

    async def main(clock: VirtualClock) -> list[int]:
        loop, read = asyncio.get_running_loop(), []
        answer = loop.create_future()

        async def work(task: Task) -> None:
            read.append(await answer)
            await asyncio.sleep(0)

        running = Running(Limits(concurrency=1, grace_us=5 * SECOND_US))
        pool = pool_of(work, running)
        await pool.put(Task(1, "t1", None))
        await asyncio.sleep(0)
        running.stop.request(Ending.HALTED, code="x")
        draining = asyncio.create_task(pool.drain())
        await asyncio.sleep(0)
        loop.call_later(5.0, lambda: loop.call_soon(lambda: loop.call_soon(answer.set_result, 1)))
        await draining
        return read

    assert run_virtually(main) == [1]
