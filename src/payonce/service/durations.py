"""Rates and amounts as a batch file writes them, turned into exact whole numbers; durations for people.

A bare number is refused everywhere: it has no unit, and a guessed one would be wrong by a factor of a thousand.
No float is accepted or made: TOML's ``1.5`` is not the text ``"1.5s"``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from payonce.core.durations import UNIT_US
from payonce.core.money import currency_code, format_minor, parse_minor

_RATE: Final = re.compile(r"(\d{1,9})(?:\.(\d{1,6}))? ?/ ?(s|m|h)", re.ASCII)
RATE_FORM: Final = 'calls per second, minute or hour in quotes, such as "80/s" or "5/m"'
MONEY_FORM: Final = 'an amount in major units in quotes for each currency, such as {USD = "15000.00"}'


def rate_per_ks(text: str) -> int:
    """The rate in calls per 1,000 seconds, rounded down so that the rate asked for is never exceeded.

    Raises ValueError for anything else than calls per unit, and for less than one call in 1,000 seconds, which could
    only be represented as none at all.
    """
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"expected {RATE_FORM}")
    per_ks = _exact(found[1], found[2]) * 1_000_000_000 // UNIT_US[found[3]]
    if per_ks < 1:
        raise ValueError('the slowest rate is one call in 1,000 seconds ("4/h")')
    return per_ks


def amounts_minor(table: Mapping[str, object]) -> dict[str, int]:
    """Amounts by currency in minor units, all above zero.

    Raises ValueError for a value that is not text, and MoneyError for a currency or amount that is not exact.
    """
    minor: dict[str, int] = {}
    for currency, amount in table.items():
        if not isinstance(amount, str):
            raise ValueError(f"{currency} is not text; expected {MONEY_FORM}")
        code = currency_code(currency)
        if code in minor:
            raise ValueError(f"{code} is given twice")
        minor[code] = parse_minor(amount, code)
        if minor[code] <= 0:
            raise ValueError(f"{code} must be above zero")
    return minor


def duration_text(us: int) -> str:
    """A duration for people, in the largest unit that keeps it short: ``250ms``, ``12.5s``, ``3m 20s``, ``2h 5m``."""
    if us < 1_000_000:
        return f"{us // 1000}ms"
    seconds = us // 1_000_000
    if seconds < 60:
        return f"{us / 1e6:.1f}".rstrip("0").rstrip(".") + "s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60}s"
    if seconds < 86_400:
        return f"{seconds // 3600}h {seconds % 3600 // 60}m"
    return f"{seconds // 86_400}d {seconds % 86_400 // 3600}h"


def money_text(minor: Mapping[str, int]) -> str:
    """Amounts by currency for people: ``12000.00 USD, 5800 JPY``; ``no money`` where there is none."""
    return ", ".join(f"{format_minor(amount, code)} {code}" for code, amount in sorted(minor.items())) or "no money"


def _exact(whole: str, fraction: str | None) -> Fraction:
    return Fraction(f"{whole}.{fraction}" if fraction else whole)
