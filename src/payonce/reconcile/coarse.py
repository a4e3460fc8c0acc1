"""Comparing totals where the provider gives nothing finer: calls and money by day and model. Pure.

What comes of it is called coarse, because it is: it can show that something is wrong, never which call, and that everything
agrees only as far as sums can. Days are UTC days. A call at midnight may be counted on either side of it by the two
accounts; days that differ while their total over all days agrees are told apart from totals that differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from enum import StrEnum

_WIDE = Context(prec=60)


class Result(StrEnum):
    """How one pair of totals compares."""

    AGREES = "agrees"
    OTHER_DAY = "other_day"  # the day differs, the total over all days agrees
    DIFFERS = "differs"
    NOT_COVERED = "not_covered"  # the statement says nothing about that day


@dataclass(frozen=True, slots=True)
class Sum:
    """A number of calls and what they cost, exactly, in major units. ``calls`` is None where the statement tells none."""

    calls: int | None
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Key:
    """What is summed up together."""

    day: str
    value: str
    currency: str


@dataclass(frozen=True, slots=True)
class Line:
    """Both sides of one day and value, or of one value over all days (``day`` empty)."""

    key: Key
    ledger: Sum
    statement: Sum
    result: Result

    @property
    def difference(self) -> Decimal:
        """What the statement has more than the ledger."""
        return _WIDE.subtract(self.statement.amount, self.ledger.amount)


@dataclass(frozen=True, slots=True)
class Coarse:
    """A coarse comparison: by day, and over the days that the statement covers."""

    days: tuple[Line, ...]
    totals: tuple[Line, ...]

    @property
    def found(self) -> bool:
        """Whether a total differs."""
        return any(line.result is Result.DIFFERS for line in self.totals)


def compare(ledger: Mapping[Key, Sum], statement: Mapping[Key, Sum], *, tolerance: Mapping[str, Decimal]) -> Coarse:
    """Compares totals. ``tolerance`` is how far two amounts may differ, by currency, in major units; counts never may.

    A day that the statement does not name lies outside of what it covers if it is before its first or after its last.
    """
    covered = sorted({key.day for key in statement})
    first, last = (covered[0], covered[-1]) if covered else ("", "")
    keys = sorted({*ledger, *statement}, key=lambda key: (key.currency, key.value, key.day))
    inside = [key for key in keys if covered and first <= key.day <= last]
    totals: list[Line] = []
    for value, currency in dict.fromkeys((key.value, key.currency) for key in inside):
        own = [key for key in inside if (key.value, key.currency) == (value, currency)]
        ours, theirs = _sum(ledger.get(key) for key in own), _sum(statement.get(key) for key in own)
        result = Result.AGREES if _agree(ours, theirs, tolerance.get(currency, Decimal(0))) else Result.DIFFERS
        totals.append(Line(Key("", value, currency), ours, theirs, result))
    agreeing = {(line.key.value, line.key.currency) for line in totals if line.result is Result.AGREES}
    return Coarse(tuple(_day(key, ledger, statement, tolerance, agreeing, inside) for key in keys), tuple(totals))


def _day(
    key: Key,
    ledger: Mapping[Key, Sum],
    statement: Mapping[Key, Sum],
    tolerance: Mapping[str, Decimal],
    agreeing: set[tuple[str, str]],
    inside: Sequence[Key],
) -> Line:
    ours, theirs = _sum([ledger.get(key)]), _sum([statement.get(key)])
    if key not in inside:
        return Line(key, ours, theirs, Result.NOT_COVERED)
    if _agree(ours, theirs, tolerance.get(key.currency, Decimal(0))):
        return Line(key, ours, theirs, Result.AGREES)
    same = (key.value, key.currency) in agreeing
    return Line(key, ours, theirs, Result.OTHER_DAY if same else Result.DIFFERS)


def _sum(found: Iterable[Sum | None]) -> Sum:
    calls: int | None = 0
    amount = Decimal(0)
    for one in found:
        if one is None:
            continue
        calls = None if calls is None or one.calls is None else calls + one.calls
        amount = _WIDE.add(amount, one.amount)
    return Sum(calls, amount)


def _agree(ours: Sum, theirs: Sum, tolerance: Decimal) -> bool:
    counts = theirs.calls is None or ours.calls is None or ours.calls == theirs.calls
    return counts and abs(_WIDE.subtract(theirs.amount, ours.amount)) <= tolerance
