"""A PayPal adapter on a scripted transport that also grants tokens, and PayPal's answers as its OpenAPI files show them."""

from __future__ import annotations

from typing import Any

from payonce.core.model import Item, Request
from payonce.core.money import Money
from payonce.providers import paypal
from payonce.providers.registry import Wanted
from payonce.providers.transport import Answer
from payonce.testing.provider_rig import MakeTransport, Rig, answer

CLIENT, SECRET, TOKEN = "client_marked_id", "client_marked_secret", "A21_marked_access_token"
MONEY = Money("10.99", "USD")
CAPTURE = "2GG279541U471931P"
TARGETS = {"refund": CAPTURE, "payout": "payee@example.com"}
# SHA-256 over the length-prefixed batch and item, as calls.py derives it: a change here would lose the guard.
INVOICE = "payonce-"


def item(operation: str, **changed: Any) -> Item:
    """The item of the operation's tests."""
    made: dict[str, Any] = {"id": "r1", "target": TARGETS[operation], "money": MONEY, **changed}
    return Item(1, made["id"], made["target"], made["money"], {})


def build(operation: str, make: MakeTransport | None = None, **settings: Any) -> paypal.PayPalProvider:
    """An adapter; ``settings`` go into its table."""
    table = {"kind": "paypal", "environment": "sandbox", **settings}
    environ = {"PAYPAL_CLIENT_ID": CLIENT, "PAYPAL_CLIENT_SECRET": SECRET}
    return paypal.build(table, Wanted(operation, "b", environ=environ), make_transport=make)


def doorway(request: Request) -> Answer | None:
    """Grants a token."""
    if request.path != "/v1/oauth2/token":
        return None
    return answer(200, {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 32400})


def refund(**changed: Any) -> dict[str, Any]:
    """A refund, in full representation."""
    made = {
        "id": "1JU08902781691411",
        "status": "COMPLETED",
        "amount": {"value": "10.99", "currency_code": "USD"},
        "custom_id": "r1",
        "links": [{"rel": "up", "href": f"https://api-m.paypal.com/v2/payments/captures/{CAPTURE}"}],
    }
    return {**made, **changed}


def created(key: str | None = None, **changed: Any) -> dict[str, Any]:
    """A payout batch just created."""
    header = {"payout_batch_id": "5UXD2E8A7EBQJ", "batch_status": "PENDING", **changed}
    return {"batch_header": header if key is None else {**header, "sender_batch_header": {"sender_batch_id": key}}}


def details(
    *, status: str = "SUCCESS", sender: str = "r1", value: str = "10.99", receiver: str = TARGETS["payout"]
) -> dict[str, Any]:
    """A payout batch as read later."""
    inner = {"sender_item_id": sender, "receiver": receiver, "amount": {"value": value, "currency": "USD"}}
    return {**created(), "items": [{"transaction_status": status, "payout_item": inner}]}


def error(status: int, name: str, issue: str | None = None, **headers: str) -> Answer:
    """An error of PayPal's."""
    found = [{"issue": issue, "description": "PayPal says no."}] if issue else []
    return answer(status, {"name": name, "message": "The request failed.", "details": found}, **headers)


def duplicate(batch: str = "5UXD2E8A7EBQJ") -> Answer:
    """The refusal of a sender_batch_id that was used before, with its link to the first."""
    link = {"rel": "self", "href": f"https://api-m.paypal.com/v1/payments/payouts/{batch}", "method": "GET"}
    return answer(400, {"name": "USER_BUSINESS_ERROR", "message": "Duplicate batch", "links": [link]})


def rig(operation: str, cases: tuple[Any, ...]) -> Rig:
    """The suite's rig of an operation."""
    return Rig(
        build=lambda make: build(operation, make),
        item=lambda _: item(operation),
        executed=lambda _: answer(201, refund() if operation == "refund" else created()),
        cases=cases,
        secrets=(CLIENT, SECRET, TOKEN),
        doorway=doorway,
    )
