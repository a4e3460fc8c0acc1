"""Effects as the provider's API shows them, in the shapes of Stripe's objects. Pure.

Amounts are integers in minor units, times whole seconds since the epoch, currencies in lower case; only the cost of a
call is a decimal text in major units (USDC, six places), as pay-per-call APIs do it.
"""

from __future__ import annotations

from typing import Any

from payonce.providers.simulator.behaviours import UNLIMITED_MINOR, Charge, Config
from payonce.providers.simulator.store import Effect, Store

_SETTLED = {"refund": "succeeded", "payout": "paid", "transfer": "paid", "call": "succeeded"}
_TARGET_NAME = {"refund": "charge", "payout": "destination", "transfer": "destination"}


def usdc(micro: int) -> str:
    """The amount in major units with six places, from millionths."""
    return f"{micro // 1_000_000}.{micro % 1_000_000:06d}"


def effect_object(effect: Effect, *, store: Store, config: Config, now: int) -> dict[str, Any]:
    """The object of an execution as a read or the answer to its call shows it at `now`."""
    if effect.operation.startswith("invoice"):
        return _invoice(effect, store=store)
    if effect.operation == "call":
        return _call(effect)
    detail = effect.detail
    shown: dict[str, Any] = {
        "id": effect.id,
        "object": effect.operation,
        _TARGET_NAME[effect.operation]: effect.target,
        "amount": effect.amount_minor,
        "currency": effect.currency,
        "status": status_of(effect, store=store, config=config, now=now),
        "created": effect.executed_at // 1_000_000,
        "metadata": detail.get("metadata") or {},
        "reference": effect.ref,
    }
    if effect.operation == "refund":
        shown["payment_intent"] = detail.get("payment_intent")
        shown["reason"] = detail.get("reason")
    return shown


def status_of(effect: Effect, *, store: Store, config: Config, now: int) -> str:
    """The settlement of an execution at `now`: what an operator set, else pending, then settled."""
    found = store.statuses.get(effect.id)
    if found is not None:
        return found[0]
    if now < effect.executed_at + config.settles_after_us:
        return "pending"
    return _SETTLED[effect.operation]


def charge_object(charge_id: str, *, charge: Charge, refunded_minor: int) -> dict[str, Any]:
    """A charge; a currency of null stands for a charge that takes any, an amount without end for one never set up."""
    return {
        "id": charge_id,
        "object": "charge",
        "amount": charge.amount_minor,
        "amount_captured": charge.amount_minor,
        "amount_refunded": refunded_minor,
        "refunded": refunded_minor >= charge.amount_minor,
        "currency": charge.currency,
        "disputed": charge.disputed,
        "payment_intent": charge.payment_intent or "pi_" + charge_id.removeprefix("ch_"),
        "status": "succeeded",
        "set_up": charge.amount_minor != UNLIMITED_MINOR,
    }


def usage_entry(effect: Effect) -> dict[str, Any]:
    """The line of the usage log that a call left."""
    return {
        "id": effect.id,
        "user": effect.ref,
        "model": effect.target,
        "tokens": effect.detail["tokens"],
        "cost": usdc(effect.amount_minor),
        "currency": effect.currency,
        "created": effect.executed_at // 1_000_000,
    }


def invoice_status(invoice_id: str, *, account: str, store: Store) -> str:
    """draft, open or paid, from the steps that were executed."""
    if any(store.newest_first(account, "invoice_pay", "target", invoice_id)):
        return "paid"
    return "open" if any(store.newest_first(account, "invoice_finalize", "target", invoice_id)) else "draft"


def _invoice(effect: Effect, *, store: Store) -> dict[str, Any]:
    created = effect
    if effect.operation != "invoice":
        created = store.find(effect.target, account=effect.account) or effect
    return {
        "id": created.id,
        "object": "invoice",
        "customer": created.target,
        "amount": created.amount_minor,
        "amount_due": created.amount_minor,
        "currency": created.currency,
        "status": invoice_status(created.id, account=created.account, store=store),
        "created": created.executed_at // 1_000_000,
        "metadata": created.detail.get("metadata") or {},
        "reference": created.ref,
    }


def _call(effect: Effect) -> dict[str, Any]:
    detail = effect.detail
    return {
        "id": effect.id,
        "object": "call",
        "model": effect.target,
        "output": detail["output"],
        "usage": {"tokens": detail["tokens"]},
        "cost": usdc(effect.amount_minor),
        "currency": effect.currency,
        "created": effect.executed_at // 1_000_000,
        "user": effect.ref,
        "metadata": detail.get("metadata") or {},
    }
