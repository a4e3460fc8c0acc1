"""What a Stripe batch is bound to, what its target looks like before anything is sent, and its whole lists."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from payonce.core.errors import ConfigError, UsageError
from payonce.core.money import Money
from payonce.providers import stripe
from payonce.providers.protocol import Identity
from payonce.providers.registry import Wanted
from payonce.providers.transport import Answer, TransportSettings
from payonce.testing.provider_rig import ScriptedTransport, answer
from tests.unit.stripe import stripekit as kit


def scripted(
    answers: Sequence[Answer], operation: str = "refund", **settings: Any
) -> tuple[stripe.StripeProvider, ScriptedTransport]:
    """An adapter whose transport gives these answers."""
    made: list[ScriptedTransport] = []

    def make(given: TransportSettings) -> ScriptedTransport:
        made.append(ScriptedTransport(given))
        made[0].answers[:] = answers
        return made[0]

    return kit.build(operation, make, **settings), made[0]


def test_account_and_mode_are_read_before_anything_is_sent() -> None:
    """The account from Stripe, the mode from the key; a connected account travels in its header."""
    provider, transport = scripted([answer(200, {"id": "acct_2", "object": "account"})], stripe_account="acct_2")
    assert asyncio.run(provider.identify()) == Identity("acct_2", "test")
    assert transport.sent[0].path == "/v1/account"
    assert ("Stripe-Account", "acct_2") in transport.sent[0].headers


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (answer(401, {"error": {"message": "Invalid API Key"}}), "bad_credentials"),
        (answer(500), "identity_unreadable"),
        (answer(200, {"id": "acct_other"}), "wrong_account"),
        (answer(200, {}), "wrong_account"),
    ],
)
def test_an_account_that_is_not_the_one_is_refused(reply: Answer, code: str) -> None:
    """Nothing is sent with credentials of another account, or none."""
    provider, _ = scripted([reply], account="acct_2")
    with pytest.raises(ConfigError) as caught:
        asyncio.run(provider.identify())
    assert caught.value.code == code
    assert kit.SECRET not in str(caught.value)


def test_settings_that_decide_what_a_call_does_are_bound() -> None:
    """Another connected account or parameter is another digest; the key is no part of it."""
    digests = {
        kit.build("refund").provider_digest,
        kit.build("refund", stripe_account="acct_2").provider_digest,
        kit.build("refund", params={"reason": "duplicate"}).provider_digest,
        kit.build("payout").provider_digest,
    }
    assert len(digests) == 4
    table = {"kind": "stripe", "api_key": "${OTHER}"}
    other = stripe.build(table, Wanted("refund", "b", environ={"OTHER": "sk_test_another_key"}))
    assert other.provider_digest == kit.build("refund").provider_digest


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"api_key": "sk_test_literal_key"}, "literal_secret"),
        ({"params": {"amount": 1}}, "bad_setting"),
        ({"base_url": "http://api.example.com"}, "bad_setting"),
        ({"params": {"metadata": {"x": "{nope}"}}}, "unknown_placeholder"),
        ({"apikey": "${K}"}, "bad_setting"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: dict[str, Any], code: str) -> None:
    """Each with its code, before anything is sent."""
    with pytest.raises(ConfigError) as caught:
        kit.build("refund", **settings)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("operation", "changed", "code"),
    [
        ("payout", {"target": "acct_1"}, "bad_target"),
        ("transfer", {"target": "ba_1"}, "bad_target"),
        ("invoice", {"target": "in_1"}, "bad_target"),
        ("refund", {"money": None}, "amount_missing"),
        ("refund", {"id": "x" * 501}, "id_too_long"),
    ],
)
def test_items_that_stripe_could_not_take_are_refused(operation: str, changed: dict[str, Any], code: str) -> None:
    """Before an intent is written."""
    with pytest.raises(ConfigError) as caught:
        kit.build(operation).prepare(kit.item(operation, **changed), key="k" * 64, step=0)
    assert caught.value.code == code


def charge(**changed: Any) -> dict[str, Any]:
    """A charge that can be refunded."""
    made = {"id": "ch_1", "object": "charge", "amount": 5000, "amount_refunded": 0, "currency": "usd"}
    return {**made, "status": "succeeded", "disputed": False, "livemode": False, **changed}


@pytest.mark.parametrize(
    ("shown", "code"),
    [
        (answer(200, charge()), None),
        (answer(200, charge(amount_refunded=3750)), None),
        (answer(200, charge(amount_refunded=3751)), "over_refund"),
        (answer(200, charge(amount_refunded=5000)), "charge_already_refunded"),
        (answer(200, charge(currency="eur")), "currency_mismatch"),
        (answer(200, charge(disputed=True)), "charge_disputed"),
        (answer(200, charge(status="failed")), "charge_not_paid"),
        (answer(200, charge(livemode=True)), "wrong_mode"),
        (answer(200, {"id": "pi_1", "object": "payment_intent", "latest_charge": charge()}), None),
        (answer(200, {"id": "pi_1", "object": "payment_intent", "latest_charge": None}), "not_checked"),
        (kit.error(404, "resource_missing"), "no_such_target"),
        (
            kit.error(404, "resource_missing", message="No such charge: 'ch_1'; a similar object exists in live mode"),
            "wrong_mode",
        ),
        (kit.error(401), "bad_credentials"),
        (answer(404), "not_checked"),
        (answer(500), "not_checked"),
    ],
)
def test_a_refund_is_compared_with_its_charge_beforehand(shown: Answer, code: str | None) -> None:
    """Currency, what is left, disputes and mode, as plan --check shows them."""
    provider, _ = scripted([shown])
    found = asyncio.run(provider.preflight(kit.item("refund"), timeout_us=1_000_000))
    assert found is not None and (found.ok, found.code) == (code is None, code)
    assert found.stop is (code in ("wrong_mode", "bad_credentials"))
    assert (found.unread is not None) is (code == "not_checked")
    assert found.already is (code in ("over_refund", "charge_already_refunded"))


def test_a_charge_tells_both_names_and_what_was_refunded() -> None:
    """So that a target under its other name, and what others refunded, can be found."""
    provider, _ = scripted([answer(200, charge(amount_refunded=100, payment_intent="pi_1"))])
    found = asyncio.run(provider.preflight(kit.item("refund"), timeout_us=1_000_000))
    assert found is not None and found.ok and found.touched
    assert (found.names, found.taken) == (("ch_1", "pi_1"), Money("1.00", "USD"))


def test_whole_lists_add_up_or_are_refused() -> None:
    """Oldest first, each row once, inside the period and in order."""
    rows = [kit.refund(id=f"re_{n}", created=n) for n in (30, 20, 10)]
    provider, transport = scripted([kit.listed(*rows[:2], more=True), kit.listed(rows[2])])
    found = asyncio.run(provider.statement("refunds", from_us=10_000_000, to_us=31_000_000))
    assert [row["id"] for row in found] == ["re_10", "re_20", "re_30"]
    assert transport.sent[0].path == "/v1/refunds?limit=100&created[gte]=10&created[lt]=31"
    for bad in ([rows[1], rows[0]], [kit.refund(created=99)], [kit.refund(created=None)]):
        broken, _ = scripted([kit.listed(*bad)])
        with pytest.raises(UsageError, match="statement_unread"):
            asyncio.run(broken.statement("refunds", from_us=None, to_us=31_000_000))


def test_amounts_go_out_in_stripes_smallest_unit() -> None:
    """A currency without decimals has none."""
    request = kit.build("payout").prepare(kit.item("payout", money=Money("5800", "JPY")), key="k" * 64, step=0)
    assert b"amount=5800&currency=jpy" in request.body


def test_the_sdk_neither_writes_nor_authenticates() -> None:
    """Telemetry is off, and the client that shapes requests has no real key."""
    import stripe as sdk

    kit.build("refund")
    assert sdk.enable_telemetry is False
    request = kit.build("refund").prepare(kit.item("refund"), key="k" * 64, step=0)
    assert {name for name, _ in request.headers} == {"Content-Type", "Idempotency-Key", "Stripe-Version"}
