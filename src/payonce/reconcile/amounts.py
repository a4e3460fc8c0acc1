"""The amounts of a statement as exact money: how numbers are written is declared by the layout or proven by the file.

No float anywhere: an amount is text until it is an integer of minor units. One that the currency cannot hold exactly is
refused unless a rounding is declared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, ROUND_UP, Decimal
from typing import Final

from payonce.core import decimals
from payonce.core.errors import MoneyError
from payonce.core.money import Money, currency_code, exponent, parse_minor
from payonce.intake.numbers import Evidence, NumberFormat, Sign, number_format, sign_of
from payonce.reconcile.errors import refuse
from payonce.reconcile.layout import Amount, Layout
from payonce.reconcile.table import Table

ROUNDINGS: Final = {
    "half_even": ROUND_HALF_EVEN, "half_up": ROUND_HALF_UP, "down": ROUND_DOWN, "up": ROUND_UP, "floor": ROUND_FLOOR,
    "ceiling": ROUND_CEILING,
}  # fmt: skip
_CREDIT_SIDES: Final = frozenset({"CR", "C", "CREDIT", "H", "HABEN"})
_DEBIT_SIDES: Final = frozenset({"DR", "D", "DEBIT", "S", "SOLL"})
_MINOR: Final = re.compile(r"-?\d+", re.ASCII)
# Where a problem goes: the row's place, column, value, code and message.
Complain = Callable[[int, str | None, str | None, str, str], None]


@dataclass(frozen=True, slots=True)
class Amounts:
    """One amount a row, signed as reported; None for a row that was refused. ``nets`` is what the file itself calls net (else
    the amount), row by row in minor units."""

    money: list[Money | None]
    nets: list[int]

    def net(self) -> dict[str, int]:
        """The sums of ``nets`` by currency."""
        sums: Counter[str] = Counter()
        for money, minor in zip(self.money, self.nets, strict=True):
            if money is not None:
                sums[money.currency] += minor
        return dict(sums)


def read_amounts(table: Table, layout: Layout, complain: Complain) -> Amounts:
    """All amounts of a table, each row's fee and net checked against it. Faults go to ``complain``."""
    names = [name for name in (layout.amount.column, layout.amount.credit, layout.fee, layout.net) if name]
    names = [name for name in names if name in table.columns]
    _refuse_floats(table, names)
    columns = {name: [_tidy(cell) for cell in table.cells(name)] for name in names}
    form = _format(table, layout, columns) if layout.amount.unit == "major" else None
    currencies = _currencies(table, layout, complain)
    reader = _Reader(layout, form, complain)
    money: list[Money | None] = []
    nets: list[int] = []
    sides = table.cells(layout.amount.side) if layout.amount.side in table.columns else None
    for place, currency in enumerate(currencies):
        found = None
        if currency is not None:
            found = reader.gross(place, columns, currency, sides[place] if sides is not None else None)
        money.append(found)
        nets.append(0 if found is None else reader.net(place, columns, found))
    return Amounts(money, nets)


def _tidy(text: str) -> str:
    return text.replace("\u2212", "-").removeprefix("+")


def _refuse_floats(table: Table, names: Sequence[str]) -> None:
    for name in names:
        if name in table.floats:
            refuse(
                f"{table.file}: column {name!r} holds binary floats, which are no exact money",
                code="float_money", hint="write it as DECIMAL, as text, or in whole minor units", file=table.file, column=name,
            )  # fmt: skip


def _format(table: Table, layout: Layout, columns: Mapping[str, Sequence[str]]) -> NumberFormat:
    declared = number_format(decimal=layout.decimal, thousands=layout.thousands)
    if declared is not None:
        return declared
    evidence = Evidence()
    for texts in columns.values():
        for place, text in enumerate(texts):
            evidence.see(text, line=table.lines[place])
    if evidence.contradicts:
        line, value = evidence.first[Sign.COMMA]
        refuse(
            f"{table.file}, line {line}: {value!r} has a decimal comma, other amounts a decimal point",
            code="mixed_numbers", hint='declare it: [statement] decimal = "," or "."', file=table.file, line=line,
        )  # fmt: skip
    decided = evidence.decide(thousands=layout.thousands)
    if evidence.count[Sign.DOUBTFUL] and not decided.settled:
        line, value = evidence.first[Sign.DOUBTFUL]
        refuse(
            f"{table.file}, line {line}: {value!r} may be grouped thousands or decimals, and no amount of the file tells",
            code="ambiguous_number", hint='declare it: [statement] decimal = "," or "."', file=table.file, line=line,
        )  # fmt: skip
    return decided


def _currencies(table: Table, layout: Layout, complain: Complain) -> list[str | None]:
    if layout.currency is None:
        return [layout.currency_value or ""] * len(table.rows)
    known: dict[str, str | None] = {}
    found: list[str | None] = []
    for place, text in enumerate(table.cells(layout.currency)):
        if text not in known:
            try:
                known[text] = currency_code(text)
            except MoneyError as error:
                known[text] = None
                complain(place, layout.currency, text, error.code, error.message if text else "the currency is missing")
        elif known[text] is None:
            complain(place, layout.currency, text, "unknown_currency", f"unknown currency {text!r}")
        found.append(known[text])
    return found


class _Reader:
    """Reads single amounts of one table."""

    def __init__(self, layout: Layout, form: NumberFormat | None, complain: Complain) -> None:
        self._layout = layout
        self._amount: Amount = layout.amount
        self._form = form
        self._complain = complain
        self._known: dict[tuple[str, str], int | str] = {}

    def gross(self, place: int, columns: Mapping[str, Sequence[str]], currency: str, side: str | None) -> Money | None:
        """The row's amount, from one column or two."""
        amount = self._amount
        minor = self._minor(
            place, amount.column, columns[amount.column][place], currency, empty=amount.credit is not None
        )
        if minor is None:
            return None
        if amount.credit is not None and amount.credit in columns:
            credit = self._minor(place, amount.credit, columns[amount.credit][place], currency, empty=True)
            if credit is None:
                return None
            minor = credit - minor
        if side is not None:
            word = side.upper()
            if word not in _CREDIT_SIDES and word not in _DEBIT_SIDES:
                self._complain(place, amount.side, side, "unknown_side", f"{side!r} is neither debit nor credit")
                return None
            minor = abs(minor) if word in _CREDIT_SIDES else -abs(minor)
        return Money.of_minor(minor, currency)

    def net(self, place: int, columns: Mapping[str, Sequence[str]], gross: Money) -> int:
        """What the row comes to after its fee; a row that does not add up is refused."""
        layout = self._layout
        if layout.net is None or layout.net not in columns or not columns[layout.net][place]:
            return gross.minor
        net = self._minor(place, layout.net, columns[layout.net][place], gross.currency, empty=True)
        text = columns[layout.fee][place] if layout.fee is not None and layout.fee in columns else ""
        fee = self._minor(place, layout.fee or "", text, gross.currency, empty=True)
        if net is None or fee is None:
            return gross.minor
        if gross.minor + layout.fee_sign * fee != net:
            message = f"the row does not add up: {gross.text} and a fee of {text or '0'} do not give {columns[layout.net][place]}"
            self._complain(place, layout.net, columns[layout.net][place], "does_not_add_up", message)
        return net

    def _minor(self, place: int, column: str, text: str, currency: str, *, empty: bool) -> int | None:
        if not text and empty:
            return 0
        known = self._known.get((text, currency))
        if known is None:
            known = self._known[text, currency] = self._read(text, currency)
        if isinstance(known, str):
            self._complain(place, column, text, "bad_amount", known)
            return None
        return known

    def _whole(self, text: str, currency: str) -> int | str:
        """Minor units written as such, in the provider's own decimals, or what is wrong."""
        if _MINOR.fullmatch(text) is None:
            return f"{text!r} is no whole number of minor units"
        if not self._amount.decimals:
            return int(text)
        try:
            return decimals.read(int(text), currency, self._amount.decimals).minor
        except MoneyError as error:
            return error.message

    def _read(self, text: str, currency: str) -> int | str:
        """Minor units, or what is wrong."""
        if not text:
            return "the amount is missing"
        if self._form is None:
            return self._whole(text, currency)
        plain = self._form.plain(text)
        if plain is None or (not self._form.settled and sign_of(text) is Sign.DOUBTFUL):
            return f"{text!r} is no amount as this file writes them (decimals after {self._form.decimal!r})"
        try:
            return parse_minor(plain, currency)
        except MoneyError as error:
            if error.code != "not_representable" or self._layout.rounding is None:
                return (
                    f"{error.message}; declare [statement] rounding if the provider rounds"
                    if self._layout.rounding is None and error.code == "not_representable"
                    else error.message
                )
            scaled = Decimal(plain).scaleb(exponent(currency))
            return int(scaled.to_integral_value(rounding=ROUNDINGS[self._layout.rounding]))
