"""How amounts are written in a text file: proven by the file as a whole or declared, never guessed from one value.

``1,234`` is one thousand two hundred and thirty-four to some and one and a bit to others. A value such as ``12.50``
proves that a point separates decimals, since groups have three digits; one such value settles the doubtful ones of its
file, two that contradict each other settle nothing. Pure: works on text, knows no file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

BLANKS: Final = " \u00a0\u202f\u2009"
APOSTROPHES: Final = "'’"
_GROUPS = {".": ",", ",": "."}
# Groups of three, or as in India a last group of three behind groups of two; the same separator throughout.
_GROUPED = r"[1-9]\d{{0,2}}(?:(?P<g>[{0}])\d{{3}})(?:(?P=g)\d{{3}})*|[1-9]\d?(?:(?P<h>[{0}])\d{{2}})(?:(?P=h)\d{{2}})*(?P=h)\d{{3}}"
_SHAPE: Final = re.compile(rf"-?\d[\d.,{BLANKS}{APOSTROPHES}]*", re.ASCII)
_DOUBTFUL: Final = re.compile(r"-?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)


class Sign(Enum):
    """What one value says about the decimal separator of its file."""

    POINT = "."
    COMMA = ","
    DOUBTFUL = "?"
    NOTHING = ""

    # Members are single objects; the usual hash of an enum is a call in Python, and these are counted by the million.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A decided way of writing numbers. ``group`` holds the characters that may group digits, none if empty.

    ``settled`` is False where nothing in the file or the settings decided: doubtful values are then refused.
    """

    decimal: str = "."
    group: str = ""
    settled: bool = False

    def plain(self, text: str) -> str | None:
        """The value in plain decimal notation (``-1234.50``), or None where it is not written in this format."""
        found = _pattern(self.decimal, self.group).fullmatch(text)
        if found is None:
            return None
        whole = re.sub(r"\D", "", found["whole"], flags=re.ASCII)
        fraction = found["fraction"]
        return f"{found['sign']}{whole}" + (f".{fraction}" if fraction else "")


_PATTERNS: dict[tuple[str, str], re.Pattern[str]] = {}


def _pattern(decimal: str, group: str) -> re.Pattern[str]:
    known = _PATTERNS.get((decimal, group))
    if known is None:
        grouped = f"|{_GROUPED.format(re.escape(group))}" if group else ""
        known = re.compile(rf"(?P<sign>-?)(?P<whole>\d+{grouped})(?:{re.escape(decimal)}(?P<fraction>\d+))?", re.ASCII)
        _PATTERNS[decimal, group] = known
    return known


def number_format(*, decimal: str | None, thousands: str | None) -> NumberFormat | None:
    """The format that the settings declare, None where they leave the decimal separator open.

    One of point and comma being declared as thousands separator leaves only the other for decimals.
    """
    if decimal is None and thousands in _GROUPS:
        decimal = _GROUPS[thousands]
    if decimal is None:
        return None
    return _with_decimal(decimal, thousands=thousands)


def _with_decimal(decimal: str, *, thousands: str | None) -> NumberFormat:
    if thousands is None:
        group = _GROUPS.get(decimal, "") + BLANKS + APOSTROPHES
    elif thousands in BLANKS or thousands in APOSTROPHES:
        # A no-break space and a plain one, or the two apostrophes, look the same to whoever declared one of them.
        group = (BLANKS if thousands in BLANKS else APOSTROPHES) if thousands else ""
    else:
        group = thousands
    return NumberFormat(decimal, group, settled=True)


def sign_of(text: str) -> Sign:
    """What one value, without outer blanks, says about the decimal separator. Anything that is no number: nothing."""
    if _SHAPE.fullmatch(text) is None:
        return Sign.NOTHING
    if _DOUBTFUL.fullmatch(text) is not None:
        return Sign.DOUBTFUL
    points, commas = text.count("."), text.count(",")
    if points and commas:
        decimal = "." if text.rfind(".") > text.rfind(",") else ","
    elif points + commas == 1:
        decimal = "." if points else ","
    elif points or commas:
        decimal = "," if points else "."
    else:
        return Sign.NOTHING
    reads = _with_decimal(decimal, thousands=None).plain(text)
    return Sign.NOTHING if reads is None else Sign(decimal)


def looks_like_number(text: str) -> bool:
    """Whether a text is made of what numbers are made of, in any way of writing them."""
    return _SHAPE.fullmatch(text) is not None


class Evidence:
    """What the values of a file say together. Remembers the first line and value of each kind."""

    __slots__ = ("count", "first")

    def __init__(self) -> None:
        self.count: dict[Sign, int] = dict.fromkeys(Sign, 0)
        self.first: dict[Sign, tuple[int, str]] = {}

    def see(self, text: str, *, line: int) -> Sign:
        """Takes one value in and says what it says."""
        sign = sign_of(text)
        self.count[sign] += 1
        if sign not in self.first:
            self.first[sign] = (line, text)
        return sign

    @property
    def contradicts(self) -> bool:
        """Some values prove a decimal point and others a decimal comma."""
        return self.count[Sign.POINT] > 0 and self.count[Sign.COMMA] > 0

    def decide(self, *, thousands: str | None) -> NumberFormat:
        """The format that all values together prove; unsettled where they prove none.

        Where they contradict each other the more frequent one is kept for what is beyond doubt, unsettled.
        """
        comma = self.count[Sign.COMMA] > self.count[Sign.POINT]
        decided = _with_decimal("," if comma else ".", thousands=thousands)
        proven = (self.count[Sign.POINT] > 0) != (self.count[Sign.COMMA] > 0)
        return NumberFormat(decided.decimal, decided.group, settled=proven)

    def settles(self, assumed: NumberFormat, *, thousands: str | None) -> NumberFormat | None:
        """The format that must be read with instead of the assumed one; None where it makes no difference."""
        proven = self.decide(thousands=thousands)
        if proven.decimal != assumed.decimal:
            return proven
        return proven if self.count[Sign.DOUBTFUL] and proven.settled != assumed.settled else None
