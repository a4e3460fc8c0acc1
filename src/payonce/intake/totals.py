"""Money per currency of the items of an input: how many, how much, the largest and the smallest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from payonce.core.money import MAX_MINOR, Money, format_minor
from payonce.intake.report import Report
from payonce.intake.settings import Expect
from payonce.intake.spool import Spool

_BY_CHANCE: Final = 3


@dataclass(frozen=True, slots=True)
class Extreme:
    """An item that is the largest or smallest of its currency, the first one where several are."""

    id: str
    line: int
    money: Money


@dataclass(frozen=True, slots=True)
class CurrencyTotal:
    """The items of one currency."""

    currency: str
    items: int
    total: Money
    largest: Extreme
    smallest: Extreme


class Totals:
    """Sums items up as they come. Items without an amount are not part of any total."""

    def __init__(self) -> None:
        self._items: dict[str, int] = {}
        self._minor: dict[str, int] = {}
        self._largest: dict[str, tuple[int, str, int]] = {}
        self._smallest: dict[str, tuple[int, str, int]] = {}

    def add(
        self,
        minors: Sequence[int | None],
        currencies: Sequence[str | None],
        *,
        ids: Sequence[str],
        lines: Sequence[int],
    ) -> None:
        """Takes some items in, given column by column."""
        for currency in set(currencies):
            if currency is None:
                continue
            if currencies.count(currency) == len(ids):
                places: Sequence[int] = range(len(ids))
                amounts = [minor for minor in minors if minor is not None]
            else:
                places = [place for place, code in enumerate(currencies) if code == currency]
                amounts = [minor for minor in map(minors.__getitem__, places) if minor is not None]
            assert len(amounts) == len(places), "an item has an amount and a currency, or neither"
            self._items[currency] = self._items.get(currency, 0) + len(amounts)
            self._minor[currency] = self._minor.get(currency, 0) + sum(amounts)
            top, low = max(amounts), min(amounts)
            if currency not in self._largest or top > self._largest[currency][0]:
                place = places[amounts.index(top)]
                self._largest[currency] = (top, ids[place], lines[place])
            if currency not in self._smallest or low < self._smallest[currency][0]:
                place = places[amounts.index(low)]
                self._smallest[currency] = (low, ids[place], lines[place])

    def sums(self) -> dict[str, int]:
        """The total of each currency in minor units, however large."""
        return dict(self._minor)

    def result(self) -> tuple[CurrencyTotal, ...]:
        """The totals, by currency code, without those that are too large to be money (which is a problem)."""
        return tuple(
            CurrencyTotal(
                currency,
                self._items[currency],
                Money.of_minor(self._minor[currency], currency),
                _extreme(self._largest[currency], currency),
                _extreme(self._smallest[currency], currency),
            )
            for currency in sorted(self._items)
            if self._minor[currency] <= MAX_MINOR
        )


def _extreme(found: tuple[int, str, int], currency: str) -> Extreme:
    return Extreme(found[1], found[2], Money.of_minor(found[0], currency))


def totals_of(spool: Spool) -> Totals:
    """The totals of all items in a spool."""
    totals = Totals()
    for batch, lines in spool.records():
        totals.add(
            [record.amount_minor for record in batch],
            [record.currency for record in batch],
            ids=[record.id for record in batch],
            lines=lines,
        )
    return totals


def note_sum_rows(totals: Sequence[CurrencyTotal], report: Report) -> None:
    """Notes an item that is as large as all others of its currency together: perhaps the sum below a list, in whatever
    language. Among two or three items that is too often a chance."""
    for total in totals:
        large = total.largest
        if total.items > _BY_CHANCE and large.money.minor * 2 == total.total.minor:
            report.note(
                "sum_row",
                f"the item {large.id!r} (line {large.line}) comes to as much as all other {total.currency} items together; if "
                "it is a row of totals, remove it",
                line=large.line,
            )


def check_expected(expect: Expect, *, items: int, totals: Mapping[str, int], report: Report) -> None:
    """Reports where the input does not add up to its control totals. A currency that is not stated is not checked,
    except that a stated set of totals must cover every currency of the input."""
    for currency, minor in totals.items():
        if minor > MAX_MINOR:
            report.block(report.make("total_too_large", f"the {currency} total is too large; split the input"))
    if expect.items is not None and expect.items != items:
        report.block(
            report.make(
                "expected_items", f"[expect] items = {expect.items}, but the input has {items} items", value=str(items)
            )
        )
    if not expect.total:
        return
    for currency in sorted({*expect.total, *totals}):
        wanted, found = expect.total.get(currency), totals.get(currency, 0)
        if wanted == found:
            continue
        stated = "no total" if wanted is None else f'total = "{format_minor(wanted, currency)}"'
        report.block(
            report.make(
                "expected_total",
                f"[expect] states {stated} for {currency}, but the items come to {format_minor(found, currency)}",
                value=format_minor(found, currency),
            )
        )
