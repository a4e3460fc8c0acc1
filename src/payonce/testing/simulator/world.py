"""A simulated world from its seed to its verdict: first everything goes wrong, then nothing does and all must end well.

The phases: the batch is sealed; processes start, die, freeze, halt and start again while the chaos lasts; then the world
is calm, and within a bounded number of starts and of simulated time every item must be settled (an honest operator
answers what is left to a person); the auditor compares all claims with what truly happened; a last run makes no call.
"""

from __future__ import annotations

import contextlib
from asyncio import events
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from payonce.core.errors import LeaseLost, PayonceError
from payonce.core.model import SECOND_US, Actor, BatchSpec, Item, Limits, NewItem
from payonce.core.states import ItemState
from payonce.engine.stop import StopRequest
from payonce.testing.simulator.adapter import SimAdapter
from payonce.testing.simulator.auditor import Auditor
from payonce.testing.simulator.books import Call, Effect
from payonce.testing.simulator.calm import Calm
from payonce.testing.simulator.chaos import Chaos
from payonce.testing.simulator.farside import FarSide
from payonce.testing.simulator.kinds import draw
from payonce.testing.simulator.ledger import SimLedger
from payonce.testing.simulator.loop import ProcessLoop, Timeline
from payonce.testing.simulator.operators import HonestOperator
from payonce.testing.simulator.process import BATCH, UP_US, Process, SimClock, crash_points, tell
from payonce.testing.simulator.scenario import Scenario
from payonce.testing.simulator.spools import SimSpool, SpoolFolder
from payonce.testing.simulator.store import SimStore, unsaid

Trace = Callable[[str], None]
# More than this in one stretch is a process that spins; a large batch may take more.
_MOST_STEPS: Final = 300_000
_STEPS_PER_ITEM: Final = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a seed. ``violations`` is empty where every promise was kept; ``attempts`` are calls that left."""

    seed: int
    violations: tuple[str, ...]
    attempts: int
    look_ups: int
    starts: int
    kills: int
    steps: int
    simulated_us: int


class World:
    """One world. ``run`` may be called once."""

    def __init__(self, seed: int, *, trace: Trace | None = None) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.scenario: Scenario = draw(self.rng)
        self.timeline = Timeline()
        self.clock = SimClock(self.timeline, self.rng)
        self.log = None if trace is None else self._logger(trace)
        self.far = FarSide(self.timeline, self.rng, self.scenario, self._executed)
        self.far.log = self.log
        self.processes: list[Process] = []
        self.auditor = Auditor(
            self.scenario, self.far.books, lambda: self.timeline.now_us, self._halt, processes=self.processes
        )
        self.store = SimStore(
            clock=self.clock.wall_us, is_alive=self._is_alive, steady=self._steady, trail=self.scenario.trail
        )
        self.spools = SpoolFolder()
        self.running: list[Process] = []
        self.boots = 1
        self.limits = self.scenario.limits
        self.most_steps = _MOST_STEPS + _STEPS_PER_ITEM * len(self.scenario.items)
        self.operator = HonestOperator(self)
        self.chaos = Chaos(self)

    def _logger(self, trace: Trace) -> Trace:
        return lambda text: trace(f"{self.timeline.now_us / SECOND_US:12.6f}  {text}")

    def _halt(self) -> None:
        self.timeline.stopped = True
        if self.log is not None:
            self.log(f"VIOLATION {self.auditor.violations[-1]}")

    def run(self) -> Verdict:
        """The whole life of the world."""
        scenario = self.scenario
        if self.log is not None:
            self.log(f"{len(scenario.items)} items; {replace(scenario, items=scenario.items[:1])}")
        spec = BatchSpec(BATCH, "payout", "simulated", targets=scenario.targets)
        items = scenario.items if scenario.targets else tuple(_without_target(item) for item in scenario.items)
        self.store.seal(spec, items, seal="sealed", actor=Actor(user="planner"))
        with crash_points(self.chaos.crossed), contextlib.nullcontext() if scenario.trail else unsaid():
            self.chaos.begin()
            until_us = -1
            while until_us != self.chaos.until_us:  # a long pause puts the end off
                until_us = self.chaos.until_us
                self.timeline.run(until_us=until_us, most_steps=self.most_steps)
            if not self.auditor.violations:
                self.chaos.end()
                calm = Calm(self)
                calm.become_settled()
                calm.judge()
        events._set_running_loop(None)
        for process in self.running:
            process.loop.kill()
        return self._verdict()

    def _verdict(self) -> Verdict:
        killed = sum(process.loop.dead and not process.ended for process in self.processes)
        return Verdict(
            self.seed,
            tuple(self.auditor.violations),
            self.auditor.attempts,
            self.far.look_ups,
            len(self.processes),
            killed,
            self.timeline.steps,
            self.timeline.now_us,
        )

    # processes

    def start(self) -> Process:
        """One more process begins."""
        number = len(self.processes) + 1
        loop = ProcessLoop(self.timeline)
        host = "host" if self.scenario.one_host else f"host{number}"
        actor = Actor(user="runner", host=host, pid=number, boot=f"{host}/{self.boots}")
        process = Process(f"p{number}", number, actor, loop, StopRequest())
        process.ledger = SimLedger(
            self.store,
            loop,
            actor,
            disk_us=self._disk_us,
            landed=self.auditor.landed if self.log is None else self._log_landed,
            handed_over=self.auditor.handed_over,
            heard_fault=lambda: self._heard_fault(process),
        )
        process.spool = SimSpool(self.spools, loop, name=f"spool{number}", crossed=self.chaos.crossed)
        process.adapter = SimAdapter(process, self.far, sent=self._sent, answered=self._answered)
        self.processes.append(process)
        self.running.append(process)
        if self.log is not None:
            self.log(f"{process.name} starts")
        loop.start(process.run(self.limits, self.clock, self._ended))
        return process

    def kill(self, process: Process) -> None:
        """SIGKILL."""
        if process.is_over:
            return
        if self.log is not None:
            self.log(f"{process.name} is killed")
        self.running.remove(process)
        process.loop.kill()
        self.far.forget(process)
        self.auditor.told = {item: who for item, who in self.auditor.told.items() if who is not process}

    def reboot(self) -> None:
        """The machines start anew: what their steady clocks showed before means nothing any more."""
        self.boots += 1
        self.clock.boot_us = self.timeline.now_us - UP_US
        if self.log is not None:
            self.log("the machines are started anew")

    def _ended(self, process: Process) -> None:
        self.running.remove(process)
        if self.log is not None:
            self.log(f"{process.name} ends: {tell(process)}")
        self.far.forget(process)
        self.auditor.ended(process)
        if process.error is not None and not isinstance(process.error, PayonceError):
            self.auditor.blame(f"{process.name} ended with a bug: {process.error!r}")
        if isinstance(process.error, LeaseLost):
            self.auditor.blame(f"{process.name} ended because its lease was lost, instead of joining again")
        process.loop.dead = process.loop.stands_still = True
        self.chaos.ended(process)

    def _is_alive(self, actor: Actor) -> bool | None:
        if actor.pid == 0 or not self.scenario.one_host:
            return None
        return not self.processes[actor.pid - 1].is_over

    def _steady(self, actor: Actor) -> int | None:
        """What an actor's steady clock shows, where whoever uses the ledger now is on its machine."""
        caller = self.store.caller
        near = self.scenario.one_host or (caller is not None and caller.host == actor.host)
        return self.clock.steady_us() if near and actor.boot == f"{actor.host}/{self.boots}" else None

    def _disk_us(self) -> int:
        most = self.scenario.disk_us
        return int(most * self.rng.random()) if most else 0

    def _heard_fault(self, process: Process) -> None:
        if process.fault_heard_us is None:
            process.fault_heard_us = self.timeline.now_us
            if self.log is not None:
                self.log(f"{process.name} hears of a ledger fault")

    # what the auditor hears

    def _sent(self, call: Call, item: str) -> None:
        if self.log is not None:
            self.log(
                f"{call.process.name} sends call {call.number} for {item} step {call.step} key {(call.key or '-')[:8]}"
            )
        self.auditor.sent(call, item)
        outstanding = self.far.outstanding.get(call.target)
        if outstanding:
            self.auditor.target_is_free(call, outstanding, self.far.can_execute)

    def _answered(self, call: Call, reply: object) -> None:
        if self.log is not None:
            self.log(f"{call.process.name} hears on call {call.number}: {getattr(reply, 'outcome', reply)}")
        self.auditor.answered(call, reply)  # type: ignore[arg-type]

    def _executed(self, call: Call, effect: Effect) -> None:
        if self.log is not None:
            self.log(
                f"EXECUTED {effect.item} step {effect.step} as {effect.reference} over {effect.money} by call {call.number}"
            )
        self.auditor.executed(call, effect)

    def _log_landed(
        self, worker: object, commands: tuple[object, ...], landed: tuple[object, ...], asked_us: int
    ) -> None:
        assert self.log is not None
        for command, result in zip(commands, landed, strict=True):
            what = getattr(command, "event", "?")
            code = getattr(command, "code", None) or ""
            name = self.scenario.items[getattr(command, "n", 1) - 1].id
            self.log(f"w{getattr(worker, 'fence', 0)} {what} {name} {code}: {result}")
        self.auditor.landed(worker, commands, landed, asked_us)  # type: ignore[arg-type]

    def items(self, state: ItemState) -> tuple[Item, ...]:
        """The items in a state, as the ledger has them."""
        return self.store.items(BATCH, states=(state,), limit=100_000).items

    def let_pass(self, wait_us: int) -> None:
        """Time goes by; what is still under way at the provider happens."""
        until_us = self.timeline.now_us + wait_us
        if wait_us > 0 and not self.auditor.violations:
            self.timeline.stopped = False
            self.timeline.run(until_us=until_us, most_steps=self.most_steps)
            self.timeline.now_us = max(self.timeline.now_us, until_us)

    def change_limits(self, limits: Limits) -> None:
        """What processes that start from now on are configured with."""
        self.limits = limits
        self.auditor.budget = dict(limits.budget)


def _without_target(item: NewItem) -> NewItem:
    return replace(item, target=None)


__all__ = ["Verdict", "World"]
