"""Amounts and currencies of an input, exactly, in minor units; each refusal says what is wrong and how to fix it.

No float is ever turned into an amount, and no value is rounded: what the currency cannot hold is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from payonce.core.errors import MoneyError
from payonce.core.money import MAX_MINOR, currency_code, exponent, format_minor, parse_minor
from payonce.intake.numbers import Evidence, NumberFormat, Sign, looks_like_number
from payonce.intake.shown import Fault, kind_of

_PLACEHOLDERS: Final = "null nan none nil na n/a nat undefined - -- ? <na> (null)"
_NO_VALUE: Final = frozenset(_PLACEHOLDERS.split())
_FIX_FLOAT: Final = "stands as a binary float, which is no exact amount; give it as text, as a whole number of minor units, or as a decimal"

# The longest plain amount that is worth a look; the largest one that can be money has 20 digits.
_LONGEST: Final = 30
_NAMES: Final = {Sign.POINT: "point", Sign.COMMA: "comma"}
# What proves a decimal point without a doubt, in a form that needs no rewriting.
_USUAL: Final = re.compile(r"\d+\.\d\d?", re.ASCII)
# A whole column of it, with as many decimals as most currencies have, and far from what is too large.
_USUAL_COLUMN: Final = re.compile(r"(?:\d{1,15}\.\d\d\n)+", re.ASCII)
_MINOR_COLUMN: Final = re.compile(r"(?:\d{1,17}\n)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class AmountFault:
    """Why an amount or a currency cannot be used."""

    code: str
    message: str


class AmountReader:
    """Reads the amounts of one input. ``minor``: the column holds minor units.

    ``number`` is the assumed number format, ``evidence`` what the values said about it so far.
    """

    def __init__(
        self, *, number: NumberFormat, minor: bool, max_amount: Mapping[str, int], evidence: Evidence | None = None
    ) -> None:
        self._number = number
        self._minor = minor
        self._max = max_amount
        self.evidence = Evidence() if evidence is None else evidence

    def assume(self, number: NumberFormat) -> None:
        """From now on, this is how numbers are written."""
        self._number = number

    @property
    def number(self) -> NumberFormat:
        """How numbers are taken to be written."""
        return self._number

    def read(self, value: Any, currency: str, *, line: int) -> int | AmountFault:
        """The amount in minor units, more than zero and within the limit, or why not."""
        found: int | AmountFault
        match value:
            case str():
                found = self._text(value.strip(), currency, line)
            case None:
                return AmountFault("missing_amount", "is missing; every row needs an amount")
            case bool():
                return AmountFault("bad_amount", "is true or false, no amount")
            case float():
                return AmountFault("float_money", _FIX_FLOAT)
            case int():
                found = value if self._minor else value * 10 ** exponent(currency)
            case Decimal():
                found = self._decimal(value, currency)
            case Fault():
                return AmountFault("bad_amount", f"is {value.why}")
            case _:
                return AmountFault("bad_amount", f"is {kind_of(value)}, no amount")
        return self._within(found, currency) if isinstance(found, int) else found

    def column(self, texts: Sequence[str], currency: str) -> Sequence[int] | None:
        """The amounts of a column in which all are sound and written as most are; None where each has to be looked at."""
        joined = "\n".join(texts) + "\n"
        if self._minor:
            usual = _MINOR_COLUMN.fullmatch(joined)
        elif self._number.decimal == "." and exponent(currency) == 2 and Sign.POINT in self.evidence.first:
            usual = _USUAL_COLUMN.fullmatch(joined)
        else:
            return None
        if usual is None:
            return None
        found = list(map(int, joined.replace(".", "").split()))
        if min(found) == 0 or max(found) > self._max.get(currency, MAX_MINOR):
            return None
        if not self._minor:
            self.evidence.count[Sign.POINT] += len(found)
        return found

    def _decimal(self, value: Decimal, currency: str) -> int | AmountFault:
        if not value.is_finite():
            return AmountFault("missing_amount", "is no number; every row needs an amount")
        return self._exactly(format(value, "f"), currency)

    def _text(self, text: str, currency: str, line: int) -> int | AmountFault:
        if self._number.decimal == "." and _USUAL.fullmatch(text) is not None and Sign.POINT in self.evidence.first:
            self.evidence.count[Sign.POINT] += 1
            return self._exactly(text, currency)
        if not text or text.lower() in _NO_VALUE:
            return AmountFault("missing_amount", "is missing; every row needs an amount")
        if text.isascii() and text.isdigit():
            return self._exactly(text, currency)
        sign = self.evidence.see(text, line=line)
        plain = self._number.plain(text)
        if sign is Sign.DOUBTFUL and not self._number.settled:
            return AmountFault(
                "ambiguous_number",
                'may be grouped or have decimals; declare [input] decimal = "." or ","',
            )
        if plain is None:
            return self._unreadable(sign)
        return self._exactly(plain, currency)

    def unusable(self, value: Any) -> AmountFault | None:
        """What is wrong with an amount in any currency; None where that depends on the currency."""
        if isinstance(value, str):
            text = value.strip()
            if text and text.lower() not in _NO_VALUE:
                return None if looks_like_number(text) else self._unreadable(Sign.NOTHING)
        elif isinstance(value, int | Decimal) and not isinstance(value, bool):
            return None
        found = self.read(value, "USD", line=0)
        return found if isinstance(found, AmountFault) else None

    def _unreadable(self, sign: Sign) -> AmountFault:
        form = f"1234{self._number.decimal}50"
        if sign not in _NAMES or sign.value == self._number.decimal:
            return AmountFault("bad_amount", f"is not an amount written like {form}; no symbols, signs or words")
        other = Sign.POINT if sign is Sign.COMMA else Sign.COMMA
        if other in self.evidence.first:
            line, text = self.evidence.first[other]
            why = f"is written in another way than {text!r} in line {line}; use one way only"
            return AmountFault("mixed_numbers", why)
        why = f"has a decimal {_NAMES[sign]}, and amounts are read as written like {form}; use one way only"
        return AmountFault("bad_amount", f"{why}, or correct [input] decimal")

    def _exactly(self, plain: str, currency: str) -> int | AmountFault:
        if self._minor:
            whole, _, fraction = plain.partition(".")
            if fraction:
                return AmountFault("bad_amount", "is not a whole number of minor units")
            minor = int(whole) if len(whole) < 40 else MAX_MINOR + 1
        else:
            if len(plain) > _LONGEST:
                # Zeros at the end lose nothing, however many there are.
                plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
                if len(plain) > _LONGEST:
                    return AmountFault("bad_amount", f"has {len(plain)} characters; check the amount")
            try:
                minor = parse_minor(plain, currency)
            except MoneyError as error:
                return AmountFault(error.code, f"{error.message}; {error.hint}")
        return minor

    def _within(self, minor: int, currency: str) -> int | AmountFault:
        if minor == 0:
            return AmountFault("zero_amount", "is zero; remove the row or correct it")
        if minor < 0:
            return AmountFault("negative_amount", "is negative; amounts are given without a sign")
        if minor > MAX_MINOR:
            return AmountFault("bad_amount", "is too large; check the amount")
        limit = self._max.get(currency)
        if limit is not None and minor > limit:
            return AmountFault(
                "over_max_amount",
                f"{format_minor(minor, currency)} {currency} is over [limits] max_amount, {format_minor(limit, currency)}",
            )
        return minor


def read_currency(value: Any) -> str | AmountFault:
    """The canonical code of a currency, or why it cannot be used."""
    if value is None or (isinstance(value, str) and (not value.strip() or value.strip().lower() in _NO_VALUE)):
        return AmountFault("missing_currency", "is missing; every row needs a currency")
    if not isinstance(value, str):
        return AmountFault("unknown_currency", "is no currency code; use an ISO 4217 code such as USD")
    try:
        return currency_code(value)
    except MoneyError as error:
        return AmountFault(error.code, f"is not known; {error.hint}")
