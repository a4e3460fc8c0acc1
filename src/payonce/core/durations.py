"""Durations as people write them, turned into whole microseconds: exactly, or not at all."""

from __future__ import annotations

import re
from typing import Final

UNIT_US: Final[dict[str, int]] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_DURATION: Final = re.compile(r"(\d{1,12})(?:\.(\d{1,9}))? ?(us|ms|s|m|h|d)", re.ASCII)
DURATION_FORM: Final = 'a duration with its unit in quotes, such as "500ms", "30s", "5m" or "24h"'


def duration_us(text: str) -> int:
    """The duration in whole microseconds, exactly. A bare number has no unit and is refused: it would be a guess.

    Raises ValueError saying what is expected."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"expected {DURATION_FORM}")
    whole, fraction, unit = found[1], found[2] or "", found[3]
    scale: int = 10 ** len(fraction)
    scaled = int(whole + fraction) * UNIT_US[unit]
    if scaled % scale:
        raise ValueError("durations are counted in whole microseconds")
    return scaled // scale
