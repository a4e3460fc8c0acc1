"""An Adyen adapter on a scripted transport, its items, and Adyen's answers as its OpenAPI files show them."""

from __future__ import annotations

from typing import Any

from payonce.core.model import Item
from payonce.core.money import Money
from payonce.providers import adyen
from payonce.providers.registry import Wanted
from payonce.providers.transport import Answer
from payonce.testing.provider_rig import MakeTransport, Rig, answer

SECRET = "AQE_marked_secret_key"
MONEY = Money("12.50", "EUR")
PAYMENT = "993617894903480A"
TARGETS = {"refund": PAYMENT, "payout": "SE322KH223222D5F"}


def item(operation: str) -> Item:
    """The item of the operation's tests."""
    return Item(1, "r1", TARGETS[operation], MONEY, {})


def build(operation: str, make: MakeTransport | None = None, **settings: Any) -> adyen.AdyenProvider:
    """An adapter; ``settings`` go into its table."""
    table = {
        "kind": "adyen",
        "api_key": "${ADYEN_API_KEY}",
        "environment": "test",
        "merchant_account": "ShopECOM",
        "balance_account": "BA3227C223222B5B",
        **settings,
    }
    wanted = Wanted(operation, "b", environ={"ADYEN_API_KEY": SECRET})
    return adyen.build(table, wanted, make_transport=make)


def received(**changed: Any) -> dict[str, Any]:
    """PaymentRefundResponse."""
    made = {
        "merchantAccount": "ShopECOM",
        "paymentPspReference": PAYMENT,
        "pspReference": "8836183819713023",
        "reference": "r1",
        "status": "received",
        "amount": {"currency": "EUR", "value": 1250},
    }
    return {**made, **changed}


def transfer(**changed: Any) -> dict[str, Any]:
    """Transfer."""
    made = {
        "id": "48TYZO5ZZC4WYQFK",
        "status": "authorised",
        "reference": "r1",
        "balanceAccount": {"id": "BA3227C223222B5B"},
        "counterparty": {"transferInstrumentId": "SE322KH223222D5F"},
        "amount": {"currency": "EUR", "value": 1250},
    }
    return {**made, **changed}


def error(status: int, code: str, /, kind: str = "validation", **headers: str) -> Answer:
    """An error of Adyen's."""
    body = {"status": status, "errorCode": code, "message": "Adyen says no", "errorType": kind}
    return answer(status, body, **headers)


def rig(operation: str, cases: tuple[Any, ...]) -> Rig:
    """The suite's rig of an operation."""
    success = received if operation == "refund" else transfer
    return Rig(
        build=lambda make: build(operation, make),
        item=lambda _: item(operation),
        executed=lambda _: answer(201 if operation == "refund" else 202, success()),
        cases=cases,
        secrets=(SECRET,),
    )
