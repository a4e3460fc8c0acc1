"""Money as integer minor units with a currency. No float, no rounding unless a caller names one.

Exponents: ISO 4217 list one (as maintained by SIX, published 2026-01-01) without metals, test and accounting units, which
have no minor unit; ANG and BGN, which were withdrawn lately and still stand in statements; and the stablecoins USDC, USDT,
EURC with the six decimals of their token contracts. A provider may count another way (Stripe takes MGA without decimals);
that is for its adapter.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

from payonce.core.errors import MoneyError

_TWO = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW "
    "CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS "
    "INR IRR JMD KES "
    "KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR "
    "NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT "
    "TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
)
_EXPONENTS: Final[dict[str, int]] = (
    dict.fromkeys(_TWO.split(), 2)
    | dict.fromkeys(
        [
            "BIF",
            "CLP",
            "DJF",
            "GNF",
            "ISK",
            "JPY",
            "KMF",
            "KRW",
            "PYG",
            "RWF",
            "UGX",
            "UYI",
            "VND",
            "VUV",
            "XAF",
            "XOF",
            "XPF",
        ],
        0,
    )
    | dict.fromkeys(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3)
    | {"CLF": 4, "UYW": 4}
    | dict.fromkeys(["USDC", "USDT", "EURC"], 6)
)
# Plain decimal notation and nothing else: no exponent, no grouping, no sign but minus, ASCII digits only.
_DECIMAL: Final = re.compile(r"(-?)(\d{1,30})(?:\.(\d{1,30}))?", re.ASCII)
MAX_MINOR: Final = 2**63 - 1


def exponent(currency: str) -> int:
    """How many decimals the currency's minor unit has (JPY 0, USD 2, KWD 3, USDC 6). Raises MoneyError if unknown."""
    try:
        return _EXPONENTS[currency]
    except KeyError:
        raise MoneyError(
            f"unknown currency {currency!r}", code="unknown_currency", hint="use an ISO 4217 code such as USD"
        ) from None


def currency_code(text: str) -> str:
    """The canonical code of a currency written in any case, without outer blanks. Raises MoneyError if unknown."""
    code = _code(text) if isinstance(text, str) else ""
    if not code:
        raise MoneyError(f"unknown currency {text!r}", code="unknown_currency", hint="use an ISO 4217 code such as USD")
    return code


@lru_cache(maxsize=256)  # every answer and every row names one
def _code(text: str) -> str:
    # Only ASCII: some other letters become ASCII ones in upper case.
    code = text.strip().upper() if text.isascii() else ""
    return code if code in _EXPONENTS else ""


def parse_minor(text: str, currency: str) -> int:
    """The minor units of a decimal amount in major units, exactly.

    ``text`` is plain decimal notation (``-12.50``); trailing zeros beyond the minor unit are accepted since they lose
    nothing (``5800.00`` JPY), any other digit beyond it is refused, as are exponents, grouping, blanks and NaN.
    Raises MoneyError with code ``bad_amount`` or ``not_representable``.
    """
    digits = exponent(currency)
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise MoneyError(f"{text!r} is not a plain decimal amount", code="bad_amount", hint="write it like 1234.50")
    sign, whole, fraction = found.group(1), found.group(2), found.group(3) or ""
    kept, rest = fraction[:digits], fraction[digits:]
    if rest.strip("0"):
        raise MoneyError(
            f"{text} {currency} has more than {digits} decimals",
            code="not_representable",
            hint=f"{currency} amounts have {digits} decimals at most",
        )
    minor = int(whole + kept.ljust(digits, "0"))
    if minor > MAX_MINOR:
        raise MoneyError(f"{text} {currency} is too large", code="bad_amount", hint="check the amount")
    return -minor if sign else minor


@lru_cache(maxsize=4096)  # an item's amount is written with its first call and again with its answer
def format_minor(minor: int, currency: str) -> str:
    """Minor units as a decimal string in major units with exactly the currency's decimals: ``-12.50``, ``5800``."""
    digits = exponent(currency)
    if digits == 2 and minor >= 100:
        text = str(minor)
        return f"{text[:-2]}.{text[-2:]}"
    text = str(abs(minor))
    if digits:
        text = text.rjust(digits + 1, "0")
        text = f"{text[:-digits]}.{text[-digits:]}"
    return f"-{text}" if minor < 0 else text


def _plain_text(amount: str | Decimal | int) -> str:
    """An amount in plain decimal notation. Raises MoneyError where that would be endless."""
    if isinstance(amount, str):
        return amount
    digits = amount.adjusted() if isinstance(amount, Decimal) and amount.is_finite() else 0
    if abs(digits) > 60 or (isinstance(amount, int) and abs(amount) > MAX_MINOR):
        raise MoneyError("the amount is too large or too small", code="bad_amount", hint="check the amount")
    return format(amount, "f") if isinstance(amount, Decimal) else str(amount)


class Money:
    """An exact amount: ``Money("12.50", "USD")``. ``minor`` is in minor units, ``currency`` a canonical code.

    Immutable and hashable; equal only in the same currency; ordering and sums across currencies raise. A float is
    refused, whatever its value.
    """

    __slots__ = ("currency", "minor")
    minor: int
    currency: str

    def __init__(self, amount: str | Decimal | int, currency: str) -> None:
        if isinstance(amount, bool) or not isinstance(amount, str | Decimal | int):
            raise MoneyError(
                f"an amount must be text, Decimal or int, not {type(amount).__name__}",
                code="float_money",
                hint='write Money("12.50", "USD") or Money.of_minor(1250, "USD")',
            )
        code = currency_code(currency)
        text = _plain_text(amount)
        _set_minor(self, parse_minor(text, code))
        _set_currency(self, code)

    @classmethod
    def of_minor(cls, minor: int, currency: str) -> Money:
        """Money from integer minor units (cents for USD). Raises MoneyError for a float or an unknown currency."""
        if isinstance(minor, bool) or not isinstance(minor, int):
            raise MoneyError(
                f"minor units must be an int, not {type(minor).__name__}", code="float_money", hint="pass an int"
            )
        if currency not in _EXPONENTS:
            currency = currency_code(currency)
        if not -MAX_MINOR <= minor <= MAX_MINOR:
            raise MoneyError(f"an amount in {currency} is too large", code="bad_amount", hint="check the amounts")
        self = object.__new__(cls)
        _set_minor(self, minor)
        _set_currency(self, currency)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Money is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Money is immutable")

    def __reduce__(self) -> tuple[object, tuple[int, str]]:
        return Money.of_minor, (self.minor, self.currency)

    @property
    def text(self) -> str:
        """The amount in major units: ``12.50``."""
        return format_minor(self.minor, self.currency)

    def __str__(self) -> str:
        return f"{self.text} {self.currency}"

    def __repr__(self) -> str:
        return f"Money({self.text!r}, {self.currency!r})"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Money) and self.minor == other.minor and self.currency == other.currency

    def __hash__(self) -> int:
        return hash((self.minor, self.currency))

    def _same(self, other: Money) -> int:
        if not isinstance(other, Money):
            raise TypeError(f"Money combines with Money only, not with {type(other).__name__}")
        if self.currency != other.currency:
            raise MoneyError(f"cannot combine {self} with {other}", code="currency_mismatch", hint="convert neither")
        return other.minor

    def __add__(self, other: Money) -> Money:
        return Money.of_minor(self.minor + self._same(other), self.currency)

    def __sub__(self, other: Money) -> Money:
        return Money.of_minor(self.minor - self._same(other), self.currency)

    def __lt__(self, other: Money) -> bool:
        return self.minor < self._same(other)

    def __le__(self, other: Money) -> bool:
        return self.minor <= self._same(other)


# The slots' own setters: half the price of object.__setattr__, which a run pays for every item and answer.
_set_minor: Final = Money.__dict__["minor"].__set__
_set_currency: Final = Money.__dict__["currency"].__set__
