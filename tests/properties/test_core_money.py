"""Money, for every currency and any amount: text and minor units are two spellings of one number."""

from __future__ import annotations

import string
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payonce.core.errors import MoneyError
from payonce.core.money import _EXPONENTS, MAX_MINOR, Money, exponent, format_minor, parse_minor

CURRENCIES = st.sampled_from(sorted(_EXPONENTS))
MINORS = st.integers(-MAX_MINOR, MAX_MINOR)
SMALL = st.integers(-(10**15), 10**15)


@given(minor=MINORS, currency=CURRENCIES)
def test_round_trip(minor: int, currency: str) -> None:
    """Minor units written out and read again are the same minor units."""
    text = format_minor(minor, currency)
    assert parse_minor(text, currency) == minor
    assert Decimal(text).scaleb(exponent(currency)) == minor


@given(minor=MINORS, currency=CURRENCIES, zeros=st.integers(0, 20))
def test_trailing_zeros_change_nothing(minor: int, currency: str, zeros: int) -> None:
    """Zeros beyond the minor unit are accepted: they lose nothing."""
    text = format_minor(minor, currency)
    text += ("" if "." in text or not zeros else ".") + "0" * zeros
    assert parse_minor(text, currency) == minor


@given(minor=SMALL, currency=CURRENCIES, digit=st.sampled_from("123456789"), zeros=st.integers(0, 5))
def test_one_digit_too_many_is_refused(minor: int, currency: str, digit: str, zeros: int) -> None:
    """Any digit but zero beyond the minor unit, however far beyond, is refused and never rounded."""
    text = format_minor(minor, currency)
    text += ("" if "." in text else ".") + "0" * zeros + digit
    with pytest.raises(MoneyError) as caught:
        parse_minor(text, currency)
    assert caught.value.code == "not_representable"


@given(text=st.text(alphabet=string.digits + "+-.,eE _'٣NaInf", max_size=12), currency=CURRENCIES)
def test_what_is_read_is_exactly_what_is_written(text: str, currency: str) -> None:
    """Whatever parse_minor accepts is a plain ASCII number of that very value; everything else raises MoneyError."""
    try:
        minor = parse_minor(text, currency)
    except MoneyError:
        return
    assert set(text) <= set("-.0123456789") and text[-1].isdigit() and text.lstrip("-")[0].isdigit()
    assert type(minor) is int
    assert Decimal(minor).scaleb(-exponent(currency)) == Decimal(text)


@given(a=SMALL, b=SMALL, currency=CURRENCIES)
def test_arithmetic_is_that_of_the_minor_units(a: int, b: int, currency: str) -> None:
    """Sums, differences and order follow the minor units; results are whole numbers, never floats."""
    x, y = Money.of_minor(a, currency), Money.of_minor(b, currency)
    assert (x + y).minor == a + b and type((x + y).minor) is int
    assert (x - y).minor == a - b
    assert ((x < y), (x <= y), (x > y), (x >= y), (x == y)) == (a < b, a <= b, a > b, a >= b, a == b)


@given(a=SMALL, b=SMALL, one=CURRENCIES, other=CURRENCIES)
def test_two_currencies_never_meet(a: int, b: int, one: str, other: str) -> None:
    """Any two different currencies: every operation raises, and they are never equal."""
    if one == other:
        return
    x, y = Money.of_minor(a, one), Money.of_minor(b, other)
    assert x != y
    for operation in (lambda: x + y, lambda: x - y, lambda: x < y, lambda: x <= y):
        with pytest.raises(MoneyError):
            operation()


@given(value=st.floats() | st.booleans())
def test_never_a_float(value: object) -> None:
    """No float becomes Money, on either way in."""
    with pytest.raises(MoneyError):
        Money(value, "USD")  # type: ignore[arg-type]
    with pytest.raises(MoneyError):
        Money.of_minor(value, "USD")  # type: ignore[arg-type]


@given(amount=st.decimals(allow_nan=True, allow_infinity=True), currency=CURRENCIES)
def test_a_decimal_is_taken_exactly_or_refused(amount: Decimal, currency: str) -> None:
    """A Decimal either becomes exactly its value, or raises MoneyError."""
    try:
        money = Money(amount, currency)
    except MoneyError:
        return
    assert Decimal(money.minor).scaleb(-exponent(currency)) == amount
