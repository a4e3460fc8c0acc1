"""Texts of a large statement as numbers, in DuckDB's SQL: amounts, times, words. Builds expressions; runs nothing.

Each expression has a companion that is true where the text is written in another way than the one it reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from payonce.reconcile.times import Moment, TimeFault, read_times

# A text longer than this may not fit a 64-bit number.
_LONGEST_AMOUNT: Final = 18
_EPOCH: Final = re.compile(r"\d{10}", re.ASCII)
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?Z?", re.ASCII)
_PARTS: Final = re.compile(
    r"\d{1,2}([./-])\d{1,2}\1\d{4}(?P<clock> \d{1,2}:\d\d(?P<second>:\d\d)?(?P<half> (?:AM|PM))?)?", re.ASCII
)


class Unusual(Exception):
    """The file is not one for this way; the usual one reads it, or says what is wrong with it."""


def quoted(word: str) -> str:
    """A word as SQL text."""
    return "'" + word.replace("'", "''") + "'"


def case(column: str, values: Mapping[str, str], otherwise: str) -> str:
    """An expression that translates a column's words."""
    if not values:
        return otherwise
    cases = " ".join(f"when {quoted(word)} then {value}" for word, value in values.items())
    return f"case {column} {cases} else {otherwise} end"


def minor_of(column: str, digits: int, *, unit: str) -> str:
    """Minor units of an amount's text, NULL where it is none; zero where it is empty."""
    if unit == "minor" or not digits:
        number = f"try_cast({column} as bigint)"
    else:
        number = f"cast(try_cast({column} as decimal(18, {digits})) * {10**digits} as bigint)"
    return f"case when {column} = '' then 0 else {number} end"


def odd_amount(column: str, digits: int, *, unit: str) -> str:
    """Whether an amount's text is not plain, has more decimals than the currency, or is too long; empty is plain."""
    form = r"-?\d+" if unit == "minor" or not digits else rf"-?\d+(\.\d{{1,{digits}}})?"
    return f"(not regexp_full_match({column}, '({form})?') or length({column}) > {_LONGEST_AMOUNT})"


@dataclass(frozen=True, slots=True)
class Times:
    """How all times of a file are written. ``us`` is their expression in microseconds, without the zone's offset, ``odd``
    the one that is true where a time is written in another way; ``form`` is set where days and months were told apart."""

    us: str
    odd: str
    resolution_us: int
    form: str | None = None

    @classmethod
    def proven_by(cls, texts: Sequence[str], zones: Sequence[str] | None) -> Times:
        """The form that some texts of the file have in common, each with its zone. Raises Unusual where they have none."""
        try:
            moments = read_times(texts, zones=zones)
        except TimeFault as fault:
            raise Unusual(fault.message) from fault
        sample, resolution = next(
            ((text, m.resolution_us) for text, m in zip(texts, moments, strict=True) if m is not None), ("", 1)
        )
        if _EPOCH.fullmatch(sample):
            return cls("try_cast(time as bigint) * 1000000", r"not regexp_full_match(time, '\d{10}')", resolution)
        if not sample or _ISO.fullmatch(sample):
            us = "epoch_us(try_cast(time as timestamp))"
            pattern = re.sub(r"\d", "_", sample)
            return cls(us, f"(time not like '{pattern}' or {us} is null)", resolution)
        form = _form(sample, texts, zones, moments)
        us = f"epoch_us(try_strptime(time, '{form}'))"
        return cls(us, f"{us} is null", resolution, form)


def _form(sample: str, texts: Sequence[str], zones: Sequence[str] | None, moments: Sequence[Moment | None]) -> str:
    """The form of dates such as 11/30/2026, whose order the texts have to prove."""
    found = _PARTS.fullmatch(sample)
    if found is None:
        raise Unusual("times in a form of their own")
    clock = ""
    if found["clock"]:
        clock = (" %I:%M" if found["half"] else " %H:%M") + (":%S" if found["second"] else "")
        clock += " %p" if found["half"] else ""
    for order in ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y"):
        form = order.format(found[1]) + clock
        try:
            # Read once with each order: the reader of small files has decided, and the form has to agree with it.
            if read_times(texts, form=form, zones=zones) == moments:
                return form
        except TimeFault:
            continue
    raise Unusual("times in several forms")
