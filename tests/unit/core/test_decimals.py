"""Providers that count a currency with other decimals than ISO 4217: converted exactly, or refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from payonce.core import decimals
from payonce.core.decimals import ADYEN, ISO, PAYPAL_REPORTS, STRIPE
from payonce.core.errors import ConfigError, MoneyError
from payonce.core.model import Item, Request
from payonce.core.money import Money
from payonce.core.outcome import Executed, Unresolved
from payonce.providers.protocol import Provider
from payonce.providers.transport import TransportSettings
from payonce.reconcile.errors import StatementError
from payonce.testing.provider_rig import MakeTransport, ScriptedTransport, answer
from tests.unit.adyen import adyenkit
from tests.unit.reconcile import kit as statements
from tests.unit.settling import settlekit
from tests.unit.stripe import stripekit

WAYS = [
    (STRIPE, "5", "ISK", 500),
    (STRIPE, "5.00", "MGA", 5),
    (STRIPE, "5", "JPY", 5),
    (STRIPE, "5.00", "USD", 500),
    (ADYEN, "5", "CLP", 500),
    (ADYEN, "5.00", "CVE", 5),
    (ADYEN, "12000.00", "IDR", 12000),
    (ADYEN, "5", "ISK", 500),
    (ADYEN, "5", "UGX", 5),
    (ISO, "5.125", "KWD", 5125),
]


@pytest.mark.parametrize(("form", "amount", "currency", "units"), WAYS)
def test_there_and_back(form: decimals.Decimals, amount: str, currency: str, units: int) -> None:
    """Exactly, in both directions."""
    assert decimals.written(Money(amount, currency), form) == units
    assert decimals.read(units, currency, form) == Money(amount, currency)
    assert decimals.read(-units, currency, form) == Money(f"-{amount}", currency)


@pytest.mark.parametrize(
    ("form", "amount", "currency"), [(STRIPE, "5.50", "MGA"), (ADYEN, "5.01", "IDR"), (ADYEN, "0.10", "CVE")]
)
def test_a_fraction_that_the_provider_cannot_write(form: decimals.Decimals, amount: str, currency: str) -> None:
    """Refused, never rounded."""
    with pytest.raises(MoneyError) as caught:
        decimals.written(Money(amount, currency), form)
    assert caught.value.code == "not_representable"


@pytest.mark.parametrize(("form", "units", "currency"), [(STRIPE, 501, "ISK"), (ADYEN, 1250, "CLP")])
def test_a_fraction_that_the_currency_does_not_have(form: decimals.Decimals, units: int, currency: str) -> None:
    """Refused, never rounded."""
    with pytest.raises(MoneyError):
        decimals.read(units, currency, form)


@pytest.mark.parametrize(("form", "currency"), [(STRIPE, "UGX"), (PAYPAL_REPORTS, "HUF"), (PAYPAL_REPORTS, "TWD")])
def test_where_the_documentation_says_two_things(form: decimals.Decimals, currency: str) -> None:
    """Neither written nor read."""
    for act in (lambda: decimals.written(Money("5", currency), form), lambda: decimals.read(5, currency, form)):
        with pytest.raises(MoneyError) as caught:
            act()
        assert caught.value.code == "currency_contradicted"


def form_of(request: Request) -> dict[str, str]:
    """A form body's fields."""
    return {name: found[0] for name, found in parse_qs(request.body.decode()).items()}


@pytest.mark.parametrize(
    ("operation", "money", "units"),
    [
        ("refund", Money("5", "ISK"), "500"),
        ("refund", Money("5.00", "MGA"), "5"),
        ("refund", Money("5.120", "KWD"), "5120"),
        ("payout", Money("10.00", "HUF"), "1000"),
        ("payout", Money("5", "ISK"), "500"),
        ("transfer", Money("7", "JPY"), "7"),
    ],
)
def test_stripes_calls(operation: str, money: Money, units: str) -> None:
    """The amount as Stripe counts it."""
    request = stripekit.build(operation).prepare(stripekit.item(operation, money=money), key="k" * 64, step=0)
    assert form_of(request)["amount"] == units


def test_an_invoices_line_is_counted_the_same_way() -> None:
    """The step that states the amount."""
    item = stripekit.item("invoice", 1, money=Money("5", "ISK"))
    assert form_of(stripekit.build("invoice").prepare(item, key="k" * 64, step=1))["amount"] == "500"


@pytest.mark.parametrize(
    ("operation", "money", "code"),
    [
        ("refund", Money("5.124", "KWD"), "not_representable"),
        ("refund", Money("5.50", "MGA"), "not_representable"),
        ("refund", Money("5", "UGX"), "currency_contradicted"),
        ("payout", Money("10.45", "HUF"), "not_representable"),
        ("payout", Money("800.45", "TWD"), "not_representable"),
    ],
)
def test_what_stripe_could_not_take(operation: str, money: Money, code: str) -> None:
    """Refused before an intent, and by the check before that, without a read."""
    provider = stripekit.build(operation)
    with pytest.raises(ConfigError) as caught:
        provider.prepare(stripekit.item(operation, money=money), key="k" * 64, step=0)
    assert caught.value.code == code
    if operation == "refund":
        found = asyncio.run(provider.preflight(stripekit.item(operation, money=money), timeout_us=1000))
        assert found is not None and (found.ok, found.code) == (False, code)


def sent(provider: Provider, item: Item) -> Any:
    """The outcome of an item's call."""

    async def main() -> Any:
        key = "k" * 64
        request = provider.prepare(item, key=key, step=0)
        return (await provider.send(request, item, key=key, timeout_us=1_000_000, gate=lambda: True)).outcome

    return asyncio.run(main())


def answering(shown: dict[str, Any], status: int = 200) -> MakeTransport:
    """A transport with one answer."""

    def make(settings: TransportSettings) -> ScriptedTransport:
        made = ScriptedTransport(settings)
        made.answers[:] = [answer(status, shown)]
        return made

    return make


def test_stripes_answers() -> None:
    """500 for 5 ISK is what was asked; 5 is a hundredth, which has no whole units, and contradicts."""
    item = stripekit.item("refund", money=Money("5", "ISK"))
    right = sent(stripekit.build("refund", answering(stripekit.refund(amount=500, currency="isk"))), item)
    assert isinstance(right, Executed) and right.billed == Money("5", "ISK")
    assert isinstance(
        sent(stripekit.build("refund", answering(stripekit.refund(amount=5, currency="isk"))), item), Unresolved
    )


def test_adyens_calls_and_answers() -> None:
    """The value as Adyen counts it, there and back."""
    item = Item(1, "r1", adyenkit.PAYMENT, Money("12000.00", "IDR"), {})
    shown = adyenkit.received(amount={"value": 12000, "currency": "IDR"})
    provider = adyenkit.build("refund", answering(shown, 201))
    request = provider.prepare(item, key="k" * 36, step=0)
    assert json.loads(request.body)["amount"] == {"currency": "IDR", "value": 12000}
    found = sent(provider, item)
    assert isinstance(found, Executed) and found.billed == Money("12000.00", "IDR")


def test_events_are_read_in_the_providers_units() -> None:
    """ISK with two decimals; nothing is said of an amount in a currency that is open."""
    from payonce.providers.official.facts import Delivery
    from payonce.providers.stripe import events

    for currency, units, money in (("isk", 500, Money("5", "ISK")), ("ugx", 500, None)):
        tree = settlekit.stripe_event("succeeded", amount=units, currency=currency)
        (fact,) = events.facts(Delivery(json.dumps(tree).encode(), {}, "here"))
        assert fact.money == money


HEAD = '"id": "txn_{n}", "object": "balance_transaction", "type": "refund", "created": 180000000{n}, "fee": 0, '


def test_statements_from_stripes_api_are_in_its_units(tmp_path: Path) -> None:
    """Amount and net alike."""
    rows = [
        "{" + HEAD.format(n=n) + f'"amount": {-units}, "net": {-units}, "currency": "{code}", "source": "re_{n}"' + "}"
        for n, (units, code) in enumerate([(500, "isk"), (5, "mga"), (1250, "usd")])
    ]
    path = statements.written(tmp_path, "\n".join(rows) + "\n", "balance.jsonl")
    found = statements.read(path)
    assert sorted(str(Money.of_minor(one.legs[0], one.currency)) for one in found.entries) == [
        "12.50 USD",
        "5 ISK",
        "5.00 MGA",
    ]
    path.write_text(rows[0].replace("500", "505"))
    with pytest.raises(StatementError):
        statements.read(path)
