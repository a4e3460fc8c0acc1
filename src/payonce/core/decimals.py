"""How providers count money where they differ from ISO 4217. Pure.

An amount in minor units is a number without a point: whoever reads it with the wrong number of decimals is wrong by a
factor of a hundred. So the differences are data here, used by adapters and statements alike, and a currency about which
a provider's own documentation says two things is refused.

Sources. Stripe: https://docs.stripe.com/currencies (zero-decimal, three-decimal, special cases). Adyen:
https://docs.adyen.com/development-resources/currency-codes (the four that differ from the standard). PayPal:
https://developer.paypal.com/api/rest/reference/currency-codes (HUF and TWD take no decimals).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from payonce.core.errors import MoneyError
from payonce.core.money import Money, exponent

# A currency's decimals at the provider; None where its documentation contradicts itself.
Decimals = Mapping[str, int | None]
ISO: Final[Decimals] = MappingProxyType({})
# ISK has no decimals any more and is still written with two, always 00. UGX is in the list of currencies without
# decimals, and in the list of special cases with two.
STRIPE: Final[Decimals] = MappingProxyType({"ISK": 2, "MGA": 0, "UGX": None})
ADYEN: Final[Decimals] = MappingProxyType({"CLP": 2, "CVE": 0, "IDR": 0, "ISK": 2})
# Amounts without a point are in reports only, where nothing says how these two are written.
PAYPAL_REPORTS: Final[Decimals] = MappingProxyType({"HUF": None, "TWD": None})
# The last digit of these must be 0 in Stripe's calls, since its partners take two decimals only.
STRIPE_LAST_DIGIT_ZERO: Final = frozenset({"BHD", "JOD", "KWD", "OMR", "TND"})
# Stripe pays these out in whole units only, though it counts them with two decimals.
STRIPE_WHOLE_PAYOUTS: Final = frozenset({"HUF", "TWD"})


def written(money: Money, decimals: Decimals) -> int:
    """An amount as the provider writes it in minor units. Raises MoneyError ``not_representable`` for a fraction that
    its form of the currency does not have, ``currency_contradicted`` where that form is not known."""
    shift = _shift(money.currency, decimals)
    if shift >= 0:
        return money.minor * _power(shift)
    whole, rest = divmod(money.minor, _power(-shift))
    if rest:
        raise MoneyError(
            f"{money} has a fraction that the provider's form of {money.currency} does not have",
            code="not_representable",
            hint="round the amount in the input",
        )
    return whole


def read(amount: int, currency: str, decimals: Decimals) -> Money:
    """An amount that the provider wrote in minor units. Raises MoneyError as ``written`` does: nothing is rounded."""
    shift = _shift(currency, decimals)
    if shift <= 0:
        return Money.of_minor(amount * _power(-shift), currency)
    whole, rest = divmod(amount, _power(shift))
    if rest:
        raise MoneyError(
            f"{amount} in {currency} has a fraction, which {currency} does not have",
            code="not_representable",
            hint="the provider writes whole units only; look at the row there",
        )
    return Money.of_minor(whole, currency)


def _shift(currency: str, decimals: Decimals) -> int:
    digits = exponent(currency)
    told = decimals.get(currency, digits)
    if told is None:
        raise MoneyError(
            f"the provider's documentation contradicts itself about the decimals of {currency}",
            code="currency_contradicted",
            hint="payonce neither sends nor reads amounts in it here, since a guess may be wrong by a factor of a hundred",
        )
    return told - digits


def _power(digits: int) -> int:
    return int("1" + "0" * digits)
