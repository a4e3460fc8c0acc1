"""The server's clock as this process last heard it: leases and events of all hosts are on one clock, the server's.

Each transaction hears the time anew; between two hearings it is carried on by a clock of this machine that never jumps.
"""

from __future__ import annotations

import time


class ServerClock:
    """Microseconds since the epoch, as the server counts them."""

    def __init__(self) -> None:
        self._heard_us = 0
        self._at_ns = 0

    def heard(self, now_us: int) -> None:
        """The server has just told its time."""
        self._heard_us, self._at_ns = now_us, time.monotonic_ns()

    def __call__(self) -> int:
        """The time now. Within a transaction that is the time which came with its lock, to the instant."""
        return self._heard_us + (time.monotonic_ns() - self._at_ns) // 1000
