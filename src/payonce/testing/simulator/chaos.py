"""What goes wrong in a simulated world, and when: drawn from its seed, between any two steps of anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from payonce.core.model import SECOND_US
from payonce.core.states import BatchState
from payonce.engine.crashpoints import CRASH_POINTS
from payonce.testing.simulator.loop import ProcessGone
from payonce.testing.simulator.process import Process

if TYPE_CHECKING:
    from payonce.testing.simulator.world import World

_MOST_STARTS: Final = 60


class Chaos:
    """The bad luck of one world. ``until_us`` is when it ends at the latest."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.over = False
        self.until_us = 300 * SECOND_US
        self._left = world.scenario.chaos_strikes
        self._point: str | None = None
        self._passes = 0
        scenario = world.scenario
        self._weights: list[tuple[Callable[[], None], float]] = [
            (self._crash, scenario.crash),
            (self._crash_at_point, scenario.crash_at_point),
            (self._freeze, scenario.freeze),
            (self._ledger_fault, scenario.ledger_fault),
            (self._ledger_slow, scenario.ledger_slow),
            (self._operator, scenario.operator),
            (self._signal, scenario.signal),
            (self._clock, scenario.clock),
            (self._long_pause, scenario.long_pause),
            (self._another, 0.3 if scenario.processes > 1 else 0.0),
        ]
        self._actions = [action for action, _ in self._weights]
        self._shares = [share for _, share in self._weights]

    def begin(self) -> None:
        """The first processes, the outages, the first bad luck."""
        world = self.world
        for _ in range(world.scenario.processes):
            world.timeline.at(int(world.rng.random() ** 2 * 5 * SECOND_US), self._start)
        for _ in range(world.scenario.outages):
            begin = int(world.rng.random() * 5 * SECOND_US)
            world.far.outages.append((begin, begin + int(world.rng.random() * 5 * SECOND_US)))
        world.timeline.watcher = self._strike
        self._next()

    def end(self) -> None:
        """Nothing goes wrong any more."""
        world = self.world
        self.over = True
        self._point = None
        world.timeline.watch_at = 0
        world.timeline.stopped = False
        world.far.calm_down()
        for process in world.running:
            process.loop.thaw()
            process.ledger.faults.clear()
        if world.log is not None:
            world.log("calm")

    def _next(self) -> None:
        mean = self.world.scenario.chaos_steps
        self.world.timeline.watch_at = self.world.timeline.steps + 1 + int(self.world.rng.expovariate(1 / mean))

    def _strike(self) -> None:
        """Called between two steps."""
        if self.over:
            return
        self._left -= 1
        if self._left < 0 or not any(self._shares):
            self.world.timeline.stopped = True
            return
        self.world.rng.choices(self._actions, self._shares)[0]()
        self._next()

    def crossed(self, name: str) -> None:
        """A process passes a named instant; it may be its last."""
        if name != self._point:
            return
        self._passes -= 1
        if self._passes > 0:
            return
        self._point = None
        loop = asyncio.get_running_loop()
        process = next((p for p in self.world.running if p.loop.is_same(loop)), None)
        if process is None:
            return
        self._say(f"{process.name} dies at {name}")
        self._die(process)
        raise ProcessGone

    def ended(self, process: Process) -> None:
        """A process came to its end: another one is started, unless all is done."""
        world = self.world
        if self.over:
            world.timeline.stopped = not world.running
            return
        status = world.store.status("simulated")
        if status.batch.state is BatchState.FINISHED and world.rng.random() < 0.8:
            world.timeline.stopped = not world.running
            return
        if world.rng.random() < 0.7:
            world.operator.let_go_on(status)
        self._start_later()

    # kinds of bad luck

    def _say(self, text: str) -> None:
        if self.world.log is not None:
            self.world.log(text)

    def _somebody(self) -> Process | None:
        running = self.world.running
        return self.world.rng.choice(running) if running else None

    def _start(self) -> None:
        if not self.over and len(self.world.processes) < _MOST_STARTS:
            self.world.start()

    def _start_later(self) -> None:
        wait = self.world.rng.choice((100_000, SECOND_US, 5 * SECOND_US))
        self.world.timeline.at(self.world.timeline.now_us + int(wait * self.world.rng.random()), self._start)

    def _another(self) -> None:
        if len(self.world.running) < 4:
            self._start()

    def _die(self, process: Process) -> None:
        self.world.kill(process)
        self._start_later()

    def _crash(self) -> None:
        process = self._somebody()
        if process is not None:
            self._die(process)

    def _crash_at_point(self) -> None:
        self._point = self.world.rng.choice(CRASH_POINTS)
        self._passes = self.world.rng.choice((1, 1, 2, 5))

    def _freeze(self) -> None:
        process = self._somebody()
        if process is None or process.loop.stands_still:
            return
        lease_us = self.world.scenario.limits.lease_us
        wait = self.world.rng.choice((50_000, SECOND_US, 3 * SECOND_US, lease_us * 5 // 4, lease_us * 3))
        self._say(f"{process.name} is frozen for {wait / SECOND_US} s")
        process.loop.freeze()
        self.world.timeline.at(self.world.timeline.now_us + wait, self._thaw, process)

    def _thaw(self, process: Process) -> None:
        self._say(f"{process.name} goes on")
        process.loop.thaw()

    def _ledger_fault(self) -> None:
        process = self._somebody()
        if process is None:
            return
        kind = self.world.rng.choice(self.world.scenario.disk_faults)
        self._say(f"{process.name}: its next ledger access fails ({kind})")
        setattr(process.ledger.faults, kind, True)

    def _ledger_slow(self) -> None:
        process = self._somebody()
        if process is not None:
            wait = self.world.rng.choice((SECOND_US, 3 * SECOND_US, 40 * SECOND_US))
            self._say(f"{process.name}: its next write takes {wait / SECOND_US} s")
            process.ledger.faults.slow_us = wait

    def _signal(self) -> None:
        process = self._somebody()
        if process is not None:
            self._say(f"{process.name} gets a signal")
            process.hurried = process.hurried or process.stop.is_set
            process.signalled_us = process.signalled_us or self.world.timeline.now_us
            process.stop.signal()

    def _clock(self) -> None:
        """The machine's clock is set, by seconds as time servers do, or by more; a later one may set it back."""
        self.world.clock.ahead_us = self.world.rng.choice(self.world.scenario.jumps_us)
        self._say(f"the wall clock is off by {self.world.clock.ahead_us / SECOND_US} s")

    def _long_pause(self) -> None:
        """Everything dies, and is started again much later."""
        world = self.world
        wait = world.rng.choice(world.scenario.pauses_us)
        for process in tuple(world.running):
            world.kill(process)
        if not world.scenario.clock and world.rng.random() < 0.5:  # nobody can tell how far a clock was set meanwhile
            world.reboot()
        self._say(f"nothing runs for {wait / SECOND_US} s")
        self.until_us += wait
        for _ in range(world.scenario.processes):
            world.timeline.at(world.timeline.now_us + wait + int(world.rng.random() * SECOND_US), self._start)

    def _operator(self) -> None:
        self.world.operator.interfere()
