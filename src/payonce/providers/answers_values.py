"""Values out of answers: exact amounts, texts, times; and answers made fit for JSON again. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

import msgspec

from payonce.core.errors import MoneyError
from payonce.core.events import from_iso
from payonce.core.money import MAX_MINOR, Money, currency_code
from payonce.providers.settings import Unit

# Numbers with a fraction or an exponent become Decimals from their text; a float never exists.
_DECODER: Final = msgspec.json.Decoder(float_hook=Decimal)
_WHOLE: Final = re.compile(r"-?\d{1,19}", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,17}(?:\.\d{1,9})?", re.ASCII)
# Beyond this a number of seconds would be in the year 5138, so it counts milliseconds, then microseconds.
_MS_FROM: Final = 10**11
_US_FROM: Final = 10**14
MAX_REFERENCE: Final = 500


def parse(body: bytes) -> Any:
    """A JSON body with exact numbers. Raises ValueError for anything that is not one whole JSON document."""
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error


def amount(value: Any, *, unit: Unit, currency: str) -> Money:
    """An amount out of an answer. Raises ValueError for what is not exactly an amount; nothing is rounded."""
    code = code_of(currency)
    match value:
        case bool() | float():
            raise ValueError(f"{value!r} is no exact amount")
        case int() if abs(value) <= MAX_MINOR:
            return Money.of_minor(value, code) if unit == "minor" else _major(str(value), code)
        case Decimal() if value.is_finite() and abs(value.adjusted()) < 40 and len(value.as_tuple().digits) < 40:
            if unit == "major":
                return _major(format(value, "f"), code)
            if value == value.to_integral_value() and abs(value) <= MAX_MINOR:
                return Money.of_minor(int(value), code)
        case str() if unit == "major":
            return _major(value.strip(), code)
        case str() if _WHOLE.fullmatch(value.strip()) and abs(int(value)) <= MAX_MINOR:
            return Money.of_minor(int(value), code)
    raise ValueError(f"{str(value)[:60]!r} is not an amount in {unit} units of {code}")


def _major(text: str, code: str) -> Money:
    try:
        return Money(text, code)
    except MoneyError as error:
        raise ValueError(error.message) from error


def code_of(text: str) -> str:
    """The canonical code of a currency. Raises ValueError."""
    try:
        return currency_code(text)
    except MoneyError as error:
        raise ValueError(error.message) from error


def text(value: Any) -> str | None:
    """A text or whole number as text; None for anything else and for an empty text."""
    match value:
        case str() if value.strip():
            return value
        case int() if not isinstance(value, bool):
            return str(value)
        case _:
            return None


def reference(value: Any) -> str | None:
    """A reference: a text or whole number, of a length a reference may have."""
    found = text(value)
    return found if found is not None and len(found) <= MAX_REFERENCE else None


def time_us(value: Any) -> int:
    """A time in microseconds since the epoch: seconds, milliseconds or microseconds since the epoch by size, or ISO
    8601 (without an offset, UTC). Raises ValueError."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return from_iso(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise ValueError(f"{value!r} is no time")
    number = Decimal(value) if not isinstance(value, str) else Decimal(value.strip())
    if not number.is_finite() or not 0 <= number < 10**17:
        raise ValueError(f"{value!r} is no time")
    return int(number * (1_000_000 if number < _MS_FROM else 1_000 if number < _US_FROM else 1))


def jsonable(value: Any) -> Any:
    """A part of an answer in types that JSON writers know: an exact number stays a number where a float can hold all
    of its digits, and becomes text where it cannot."""
    match value:
        case Decimal():
            short = float(value)
            return short if Decimal(repr(short)) == value else str(value)
        case int() if not isinstance(value, bool) and not -(2**63) <= value < 2**64:
            return str(value)
        case dict():
            return {name: jsonable(entry) for name, entry in value.items()}
        case list():
            return [jsonable(entry) for entry in value]
        case _:
            return value
