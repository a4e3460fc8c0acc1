"""The real clock."""

from __future__ import annotations

import random
import time


class SystemClock:
    """The machine's clocks. CLOCK_BOOTTIME counts suspended time; where it is missing the monotonic clock stands in."""

    def __init__(self) -> None:
        self._steady = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def steady_us(self) -> int:
        """See engine.ports.Clock."""
        return time.clock_gettime_ns(self._steady) // 1000

    def wall_us(self) -> int:
        """See engine.ports.Clock."""
        return time.time_ns() // 1000

    def rand(self) -> float:
        """See engine.ports.Clock."""
        return random.random()
