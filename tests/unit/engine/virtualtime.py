"""An event loop whose time passes only when nothing else is left to do: a minute of waiting takes no time at all."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
START_US = 1_796_025_600_000_000


class _Leaping(selectors.SelectSelector):
    """Instead of waiting it lets the loop's time leap to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found:
            assert timeout is not None, "every task waits for something that will never happen"
            self.now_s += max(timeout, 0.0)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in virtual time."""

    def __init__(self) -> None:
        self.leaping = _Leaping()
        super().__init__(self.leaping)

    def time(self) -> float:
        """Seconds since the loop began."""
        return self.leaping.now_s


class VirtualClock:
    """The engine's clock on a virtual loop; jitter comes from a seed."""

    def __init__(self, loop: VirtualLoop, seed: int = 1) -> None:
        self._loop = loop
        self._random = random.Random(seed)

    def steady_us(self) -> int:
        """Microseconds of virtual time."""
        return round(self._loop.time() * 1_000_000)

    def wall_us(self) -> int:
        """The same, from a day in November 2026 on."""
        return START_US + self.steady_us()

    def rand(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()


def run_virtually(main: Callable[[VirtualClock], Coroutine[Any, Any, T]]) -> T:
    """Runs a coroutine in virtual time, with its clock."""
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(VirtualClock(loop)))
