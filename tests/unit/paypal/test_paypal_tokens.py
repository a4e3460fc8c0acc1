"""PayPal's tokens: fetched before the call they are for, kept nowhere, replaced when refused; and what a batch is
bound to."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from payonce.core.errors import ConfigError
from payonce.core.model import Request
from payonce.core.money import Money
from payonce.core.outcome import Executed, NotExecuted, Reply, Stop
from payonce.providers.paypal.declaration import DAY_US
from payonce.providers.protocol import Identity
from payonce.providers.transport import Answer, Fault
from payonce.testing.provider_rig import Bench, Script, answer
from tests.unit.paypal import paypalkit as kit

KEY = "k" * 64


def bench(doorway: Script = kit.doorway, operation: str = "refund") -> Bench:
    """An adapter with its own token server."""
    return Bench.of(replace(kit.rig(operation, ()), doorway=doorway))


def call(at: Bench, *answers: Answer | Fault) -> Reply:
    """One refund."""
    return asyncio.run(at.call(kit.item("refund"), *answers, key=KEY))[1]


def test_a_token_is_fetched_once_and_added_on_the_way_out() -> None:
    """The stored request has none."""
    seen: list[Request] = []

    def door(request: Request) -> Answer | None:
        seen.append(request)
        return kit.doorway(request)

    at = bench(door)
    for _ in range(3):
        assert isinstance(call(at, answer(201, kit.refund())).outcome, Executed)
    assert [request.path for request in seen].count("/v1/oauth2/token") == 1
    assert ("Authorization", f"Bearer {kit.TOKEN}") in at.transport.sent[0].headers
    stored = at.provider.prepare(kit.item("refund"), key=KEY, step=0)
    assert "Authorization" not in dict(stored.headers)


@pytest.mark.parametrize(
    "trouble", [Fault("timeout", "gone"), Fault("reset", "gone"), answer(500), answer(200, {}), answer(429)]
)
def test_without_a_token_nothing_was_sent(trouble: Answer | Fault) -> None:
    """Whatever became of the token's own request: the call never left."""
    reply = call(bench(lambda request: trouble if request.path == "/v1/oauth2/token" else None))
    assert isinstance(reply.outcome, NotExecuted) and reply.outcome.load and not reply.sent


def test_refused_credentials_stop_the_batch() -> None:
    """At the start as a configuration error, in a run as a stop; nothing was sent."""
    refused = bench(lambda request: answer(401, {"error": "invalid_client"}))
    reply = call(refused)
    assert isinstance(reply.outcome, Stop) and not reply.outcome.executed and not reply.sent
    with pytest.raises(ConfigError, match="bad_credentials"):
        asyncio.run(refused.provider.identify())


def test_a_token_that_ends_early_is_replaced() -> None:
    """Refused after others held: the next call fetches another, and no item is refused for it."""
    tokens = iter(("first_marked_token", "second_marked_token"))

    def door(request: Request) -> Answer | None:
        if request.path != "/v1/oauth2/token":
            return None
        return answer(200, {"access_token": next(tokens), "expires_in": 32400})

    at = bench(door)
    assert isinstance(call(at, answer(201, kit.refund())).outcome, Executed)
    early = call(at, kit.error(401, "AUTHENTICATION_FAILURE"))
    assert isinstance(early.outcome, NotExecuted) and early.sent
    assert isinstance(call(at, answer(201, kit.refund())).outcome, Executed)
    assert ("Authorization", "Bearer second_marked_token") in at.transport.sent[-1].headers


def test_the_account_is_the_stated_one_or_stands_for_the_client() -> None:
    """Another app or environment is another account or mode."""
    at = bench()
    found = asyncio.run(at.provider.identify())
    assert found.mode == "test" and found.account is not None and found.account.startswith("client-")
    assert kit.CLIENT not in found.account
    stated = Bench.of(replace(kit.rig("refund", ()), build=lambda make: kit.build("refund", make, account="M1")))
    assert asyncio.run(stated.provider.identify()) == Identity("M1", "test")


def test_the_second_guard_never_changes() -> None:
    """invoice_id is of batch and item alone: another generation's refund of the same item is refused by PayPal."""
    provider, item = kit.build("refund"), kit.item("refund")
    first = provider.prepare(item, key=KEY, step=0)
    later = provider.prepare(replace(item, generation=3, attempts=4), key="j" * 64, step=0)
    assert first.body == later.body
    assert b'"invoice_id": "payonce-' in first.body and b'"custom_id": "r1"' in first.body


@pytest.mark.parametrize(
    ("operation", "changed", "text"),
    [
        ("refund", {"money": Money("5800", "JPY")}, b'"value": "5800"'),
        ("refund", {"money": Money("1200.00", "HUF")}, b'"value": "1200"'),
        ("refund", {"id": "Rückgabe 1"}, b'"custom_id": "'),
        ("payout", {"id": "x" * 64}, b'"sender_item_id":"'),
    ],
)
def test_amounts_and_ids_in_paypals_form(operation: str, changed: dict[str, Any], text: bytes) -> None:
    """No decimals where PayPal has none; ids outside its alphabet or length as a digest."""
    request = kit.build(operation).prepare(kit.item(operation, **changed), key=KEY, step=0)
    assert text in request.body and request.body.isascii()


@pytest.mark.parametrize(
    ("operation", "changed", "code"),
    [
        ("refund", {"money": Money("12.34", "HUF")}, "not_representable"),
        ("refund", {"target": "a b"}, "bad_target"),
        ("refund", {"money": None}, "amount_missing"),
        ("payout", {"money": None}, "amount_missing"),
    ],
)
def test_items_that_paypal_could_not_take_are_refused(operation: str, changed: dict[str, Any], code: str) -> None:
    """Before an intent is written."""
    with pytest.raises(ConfigError, match=code):
        kit.build(operation).prepare(kit.item(operation, **changed), key=KEY, step=0)


def test_windows_are_those_of_each_api() -> None:
    """45 days for refunds, 30 for payouts, less a margin; no look-up to rely on."""
    for operation, days in (("refund", 45), ("payout", 30)):
        declared = kit.build(operation).declaration
        assert declared.lookup is None and declared.key is not None
        assert declared.key.window_us is not None
        assert (days - 3) * DAY_US < declared.key.window_us < days * DAY_US


@pytest.mark.parametrize(
    ("shown", "code"),
    [
        ({"status": "COMPLETED", "amount": {"value": "50.00", "currency_code": "USD"}}, None),
        ({"status": "REFUNDED", "amount": {"value": "50.00", "currency_code": "USD"}}, "capture_already_refunded"),
        ({"status": "PENDING", "amount": {"value": "50.00", "currency_code": "USD"}}, "capture_not_completed"),
        ({"status": "COMPLETED", "amount": {"value": "50.00", "currency_code": "EUR"}}, "currency_mismatch"),
        ({"status": "COMPLETED", "amount": {"value": "5.00", "currency_code": "USD"}}, "over_refund"),
        ({"status": "COMPLETED"}, "not_checked"),
    ],
)
def test_a_refund_is_compared_with_its_capture_beforehand(shown: dict[str, Any], code: str | None) -> None:
    """As plan --check shows it."""
    at = bench()
    at.transport.answers[:] = [answer(200, shown)]
    found = asyncio.run(at.provider.preflight(kit.item("refund"), timeout_us=1_000_000))
    assert found is not None and (found.ok, found.code) == (code is None, code)
