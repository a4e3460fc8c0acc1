"""Contributor credits: the official price times a multiplier, exactly, against the credit that the report shows.

The product is a decimal, never a float; it is rounded only as the layout declares that the provider rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, Inexact

from payonce.intake.numbers import NumberFormat
from payonce.reconcile.amounts import ROUNDINGS, Complain
from payonce.reconcile.layout import Credit
from payonce.reconcile.table import Table

_PLAIN = NumberFormat(".", "", settled=True)
# A product of two decimals of a report fits easily; whatever would not is an error, not a rounding.
_EXACT = Context(prec=60, traps=[Inexact])


@dataclass(frozen=True, slots=True)
class CreditFault:
    """A credit that is not what it should be, both in major units as text."""

    expected: str
    found: str


def expected_credit(official: str, multiplier: str, *, decimals: int | None, rounding: str) -> Decimal:
    """The official price times the multiplier, rounded to ``decimals`` as declared; exact where None."""
    product = _EXACT.multiply(Decimal(official), Decimal(multiplier))
    if decimals is None:
        return product
    return product.quantize(Decimal(1).scaleb(-decimals), rounding=ROUNDINGS[rounding])


def check_credits(table: Table, credit: Credit, complain: Complain) -> dict[int, CreditFault]:
    """The rows whose credit is another than expected, by place. Rows without an official price have none.

    A price, multiplier or credit that is no plain number, or a model that the table of multipliers does not have, goes to
    ``complain``.
    """
    official, found = table.cells(credit.official), table.cells(credit.credit)
    names = table.cells(credit.multiplier) if credit.multiplier is not None else None
    wrong: dict[int, CreditFault] = {}
    for place, price in enumerate(official):
        if not price:
            continue
        text = credit.constant or (names[place] if names is not None else "")
        factor = credit.table.get(text) if credit.table else text
        if factor is None:
            complain(
                place, credit.multiplier, text, "no_multiplier", f"[statement.credit] has no multiplier for {text!r}"
            )
            continue
        values = [_PLAIN.plain(value) for value in (price, factor, found[place])]
        bad = next(
            (
                name
                for name, value in zip((credit.official, credit.multiplier, credit.credit), values, strict=True)
                if value is None
            ),
            "",
        )
        if None in values:
            complain(
                place, bad or None, None, "bad_amount", "official price, multiplier and credit must be plain decimals"
            )
            continue
        expected = expected_credit(values[0] or "", values[1] or "", decimals=credit.decimals, rounding=credit.rounding)
        if Decimal(values[2] or "") != expected:
            wrong[place] = CreditFault(f"{expected:f}", found[place])
    return wrong
