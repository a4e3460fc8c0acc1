"""What an observer at the provider's door counts: calls, look-ups, refusals for load, calls in flight.

For auditors and benchmarks only; no answer depends on it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from payonce.providers.simulator.plan import Reply

_SECOND_US = 1_000_000


class Stats:
    """Counts of one world. Times in microseconds on the world's clock."""

    def __init__(self) -> None:
        self.calls = 0
        self.lookups = 0
        self.rate_limited = 0
        self.replays = 0
        self.first_call_us: int | None = None
        self.last_call_us: int | None = None
        self.max_in_one_second = 0
        self.max_in_flight = 0
        self.max_in_flight_per_target = 0
        self._window: deque[int] = deque()
        self._open: dict[int, str] = {}
        self._per_target: dict[str, int] = {}

    def arrived(self, now: int, *, read: bool) -> None:
        """Counts a request; only requests that may execute something count as calls."""
        if read:
            self.lookups += 1
            return
        self.calls += 1
        if self.first_call_us is None:
            self.first_call_us = now
        self.last_call_us = now
        window = self._window
        window.append(now)
        while window[0] <= now - _SECOND_US:
            window.popleft()
        self.max_in_one_second = max(self.max_in_one_second, len(window))

    def refused(self, reply: Reply | None) -> None:
        """Counts an answer that was given for load."""
        if reply is not None and reply.status == 429:
            self.rate_limited += 1

    def replayed(self, reply: Reply) -> None:
        """Counts an answer that a repeated key got, unless the key was in use or misused."""
        if reply.headers:
            self.replays += 1

    def opened(self, ticket: int, *, target: str) -> None:
        """A call on a target is in flight from now until `closed`."""
        self._open[ticket] = target
        count = self._per_target.get(target, 0) + 1
        self._per_target[target] = count
        self.max_in_flight = max(self.max_in_flight, len(self._open))
        self.max_in_flight_per_target = max(self.max_in_flight_per_target, count)

    def closed(self, ticket: int) -> None:
        """The call was answered, or its client is gone. Harmless for a ticket that is not open."""
        target = self._open.pop(ticket, None)
        if target is None:
            return
        left = self._per_target[target] - 1
        if left:
            self._per_target[target] = left
        else:
            del self._per_target[target]

    def as_dict(self) -> dict[str, Any]:
        """The counts by name."""
        return {
            "calls": self.calls,
            "lookups": self.lookups,
            "rate_limited": self.rate_limited,
            "replays": self.replays,
            "first_call_us": self.first_call_us,
            "last_call_us": self.last_call_us,
            "max_calls_in_one_second": self.max_in_one_second,
            "in_flight": len(self._open),
            "max_in_flight": self.max_in_flight,
            "max_in_flight_per_target": self.max_in_flight_per_target,
        }
