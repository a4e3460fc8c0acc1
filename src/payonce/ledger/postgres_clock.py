"""The server's clock as this process last heard it: leases and events of all hosts are on one clock, the server's.

Each transaction hears the time anew; between two hearings it is carried on by a clock of this machine that never jumps.
"""

from __future__ import annotations

import time


class ServerClock:
    """Microseconds since the epoch, as the server counts them. Heard by the writing and the reading thread alike."""

    def __init__(self) -> None:
        # One value, so that no thread ever sees the time of one hearing with the instant of another.
        self._heard = (0, 0)

    def heard(self, now_us: int) -> None:
        """The server has just told its time."""
        self._heard = (now_us, time.monotonic_ns())

    def __call__(self) -> int:
        """The time now. Within a transaction that is the time which came with its lock, to the instant."""
        heard_us, at_ns = self._heard
        return heard_us + (time.monotonic_ns() - at_ns) // 1000
