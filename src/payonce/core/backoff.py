"""Waiting: exponential backoff with full jitter, bounded in length; and the pace that 429 answers teach.

Pure: the random number and the time are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from payonce.core.model import SECOND_US

BASE_US: Final = SECOND_US // 5
CAP_US: Final = 30 * SECOND_US
# A provider that asks for a longer wait than this stops the batch instead of holding a process for hours.
LONGEST_WAIT_US: Final = 900 * SECOND_US


def full_jitter_us(attempt: int, *, rand: float, base_us: int = BASE_US, cap_us: int = CAP_US) -> int:
    """A wait before attempt ``attempt`` + 1: uniform between 0 and ``base * 2**(attempt-1)``, at most ``cap_us``.

    ``rand`` is in [0, 1). At least a millisecond, so that a loop of refusals never spins.
    """
    ceiling = min(cap_us, base_us << min(max(attempt - 1, 0), 20))
    return max(1000, int(ceiling * rand))


@dataclass(frozen=True, slots=True)
class Pace:
    """The calls per 1,000 s that the provider was found to take, or None while nothing was refused.

    Cut to a little under the accepted rate where calls meet 429s, then raised by a twentieth for every second without
    one: it finds the provider's limit and stays just under it. ``changed_us`` is when it last changed, ``cut_us`` when
    it was last cut.
    """

    per_ks: int | None = None
    changed_us: int = 0
    cut_us: int | None = None

    def cut(self, *, accepted_per_s: int, now_us: int) -> Pace:
        """After a 429. Several 429s of one burst (within half a second) count once; one that follows a raise tells that
        the raise was too much, and counts."""
        if self.per_ks is not None and self.cut_us is not None and now_us - self.cut_us < SECOND_US // 2:
            return self
        if accepted_per_s == 0 and self.per_ks is not None:
            # Nothing was taken, so nothing was measured: half as fast, not a standstill.
            return Pace(max(1000, self.per_ks // 2), now_us, now_us)
        seen = max(accepted_per_s, 1) * 1000
        target = seen if self.per_ks is None else min(seen, self.per_ks)
        return Pace(max(1000, target * 9 // 10), now_us, now_us)

    def grow(self, *, now_us: int) -> Pace:
        """After calls that were taken: a twentieth more for a second without a 429, a tenth where the last cut was
        long ago (a storm that has passed must not slow the rest of the batch down)."""
        if self.per_ks is None or now_us - self.changed_us < SECOND_US:
            return self
        calm = self.cut_us is None or now_us - self.cut_us > 5 * SECOND_US
        return Pace(self.per_ks + max(500, self.per_ks // (10 if calm else 20)), now_us, self.cut_us)
