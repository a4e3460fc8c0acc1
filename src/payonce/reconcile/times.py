"""Times of a statement: how they are written is declared or proven by the whole column, never guessed from one value.

``04/05/2025`` is a day in April to some and in May to others; one value of the column with a part above 12 proves which
comes first, and a column that proves neither is refused. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SECOND_US: Final = 1_000_000
_DAY_US: Final = 86_400 * SECOND_US
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ISO: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?", re.ASCII)  # fmt: skip
_PARTS: Final = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{2,4})(?:[T ,]+(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?\s*(AM|PM)?\s*(Z|UTC|[+-]\d\d:?\d\d)?)?", re.ASCII | re.IGNORECASE)  # fmt: skip
_EPOCH_DIGITS: Final = {10: SECOND_US, 13: 1000, 16: 1}
# Names that reports use for offsets; each means one offset only in these reports.
_ZONES: Final = {
    "UTC": 0, "GMT": 0, "Z": 0, "BST": 60, "CET": 60, "CEST": 120, "MEZ": 60, "MESZ": 120, "EST": -300, "EDT": -240,
    "CST": -360, "CDT": -300, "MST": -420, "MDT": -360, "PST": -480, "PDT": -420, "AEST": 600, "AEDT": 660, "JST": 540,
}  # fmt: skip
AMERICAN_ZONES: Final = frozenset({"EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT"})


@dataclass(frozen=True, slots=True)
class Moment:
    """A time and how exact it is: it lies in ``[at_us, at_us + resolution_us)``."""

    at_us: int
    resolution_us: int

    @property
    def end_us(self) -> int:
        """The end of its own resolution."""
        return self.at_us + self.resolution_us


class TimeFault(ValueError):
    """A column of times that cannot be read for certain: the place of the value that shows it, a code and why."""

    def __init__(self, place: int, code: str, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.code = code
        self.message = message


def read_times(
    texts: Sequence[str], *, form: str | None = None, zone: str | None = None, zones: Sequence[str] | None = None
) -> list[Moment | None]:
    """All times of a column; empty cells are None.

    ``form`` declares how they are written (strptime, or ``epoch``), ``zone`` the zone of those that name none (UTC by
    default), ``zones`` one for each. Raises TimeFault.
    """
    day_first = None if form else _day_first(texts, american=bool(zones) and set(zones or ()) <= AMERICAN_ZONES)
    fallback = _zone(zone or "UTC", 0)
    found: list[Moment | None] = []
    for place, text in enumerate(texts):
        if not text:
            found.append(None)
            continue
        own = _zone(zones[place], place) if zones is not None and zones[place] else fallback
        moment = _declared(text, form, own) if form else _read(text, day_first, own)
        if moment is None:
            raise TimeFault(place, "bad_time", f"{text!r} is no time that can be read; declare time_format")
        found.append(moment)
    return found


def fixed_offset(name: str) -> int | None:
    """The offset from UTC of a zone in microseconds; None for one whose offset changes. Raises TimeFault."""
    zone = _zone(name, 0)
    return None if isinstance(zone, ZoneInfo) else (zone.utcoffset(None) or timedelta()) // timedelta(microseconds=1)


def _zone(name: str, place: int) -> tzinfo:
    if name.upper() in _ZONES:
        return timezone(timedelta(minutes=_ZONES[name.upper()]))
    offset = _offset(name)
    if offset is not None:
        return offset
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise TimeFault(
            place, "unknown_zone", f"time zone {name!r} is not known; use one such as Europe/Berlin"
        ) from None


def _offset(text: str) -> tzinfo | None:
    """A zone that is written as an offset; None where it is none that there can be (``+25:00``, ``-01:75``)."""
    if text.upper() in ("Z", "UTC"):
        return UTC
    found = re.fullmatch(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d\d)?", text, re.ASCII)
    if found is None or int(found[2]) > 23 or int(found[3] or 0) > 59:
        return None
    minutes = int(found[2]) * 60 + int(found[3] or 0)
    return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))


def _day_first(texts: Sequence[str], *, american: bool) -> bool | None:
    """Whether the day comes first in dates with slashes or dashes; None where the column holds none of these."""
    day_proof: int | None = None
    month_proof: int | None = None
    first: int | None = None
    for place, text in enumerate(texts):
        found = _PARTS.fullmatch(text) if text and text[:3].isascii() and not text[:4].isdigit() else None
        if found is None or found[2] == ".":
            continue
        first = place if first is None else first
        day_proof = place if int(found[1]) > 12 and day_proof is None else day_proof
        month_proof = place if int(found[3]) > 12 and month_proof is None else month_proof
    if first is None:
        return None
    if day_proof is not None and month_proof is not None:
        raise TimeFault(
            max(day_proof, month_proof), "mixed_dates", "days come first in some dates and months in others"
        )
    if day_proof is None and month_proof is None and not american:
        raise TimeFault(
            first,
            "ambiguous_date",
            f"{texts[first]!r} may be a day in two months and nothing in the file tells which; declare time_format",
        )
    return day_proof is not None


def _read(text: str, day_first: bool | None, zone: tzinfo) -> Moment | None:
    iso = _ISO.fullmatch(text)
    if iso is not None:
        return _iso(iso, zone)
    if text.isascii() and text.isdigit() and len(text) in _EPOCH_DIGITS:
        unit = _EPOCH_DIGITS[len(text)]
        return Moment(int(text) * unit, unit)
    whole, _, fraction = text.partition(".")
    if fraction.isdigit() and whole.isdigit() and len(whole) == 10 and text.isascii():
        return Moment(int(whole) * SECOND_US + int(fraction[:6].ljust(6, "0")), 10 ** max(0, 6 - len(fraction)))
    parts = _PARTS.fullmatch(text)
    return _parts(parts, day_first, zone) if parts is not None else None


def _iso(found: re.Match[str], zone: tzinfo) -> Moment | None:
    year, month, day, hour, minute, second, fraction, offset = found.groups()
    if offset:
        own = _offset(offset)
        if own is None:
            return None
        zone = own
    micro = (fraction or "")[:6].ljust(6, "0")
    resolution = _resolution(hour, second, fraction)
    return _moment((year, month, day, hour or 0, minute or 0, second or 0, micro), zone, resolution)


def _parts(found: re.Match[str], day_first: bool | None, zone: tzinfo) -> Moment | None:
    one, separator, two, three, hour, minute, second, fraction, half, offset = found.groups()
    if offset:
        own = _offset(offset)
        if own is None:
            return None
        zone = own
    if len(one) == 4:
        year, month, day = one, two, three
    elif len(three) == 3 or len(one) == 3:
        return None
    else:
        # With dots the day comes first wherever dots are used; with the others, as the column proved.
        first = True if separator == "." else bool(day_first)
        day, month, year = (one, two, three) if first else (two, one, three)
    if len(year) == 2:
        year = f"20{year}"
    hours = int(hour or 0)
    if half:
        hours = hours % 12 + (12 if half.upper() == "PM" else 0)
    micro = (fraction or "")[:6].ljust(6, "0")
    return _moment(
        (year, month, day, hours, minute or 0, second or 0, micro), zone, _resolution(hour, second, fraction)
    )


def _resolution(hour: str | None, second: str | None, fraction: str | None) -> int:
    if hour is None:
        return _DAY_US
    if second is None:
        return 60 * SECOND_US
    return 10 ** max(0, 6 - len(fraction)) if fraction else SECOND_US


def _moment(parts: tuple[str | int, ...], zone: tzinfo, resolution: int) -> Moment | None:
    year, month, day, hour, minute, second, micro = (int(part) for part in parts)
    try:
        at = datetime(year, month, day, hour, minute, second, micro, tzinfo=zone)
    except ValueError:
        return None
    return Moment((at - _EPOCH) // timedelta(microseconds=1), resolution)


def _declared(text: str, form: str, zone: tzinfo) -> Moment | None:
    units = {"epoch": SECOND_US, "epoch_s": SECOND_US, "epoch_ms": 1000, "epoch_us": 1}
    if form in units:
        return Moment(int(text) * units[form], units[form]) if text.isascii() and text.isdigit() else None
    try:
        at = datetime.strptime(text, form)  # the zone is put in below
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=zone)
    fine = (
        ("%f", 1),
        ("%S", SECOND_US),
        ("%T", SECOND_US),
        ("%X", SECOND_US),
        ("%c", SECOND_US),
        ("%M", 60 * SECOND_US),
    )
    resolution = next((unit for mark, unit in fine if mark in form), 3600 * SECOND_US if "%H" in form else _DAY_US)
    return Moment((at - _EPOCH) // timedelta(microseconds=1), resolution)
