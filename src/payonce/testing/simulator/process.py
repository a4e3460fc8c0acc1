"""One simulated process: ``payonce run`` from its start to its end, with the real engine in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import PayonceError
from payonce.core.model import SECOND_US, Actor, Batch, Limits, Status
from payonce.core.states import BatchState, ItemState
from payonce.engine import attempt, beside, runner
from payonce.engine.run import RunOutcome, run_batch
from payonce.engine.stop import StopRequest
from payonce.engine.takein import take_in_only
from payonce.ledger.outputs import OutputFiles
from payonce.testing.simulator.adapter import SimAdapter
from payonce.testing.simulator.ledger import SimLedger
from payonce.testing.simulator.loop import START_US, ProcessLoop, Timeline
from payonce.testing.simulator.spools import SimSpool

BATCH = "simulated"
LEDGER_ID = "simulated"
# The engine's modules that name the instants at which a process may die.
_CROSSED_IN = (attempt, beside, runner)


# How long the machine had been running when the world began: a steady clock is never at its very beginning.
UP_US: Final = 100 * SECOND_US


class SimClock:
    """The engine's clocks in a simulated world. ``ahead_us`` is how wrong the wall clock is, ``boot_us`` when the
    machine was started."""

    def __init__(self, timeline: Timeline, rng: Random) -> None:
        self._timeline = timeline
        self._rng = rng
        self.ahead_us = 0
        self.boot_us = -UP_US

    def steady_us(self) -> int:
        """See engine.ports.Clock."""
        return self._timeline.now_us - self.boot_us

    def wall_us(self) -> int:
        """See engine.ports.Clock."""
        return START_US + self._timeline.now_us + self.ahead_us

    def rand(self) -> float:
        """See engine.ports.Clock."""
        return self._rng.random()


@dataclass(slots=True, eq=False)
class Process:
    """One process. It is over when ``loop.dead`` (killed) or ``ended`` (its command has come to its end)."""

    name: str
    number: int
    actor: Actor
    loop: ProcessLoop
    stop: StopRequest
    ledger: Any = None
    spool: Any = None
    adapter: Any = None
    ended: bool = False
    hurried: bool = False
    outcome: RunOutcome | None = None
    error: BaseException | None = None
    fault_heard_us: int | None = None
    mismatch_us: int | None = None
    signalled_us: int | None = None
    engine_us: int | None = None
    ended_us: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.ended or self.loop.dead

    async def run(self, limits: Limits, clock: SimClock, then: Callable[[Process], None]) -> None:
        """What the command does: looks at the batch, configures it, runs it."""
        try:
            self.outcome = await self._run(limits, clock)
        except PayonceError as error:
            self.error = error
        except Exception as bug:
            self.error = bug
        if not self.loop.dead:
            self.ended, self.ended_us = True, self.loop.timeline.now_us
            then(self)

    async def _run(self, limits: Limits, clock: SimClock) -> RunOutcome | None:
        ledger: SimLedger = self.ledger
        (batch,) = await ledger.batches(BATCH)
        status = await ledger.status(BATCH)
        if not _may_start(status):
            if not await self._take_in(batch, limits, clock):
                return None
            status = await ledger.status(BATCH)
            if not _may_start(status):
                return None
        wanted = asdict(limits)
        if dict(batch.limits) != wanted:
            control = Control(BatchCommand.CONFIGURE, limits=wanted, reason="limits of the batch file")
            await ledger.control(BATCH, control, actor=self.actor)
        return await self.engine(batch, limits, clock)

    async def _take_in(self, batch: Batch, limits: Limits, clock: SimClock) -> bool:
        return await take_in_only(
            self.ledger,
            batch=batch,
            actor=self.actor,
            clock=clock,
            lease_us=limits.lease_us,
            spool=self.spool,
            ledger_id=LEDGER_ID,
            outputs=OutputFiles(None),
        )

    async def engine(self, batch: Batch, limits: Limits, clock: SimClock) -> RunOutcome:
        """The real engine, over everything simulated."""
        self.engine_us = self.loop.timeline.now_us
        adapter: SimAdapter = self.adapter
        spool: SimSpool = self.spool
        return await run_batch(
            self.ledger,
            adapter,
            batch=batch,
            limits=limits,
            actor=self.actor,
            spool=spool,
            ledger_id=LEDGER_ID,
            stop=self.stop,
            clock=clock,
        )


def _may_start(status: Status) -> bool:
    """Whether a run has anything to do, and no person holds it; as the service says."""
    over = status.batch.state in (BatchState.FINISHED, BatchState.CANCELLED)
    done = over and not (status.count(ItemState.PENDING) or status.count(ItemState.PLANNED))
    return not (done or status.batch.state is BatchState.PAUSED or status.batch.held)


def tell(process: Process) -> str:
    """How a process ended, in a few words."""
    if process.loop.dead:
        return "killed"
    if process.error is not None:
        return f"error: {process.error}"
    if process.outcome is None:
        return "nothing to do, or held"
    return f"exit {process.outcome.exit_code} {process.outcome.code or ''}".strip()


@contextmanager
def crash_points(crossed: Callable[[str], None]) -> Iterator[None]:
    """Has the engine tell each named instant that it passes, for as long as the block lasts."""
    before = [module.hit for module in _CROSSED_IN]
    for module in _CROSSED_IN:
        module.hit = crossed  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module, hit in zip(_CROSSED_IN, before, strict=True):
            module.hit = hit  # type: ignore[attr-defined]


__all__ = ["BATCH", "LEDGER_ID", "SECOND_US", "Process", "SimClock", "crash_points", "tell"]
