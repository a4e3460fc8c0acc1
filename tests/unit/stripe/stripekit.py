"""A Stripe adapter on a scripted transport, its items, and Stripe's answers as its documentation shows them."""

from __future__ import annotations

from typing import Any

from payonce.core.model import Item
from payonce.core.money import Money
from payonce.providers import stripe
from payonce.providers.registry import Wanted
from payonce.providers.transport import Answer
from payonce.testing.provider_rig import MakeTransport, Rig, answer

SECRET = "sk_test_marked_51Hsecret"
MONEY = Money("12.50", "USD")
TARGETS = {"refund": "ch_1", "payout": "ba_1", "transfer": "acct_9", "invoice": "cus_1"}
OURS = {"payonce_item": "r1", "payonce_batch": "b"}


def item(operation: str, step: int = 0, **changed: Any) -> Item:
    """The item of the operation's tests, with what earlier steps carried."""
    carry = {"invoice": "in_1"} if step else {}
    made: dict[str, Any] = {"target": TARGETS[operation], "money": MONEY, "carry": carry, **changed}
    return Item(1, made.pop("id", "r1"), made.pop("target"), made.pop("money"), {}, step=step, **made)


def build(operation: str, make: MakeTransport | None = None, **settings: Any) -> stripe.StripeProvider:
    """An adapter; ``settings`` go into its table."""
    table = {"kind": "stripe", "api_key": "${STRIPE_API_KEY}", **settings}
    wanted = Wanted(operation, "b", environ={"STRIPE_API_KEY": SECRET}, columns=("note",))
    return stripe.build(table, wanted, make_transport=make)


def refund(**changed: Any) -> dict[str, Any]:
    """A refund object (https://docs.stripe.com/api/refunds/object)."""
    made = {
        "id": "re_1",
        "object": "refund",
        "amount": 1250,
        "currency": "usd",
        "charge": "ch_1",
        "payment_intent": "pi_1",
        "status": "succeeded",
        "created": 1_800_000_000,
        "balance_transaction": "txn_1",
        "metadata": OURS,
    }
    return {**made, **changed}


def payout(**changed: Any) -> dict[str, Any]:
    """A payout object."""
    made = {"id": "po_1", "object": "payout", "destination": "ba_1", "status": "pending"}
    return refund(charge=None, payment_intent=None) | made | changed


def transfer(**changed: Any) -> dict[str, Any]:
    """A transfer object."""
    made = {"id": "tr_1", "object": "transfer", "destination": "acct_9", "status": None, "reversed": False}
    return refund(charge=None, payment_intent=None) | made | changed


def invoice(**changed: Any) -> dict[str, Any]:
    """An invoice object."""
    made = {
        "id": "in_1",
        "object": "invoice",
        "customer": "cus_1",
        "currency": "usd",
        "total": 1250,
        "status": "draft",
        "created": 1_800_000_000,
        "metadata": OURS,
    }
    return {**made, **changed}


def line(**changed: Any) -> dict[str, Any]:
    """An invoice item object."""
    made = {"id": "ii_1", "object": "invoiceitem", "invoice": "in_1", "customer": "cus_1"}
    return {**made, "amount": 1250, "currency": "usd", "metadata": OURS, **changed}


def error(status: int, code: str | None = None, /, type: str = "invalid_request_error", **more: Any) -> Answer:
    """An error of Stripe's. ``headers`` in ``more`` go to the answer."""
    headers = more.pop("headers", {})
    body = {"type": type, "message": more.pop("message", "Stripe says no."), **more}
    return answer(status, {"error": body if code is None else {**body, "code": code}}, **headers)


def listed(*entries: dict[str, Any], more: bool = False) -> Answer:
    """A page of a list, newest first."""
    return answer(200, {"object": "list", "data": list(entries), "has_more": more})


SUCCESS = {"refund": refund, "payout": payout, "transfer": transfer}


def executed(operation: str, asked: Item) -> Answer:
    """The success of an item's present step."""
    if operation == "invoice":
        made = [invoice(), line(), invoice(status="open"), invoice(status="paid")][asked.step]
        return answer(200, made)
    return answer(200, SUCCESS[operation]())


def rig(operation: str, cases: tuple[Any, ...]) -> Rig:
    """The suite's rig of an operation."""
    return Rig(
        build=lambda make: build(operation, make),
        item=lambda step: item(operation, step),
        executed=lambda asked: executed(operation, asked),
        cases=cases,
        secrets=(SECRET,),
    )
