"""Many worlds one after the other, and what they come to."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass

from payonce.testing.simulator.world import Trace, Verdict, World


def worlds(seed: int, *, runs: int | None, seconds: float | None, trace: Trace | None = None) -> Iterator[Verdict]:
    """The verdicts of the worlds from a seed on, until there were ``runs`` of them or ``seconds`` of real time are over.

    Between them the memory is swept; while one lives it is not, since it is gone as a whole anyway.
    """
    ends_s = None if seconds is None else time.monotonic() + seconds
    number = 0
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        while (runs is None or number < runs) and (ends_s is None or time.monotonic() < ends_s):
            yield World(seed + number, trace=trace).run()
            number += 1
            if number % 20 == 0:
                gc.collect()
    finally:
        if was_enabled:
            gc.enable()


@dataclass(slots=True)
class Tally:
    """Sums over worlds."""

    worlds: int = 0
    broken: int = 0
    attempts: int = 0
    look_ups: int = 0
    starts: int = 0
    kills: int = 0
    simulated_us: int = 0

    def add(self, verdict: Verdict) -> None:
        """One more world."""
        self.worlds += 1
        self.broken += bool(verdict.violations)
        self.attempts += verdict.attempts
        self.look_ups += verdict.look_ups
        self.starts += verdict.starts
        self.kills += verdict.kills
        self.simulated_us += verdict.simulated_us

    def text(self, cpu_s: float) -> str:
        """What was done, and how fast: attempts are calls that left a process, per second of processor time."""
        days = self.simulated_us / 86_400_000_000
        rate = self.attempts / cpu_s if cpu_s > 0 else 0.0
        return (
            f"{self.worlds} worlds, {self.broken} broken; {self.attempts} attempts, {self.look_ups} look-ups, "
            f"{self.starts} starts, {self.kills} kills, {days:.1f} simulated days; {rate:.0f} attempts/s"
        )
