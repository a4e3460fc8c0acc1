"""A hard rate limit: never more than n accepted calls in any one second, whatever the boundaries of seconds."""

from __future__ import annotations

from collections import deque

_SECOND_US = 1_000_000


class Limiter:
    """Remembers when the calls of the last second were accepted. Refused calls do not count."""

    def __init__(self) -> None:
        self._accepted: deque[int] = deque()

    def wait_us(self, now: int, *, per_second: int) -> int:
        """0 and the call is counted, or the microseconds until one would be accepted."""
        accepted = self._accepted
        while accepted and accepted[0] <= now - _SECOND_US:
            accepted.popleft()
        if len(accepted) >= per_second:
            return accepted[-per_second] + _SECOND_US - now
        accepted.append(now)
        return 0
