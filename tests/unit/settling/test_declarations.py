"""What the official adapters declare is what they do: each line against the adapter itself."""

from __future__ import annotations

import json
import socket
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from payonce.cli.main import invoke
from payonce.core.errors import ConfigError
from payonce.core.model import SECOND_US, Declaration, Item
from payonce.core.outcome import Executed, Unresolved
from payonce.core.states import Settlement
from payonce.providers.official.adapter import OfficialAdapter
from payonce.providers.protocol import Provider
from payonce.providers.registry import describe_all
from payonce.testing.provider_rig import answer
from tests.unit.adyen import adyenkit
from tests.unit.paypal import paypalkit
from tests.unit.stripe import stripekit

HOUR_US = 3600 * SECOND_US
KEY = "0123456789abcdef" * 4


@dataclass(frozen=True)
class Line:
    """One operation of one adapter, and what its declaration must say."""

    provider: Provider
    item: Item
    carrier: str
    hours: int
    lookup: bool
    later: bool


def lines() -> list[Line]:
    """All operations of all adapters."""
    stripe = [
        Line(stripekit.build(name), stripekit.item(name), "header Idempotency-Key", 24, True, name != "transfer")
        for name in ("refund", "payout", "transfer", "invoice")
    ]
    adyen = [
        Line(adyenkit.build(name), adyenkit.item(name), "header Idempotency-Key", 7 * 24, False, True)
        for name in ("refund", "payout")
    ]
    paypal = [
        Line(paypalkit.build("refund"), paypalkit.item("refund"), "header PayPal-Request-Id", 45 * 24, False, True),
        Line(
            paypalkit.build("payout"),
            paypalkit.item("payout"),
            "body sender_batch_header.sender_batch_id",
            30 * 24,
            False,
            True,
        ),
    ]
    return [*stripe, *adyen, *paypal]


ALL = lines()


def name(line: Line) -> str:
    """For the report."""
    return f"{line.provider.declaration.kind}-{line.provider.declaration.operation}"


@pytest.mark.parametrize("line", ALL, ids=name)
def test_the_key_is_where_it_is_said_to_be(line: Line) -> None:
    """Header or place in the body, by name."""
    declared = line.provider.declaration.key
    assert declared is not None and declared.carrier == line.carrier
    key = KEY[: declared.format.length]
    request = line.provider.prepare(line.item, key=key, step=0)
    where, _, place = line.carrier.partition(" ")
    if where == "header":
        assert dict(request.headers)[place] == key
    else:
        body: Any = json.loads(request.body)
        for part in place.split("."):
            body = body[part]
        assert body == key


@pytest.mark.parametrize("line", ALL, ids=name)
def test_a_key_is_never_sent_again_after_its_time(line: Line) -> None:
    """Its window is the documented retention less the larger of 5 % and 5 minutes."""
    declared = line.provider.declaration.key
    assert declared is not None and declared.retention_us == line.hours * HOUR_US
    assert declared.window_us == line.hours * HOUR_US * 95 // 100


@pytest.mark.parametrize("line", ALL, ids=name)
def test_a_look_up_is_declared_where_there_is_one(line: Line) -> None:
    """And only there; it finds ours by the reference that every call carries."""
    declared = line.provider.declaration
    assert (declared.lookup is not None) is line.lookup
    assert (type(line.provider).lookup is not OfficialAdapter.lookup) is line.lookup
    if declared.lookup is not None:
        assert declared.lookup.own_reference
        assert b"metadata[payonce_item]=r1" in line.provider.prepare(line.item, key=KEY, step=0).body


@pytest.mark.parametrize("line", ALL, ids=name)
def test_what_settles_later_says_so(line: Line) -> None:
    """An execution may be confirmed long before its money has arrived."""
    assert line.provider.declaration.settles_later is line.later


def test_stripe_remembers_errors() -> None:
    """``stores_errors``: a replayed 500 burns the key."""
    from payonce.providers.official.adapter import Told
    from payonce.providers.stripe.answers import meaning

    assert all(declared.key is not None and declared.key.stores_errors for declared in describe_all("stripe"))
    stored = answer(500, {"error": {"type": "api_error"}}, Idempotent_Replayed="true")
    outcome = meaning(Told(stored, {"error": {"type": "api_error"}}, None), operation="refund")
    assert isinstance(outcome, Unresolved) and outcome.burnt


def test_steps_of_an_invoice_are_its_calls() -> None:
    """Four requests to four places."""
    provider = stripekit.build("invoice")
    steps = provider.declaration.steps
    paths = [provider.prepare(stripekit.item("invoice", step), key=KEY, step=step).path for step in range(len(steps))]
    assert steps == ("create", "add", "finalise", "pay")
    assert paths == ["/v1/invoices", "/v1/invoiceitems", "/v1/invoices/in_1/finalize", "/v1/invoices/in_1/pay"]


def test_settlement_of_a_first_answer() -> None:
    """Adyen's 201 is received, no more."""
    from payonce.providers.adyen.answers import confirmed

    outcome = confirmed(adyenkit.received(), adyenkit.item("refund"), operation="refund", account="ShopECOM")
    assert isinstance(outcome, Executed) and outcome.settlement is Settlement.PENDING


@pytest.mark.parametrize("kind", ["stripe", "adyen", "paypal"])
def test_every_promise_is_printed_with_its_sources(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """payonce providers KIND: what it declares, what follows after a crash, and where the facts come from."""
    assert invoke(["providers", kind, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["providers"]
    declared: tuple[Declaration, ...] = describe_all(kind)
    assert [one["operation"] for one in shown] == [one.operation for one in declared]
    for one in shown:
        assert all("https://" in source for source in one["sources"]) and one["sources"]
        assert one["guarantee"] and one["reverse"] and one["rate"] and one["identity"] and one["statement"]


@pytest.mark.parametrize(
    ("kit", "module"), [(stripekit, "stripe"), (adyenkit, "Adyen"), (paypalkit, "paypalserversdk.configuration")]
)
def test_a_missing_sdk_is_said_plainly(kit: Any, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it, before anything is sealed or sent."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match="missing_extra") as caught:
        kit.build("refund")
    assert "pip install '.[" in caught.value.hint


@pytest.mark.parametrize("line", ALL, ids=name)
def test_shaping_a_request_opens_no_connection(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK never reaches the network: neither for the call nor for a token, telemetry or a version check."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    declared = line.provider.declaration.key
    assert declared is not None
    assert line.provider.prepare(line.item, key=KEY[: declared.format.length], step=0).body
