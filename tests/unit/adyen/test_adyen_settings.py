"""What an Adyen batch is bound to, and what is refused before anything is sent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from payonce.core.errors import ConfigError
from payonce.core.model import Declaration
from payonce.core.money import Money
from payonce.core.outcome import Unresolved
from payonce.providers.adyen.declaration import DAY_US
from payonce.providers.protocol import Identity
from payonce.providers.transport import TransportSettings
from payonce.testing.provider_rig import ScriptedTransport, answer
from tests.unit.adyen import adyenkit as kit


def test_live_addresses_carry_the_region_and_are_bound() -> None:
    """Keys do not cross regions: another prefix is another address, and another digest."""
    live = [
        kit.build("refund", environment="live", live_prefix=f"{prefix}-Shop").provider_digest for prefix in ("eu", "us")
    ]
    assert len({*live, kit.build("refund").provider_digest}) == 3
    made: list[TransportSettings] = []

    def make(settings: TransportSettings) -> ScriptedTransport:
        made.append(settings)
        return ScriptedTransport(settings)

    kit.build("refund", make, environment="live", live_prefix="1797a841fbb37ca7-Shop")
    assert made[0].base_url == "https://1797a841fbb37ca7-Shop-checkout-live.adyenpayments.com/checkout/v72"


def test_the_key_is_tried_before_anything_is_sent() -> None:
    """By a read that moves no money; what is not accepted is refused."""
    for reply, code in ((answer(200, {"paymentMethods": []}), None), (kit.error(401, "000"), "bad_credentials")):

        def make(settings: TransportSettings, reply: Any = reply) -> ScriptedTransport:
            transport = ScriptedTransport(settings)
            transport.answers[:] = [reply]
            return transport

        provider = kit.build("refund", make)
        if code is None:
            assert asyncio.run(provider.identify()) == Identity("ShopECOM", "test")
        else:
            with pytest.raises(ConfigError, match=code):
                asyncio.run(provider.identify())


@pytest.mark.parametrize(
    "settings",
    [
        {"environment": "production"},
        {"environment": "live"},
        {"merchant_account": None},
        {"account": "Other"},
        {"params": {"reference": "mine"}},
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: dict[str, Any]) -> None:
    """Each is named."""
    with pytest.raises(ConfigError, match="bad_setting"):
        kit.build("refund", **settings)


def test_items_that_adyen_could_not_take_are_refused() -> None:
    """A reference over 80 characters would be cut or refused there; a target is no path."""
    provider, item = kit.build("refund"), kit.item("refund")
    for changed, code in (
        ({"id": "x" * 81}, "id_too_long"),
        ({"target": "a/b"}, "bad_target"),
        ({"money": None}, "amount_missing"),
    ):
        with pytest.raises(ConfigError, match=code):
            provider.prepare(replace(item, **changed), key="k" * 36, step=0)


def test_the_request_is_adyens() -> None:
    """Minor units, our id as the reference, the merchant account."""
    request = kit.build("refund", params={"merchantRefundReason": "RETURN"}).prepare(
        replace(kit.item("refund"), money=Money("5800", "JPY")), key="k" * 36, step=0
    )
    assert request.path == f"/payments/{kit.PAYMENT}/refunds"
    assert request.body == (
        b'{"merchantRefundReason":"RETURN","amount":{"currency":"JPY","value":5800},"reference":"r1",'
        b'"merchantAccount":"ShopECOM"}'
    )


def test_704_is_waited_for_but_not_for_ever() -> None:
    """In progress while it may be; later an answer that does not tell, which ends with a person."""
    from payonce.providers.adyen.answers import meaning
    from payonce.providers.official.adapter import Told

    told = Told(kit.error(422, "704"), {"errorCode": "704"}, None)
    first, late = meaning(told, sent=1), meaning(told, sent=20)
    assert isinstance(first, Unresolved) and first.in_progress and first.retry_after_us == 15_000_000
    assert isinstance(late, Unresolved) and not late.in_progress


def test_seven_days_less_a_margin_and_no_look_up() -> None:
    """The declared window is what decides whether a key may be sent again."""
    declared: Declaration = kit.build("refund").declaration
    assert declared.key is not None and declared.lookup is None
    assert declared.key.window_us is not None and 6 * DAY_US < declared.key.window_us < 7 * DAY_US
    assert declared.key.format.length <= 64
