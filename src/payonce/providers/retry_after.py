"""Retry-After: seconds or an HTTP date, read as RFC 9110 section 10.2.3 has it, and never trusted blindly.

Pure. What is no number of seconds and no date means nothing: the caller's own backoff stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from payonce.core.model import SECOND_US

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS: Final = re.compile(r"(\d{1,12})(?:\.(\d{1,9}))?", re.ASCII)
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], start=1
    )
}
_CLOCK: Final = r"(?P<h>\d{2}):(?P<m>\d{2}):(?P<s>\d{2})"
# The three forms of RFC 9110 section 5.6.7; all are in UTC.
_DATES: Final = (
    re.compile(rf"[a-z]{{3}}, (?P<d>\d{{2}}) (?P<mon>[a-z]{{3}}) (?P<y>\d{{4}}) {_CLOCK} (?:gmt|utc)", re.ASCII),
    re.compile(rf"[a-z]{{6,9}}, (?P<d>\d{{2}})-(?P<mon>[a-z]{{3}})-(?P<y>\d{{2}}) {_CLOCK} (?:gmt|utc)", re.ASCII),
    re.compile(rf"[a-z]{{3}} (?P<mon>[a-z]{{3}}) (?P<d>[ \d]\d) {_CLOCK} (?P<y>\d{{4}})", re.ASCII),
)


@dataclass(frozen=True, slots=True)
class Wait:
    """How long the provider asks to wait, in microseconds. ``over_cap``: longer than the caller's cap, so that the
    batch had better pause than keep a process waiting; the wait itself is not shortened."""

    wait_us: int
    over_cap: bool = False


def parse_retry_after(
    value: str | None, *, now_us: int, date: str | None = None, cap_us: int | None = None
) -> Wait | None:
    """The wait that a Retry-After header asks for, or None where it says nothing usable.

    ``date`` is the answer's own Date header: where it can be read, it is the "now" of a date form, so that a clock
    that is wrong here does not matter. Fractions of a second are rounded up, a date in the past means no wait.
    """
    if value is None:
        return None
    text = value.strip()
    seconds = _SECONDS.fullmatch(text)
    if seconds is not None:
        whole = int(seconds[1]) + (1 if (seconds[2] or "").strip("0") else 0)
        wait_us = whole * SECOND_US
    else:
        until_us = http_date_us(text, now_us=now_us)
        if until_us is None:
            return None
        start_us = http_date_us(date, now_us=now_us) if date else None
        wait_us = max(0, until_us - (now_us if start_us is None else start_us))
    return Wait(wait_us, over_cap=cap_us is not None and wait_us > cap_us)


def http_date_us(text: str, *, now_us: int) -> int | None:
    """An HTTP date in microseconds since the epoch, or None. A two-digit year is within 50 years of now."""
    lowered = text.strip().lower()
    for pattern in _DATES:
        found = pattern.fullmatch(lowered)
        if found is not None:
            return _moment_us(found, now_us)
    return None


def _moment_us(found: re.Match[str], now_us: int) -> int | None:
    year = int(found["y"])
    if len(found["y"]) == 2:
        this_year = (_EPOCH + timedelta(microseconds=now_us)).year
        year += this_year - this_year % 100
        if year > this_year + 50:
            year -= 100
    # A leap second, which the form allows, is taken as the second before it.
    second = min(int(found["s"]), 59)
    try:
        moment = datetime(
            year, _MONTHS.get(found["mon"], 0), int(found["d"]), int(found["h"]), int(found["m"]), second, tzinfo=UTC
        )
    except ValueError:
        return None
    return (moment - _EPOCH) // timedelta(microseconds=1)
