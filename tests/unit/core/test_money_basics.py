"""Money: exact, in one currency, immutable, and never a float."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal

import pytest

from payonce.core.errors import MoneyError
from payonce.core.money import MAX_MINOR, Money, currency_code, exponent, format_minor, parse_minor

# By the number of decimals of their minor unit: those people get wrong, and one or two everyday ones of each.
DECIMALS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: "USD EUR GBP MGA MRU HUF TWD IDR COP CRC LAK LBP IRR MMK SYP SLE STN VED VES XCG ZWG CHE CHW COU BOV MXV USN XAD",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
    6: "USDC USDT EURC",
}
NOT_PLAIN = [
    "",
    " ",
    " 1",
    "1 ",
    "1\n",
    "\t1",
    "+1",
    "--1",
    "- 1",
    "1-",
    "−1",  # a minus sign that is no hyphen
    "1e3",
    "1E3",
    "1E+3",
    "1e-2",
    "0x10",
    "1_000",
    "1,000",
    "1,50",
    "1 000",
    "1\u00a0000",
    "1'000",
    "1.000.000",
    "1.",
    ".5",
    ".",
    "-",
    "-.5",
    "NaN",
    "nan",
    "inf",
    "Infinity",
    "-inf",
    "sNaN",
    "null",
    "None",
    "true",
    "$1.00",
    "1.00 USD",
    "１",
    "٣",
    "१.५०",
    "1.٠٠",
    "½",
    "(1.00)",
    "1/2",
    "1" * 31,
    "0." + "0" * 31,
]


@pytest.mark.parametrize(
    ("code", "decimals"), [(code, decimals) for decimals, codes in DECIMALS.items() for code in codes.split()]
)
def test_decimals_of_a_currency(code: str, decimals: int) -> None:
    """Each currency has the decimals of ISO 4217 list one; stablecoins those of their token contracts."""
    assert exponent(code) == decimals


@pytest.mark.parametrize(
    "code", ["XAU", "XAG", "XDR", "XXX", "XTS", "XSU", "", "US", "USDD", "US$", "ZZZ", "DEM", "BTC"]
)
def test_what_has_no_minor_unit_is_unknown(code: str) -> None:
    """Metals, accounting units and test codes have no minor unit, so no amount in them is exact."""
    with pytest.raises(MoneyError) as caught:
        exponent(code)
    assert caught.value.code == "unknown_currency"


@pytest.mark.parametrize(("text", "code"), [("usd", "USD"), (" Usd ", "USD"), ("usdc", "USDC"), ("\tjpy\n", "JPY")])
def test_a_currency_is_written_in_any_case(text: str, code: str) -> None:
    """Case and outer blanks do not matter."""
    assert currency_code(text) == code


@pytest.mark.parametrize("text", ["uſd", "ＵＳＤ", "US D", "\u00a0USD", "", "US$", None, 840, b"USD"])
def test_a_currency_is_never_guessed(text: object) -> None:
    """Letters that only look like a code, or turn into one in upper case, are no code."""
    with pytest.raises(MoneyError) as caught:
        currency_code(text)  # type: ignore[arg-type]
    assert caught.value.code == "unknown_currency"


@pytest.mark.parametrize("text", NOT_PLAIN)
@pytest.mark.parametrize("code", ["JPY", "USD", "KWD", "USDC"])
def test_only_plain_decimal_notation(text: str, code: str) -> None:
    """Exponents, grouping, blanks, signs but minus, NaN, infinities and foreign digits are refused, not read."""
    with pytest.raises(MoneyError) as caught:
        parse_minor(text, code)
    assert caught.value.code == "bad_amount"


@pytest.mark.parametrize(
    ("text", "code", "minor"),
    [
        ("5800", "JPY", 5800),
        ("5800.00", "JPY", 5800),
        ("18.600", "KWD", 18600),
        ("18.6", "KWD", 18600),
        ("35.200", "BHD", 35200),
        ("2.01", "USDC", 2_010_000),
        ("0.000001", "USDC", 1),
        ("19.99", "USD", 1999),
        ("8.20", "USD", 820),
        ("145.05", "USD", 14505),
        ("131072.01", "USD", 13107201),
        ("1.2345", "CLF", 12345),
        ("-12.50", "USD", -1250),
        ("0", "USD", 0),
        ("-0", "USD", 0),
        ("007.10", "USD", 710),
        ("1.10000000000000000000", "USD", 110),
    ],
)
def test_exact_minor_units(text: str, code: str, minor: int) -> None:
    """What a float would round (145.05, 8.20) is exact, and zeros beyond the minor unit lose nothing."""
    assert parse_minor(text, code) == minor


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("58.5", "JPY"),
        ("1.2345", "KWD"),
        ("1.1234567", "USDC"),
        ("1.005", "USD"),
        ("0.0000001", "USDC"),
        ("0.1", "ISK"),
    ],
)
def test_more_precision_than_the_currency_has_is_refused(text: str, code: str) -> None:
    """Nothing is rounded away."""
    with pytest.raises(MoneyError) as caught:
        parse_minor(text, code)
    assert caught.value.code == "not_representable"


def test_bounds() -> None:
    """The largest amount fits a signed 64-bit column; one more is refused, whichever way it comes about."""
    largest = Money.of_minor(MAX_MINOR, "JPY")
    assert (largest.minor, Money(largest.text, "JPY")) == (2**63 - 1, largest)
    for too_large in (
        lambda: parse_minor(str(MAX_MINOR + 1), "JPY"),
        lambda: parse_minor("-" + str(MAX_MINOR + 1), "JPY"),
        lambda: Money.of_minor(MAX_MINOR + 1, "JPY"),
        lambda: Money.of_minor(-MAX_MINOR - 1, "JPY"),
        lambda: largest + Money("1", "JPY"),
        lambda: Money(MAX_MINOR, "USD"),
        lambda: Money(10**5000, "USD"),
        lambda: Money(Decimal("1E+999999999"), "USD"),
        lambda: Money(Decimal("1E-999999999"), "USD"),
    ):
        with pytest.raises(MoneyError) as caught:
            too_large()
        assert caught.value.code == "bad_amount"


@pytest.mark.parametrize("amount", [1.0, 12.5, float("nan"), True, False, None, b"1", 1 + 0j, ["1"]])
def test_a_float_is_no_amount(amount: object) -> None:
    """Whatever its value; nor is a bool, None or anything else but text, Decimal and int."""
    with pytest.raises(MoneyError) as caught:
        Money(amount, "USD")  # type: ignore[arg-type]
    assert caught.value.code == "float_money"
    with pytest.raises(MoneyError):
        Money.of_minor(amount, "USD")  # type: ignore[arg-type]


@pytest.mark.parametrize("amount", ["NaN", "sNaN", "Infinity", "-Infinity"])
def test_a_decimal_that_is_no_number_is_refused(amount: str) -> None:
    """Decimal can hold NaN and infinities; Money cannot."""
    with pytest.raises(MoneyError):
        Money(Decimal(amount), "USD")


def test_decimals_and_whole_numbers_are_major_units() -> None:
    """A Decimal is taken exactly, its exponent included; an int counts whole units of the currency."""
    assert Money(Decimal("12.50"), "USD") == Money("12.5", "USD") == Money.of_minor(1250, "USD")
    assert Money(Decimal("1E+2"), "USD") == Money(100, "USD") == Money.of_minor(10000, "USD")
    with pytest.raises(MoneyError):
        Money(Decimal("0.001"), "USD")
    with pytest.raises(MoneyError):
        Money(Decimal(0.1), "USD")  # noqa: RUF032  the float's 55 digits show, and are refused


def test_arithmetic_stays_in_one_currency() -> None:
    """Sums and differences of one currency are exact; across currencies, or with numbers, everything raises."""
    five, two = Money("5.00", "USD"), Money("2.00", "USD")
    assert (five + two, five - two, two - five) == (Money("7", "USD"), Money("3", "USD"), Money("-3", "USD"))
    assert two < five and two <= five and five > two and five >= five
    other = Money("5.00", "EUR")
    for mixed in (
        lambda: five + other,
        lambda: five - other,
        lambda: five < other,
        lambda: five <= other,
        lambda: five > other,
        lambda: five >= other,
    ):
        with pytest.raises(MoneyError) as caught:
            mixed()
        assert caught.value.code == "currency_mismatch"
    for number in (1, 1.5, Decimal(1), "5.00", None):
        with pytest.raises(TypeError):
            five + number  # type: ignore[operator]
        with pytest.raises(TypeError):
            five < number  # type: ignore[operator]  # noqa: B015
        with pytest.raises(TypeError):
            number + five  # type: ignore[operator]
    for scaled in (lambda: five * 2, lambda: five / 2, lambda: -five, lambda: float(five)):  # type: ignore[operator, arg-type]
        with pytest.raises(TypeError):
            scaled()


def test_equal_only_in_the_same_currency() -> None:
    """500 yen are not 5.00 dollars, though both are 500 minor units."""
    assert Money.of_minor(500, "JPY") != Money.of_minor(500, "USD")
    assert Money.of_minor(500, "USD") != 500
    assert len({Money("5", "USD"), Money("5.00", "usd"), Money.of_minor(500, "USD")}) == 1


def test_immutable() -> None:
    """No attribute can be set, added or deleted."""
    money = Money("1", "USD")
    for change in (
        lambda: setattr(money, "minor", 5),
        lambda: setattr(money, "currency", "EUR"),
        lambda: setattr(money, "note", "x"),
        lambda: delattr(money, "minor"),
    ):
        with pytest.raises(AttributeError):
            change()
    assert money == Money("1", "USD")


@pytest.mark.parametrize("money", [Money("12.50", "USD"), Money("-3", "JPY"), Money.of_minor(MAX_MINOR, "USDC")])
def test_copies_are_equal(money: Money) -> None:
    """Pickling, copying and deep copying keep amount and currency."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(money, protocol)) == money
    assert copy.copy(money) == copy.deepcopy(money) == money
    assert hash(copy.deepcopy(money)) == hash(money)


@pytest.mark.parametrize(
    ("minor", "code", "text"),
    [(5, "USD", "0.05"), (-5, "USD", "-0.05"), (0, "KWD", "0.000"), (7, "JPY", "7"), (1, "USDC", "0.000001")],
)
def test_text_has_exactly_the_currencys_decimals(minor: int, code: str, text: str) -> None:
    """No more, no less, and a zero before the point."""
    assert format_minor(minor, code) == text
    assert str(Money.of_minor(minor, code)) == f"{text} {code}"
    assert repr(Money.of_minor(minor, code)) == f"Money({text!r}, {code!r})"
