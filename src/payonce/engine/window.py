"""The last answers of a provider, as far as they tell of its limit."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from payonce.core.model import SECOND_US

# With fewer answers in a second than this, that many of the last half minute are looked at.
_FEW = 20
_LONGEST_LOOK_US = 30 * SECOND_US


@dataclass(slots=True)
class Window:
    """The answers of the last second, or the last twenty where a second has fewer: how many calls were taken, how many
    met a 429."""

    _last: deque[tuple[int, bool]] = field(default_factory=lambda: deque(maxlen=_FEW))
    _taken: deque[int] = field(default_factory=lambda: deque(maxlen=50_000))
    _limited: deque[int] = field(default_factory=lambda: deque(maxlen=50_000))

    def took(self, now_us: int) -> None:
        """A call was taken."""
        self._taken.append(now_us)
        self._last.append((now_us, True))

    def refused(self, now_us: int) -> None:
        """A call met a 429."""
        self._limited.append(now_us)
        self._last.append((now_us, False))

    def limited(self, now_us: int) -> int:
        """How many 429s there were in the last second."""
        return _recent(self._limited, now_us)

    def is_limit(self, now_us: int) -> bool:
        """Whether the 429s are a limit and not stray ones: a fifth of the calls or more, and more than a handful."""
        taken, limited, _ = self._counts(now_us)
        return limited >= 5 and limited * 4 >= taken

    def is_barred(self, now_us: int) -> bool:
        """Whether nothing at all was taken in the last second."""
        return not _recent(self._taken, now_us)

    def taken_per_s(self, now_us: int) -> int:
        """Calls taken a second, measured over what there is, at least a tenth of a second."""
        taken, _, since_us = self._counts(now_us)
        return taken * SECOND_US // max(now_us - since_us, SECOND_US // 10)

    def _counts(self, now_us: int) -> tuple[int, int, int]:
        """Taken, limited, and since when they are counted."""
        taken, limited = _recent(self._taken, now_us), _recent(self._limited, now_us)
        if taken + limited >= _FEW:
            first = min(times[0] for times in (self._taken, self._limited) if times)
            return taken, limited, first
        last = [(at, was_taken) for at, was_taken in self._last if at >= now_us - _LONGEST_LOOK_US]
        return sum(t for _, t in last), sum(not t for _, t in last), last[0][0] if last else now_us


def _recent(times: deque[int], now_us: int) -> int:
    while times and times[0] < now_us - SECOND_US:
        times.popleft()
    return len(times)
