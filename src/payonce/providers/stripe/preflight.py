"""Reads a refund's charge before anything is sent: it exists, its currency is the item's, what is left covers it, it is
not disputed. Pure; the read itself is the adapter's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payonce.core.decimals import STRIPE
from payonce.core.model import Item
from payonce.core.money import Money
from payonce.providers.official.values import Unreadable, asked, mapping, minor, named, word
from payonce.providers.protocol import Preflight


def charge_of(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """The charge itself, or a payment intent's latest one. Raises Unreadable where there is none."""
    if tree.get("object") == "payment_intent":
        tree = mapping(tree.get("latest_charge"))
    if tree.get("object") != "charge":
        raise Unreadable("the target shows no charge")
    return tree


def judge_charge(tree: Mapping[str, Any], item: Item, *, mode: str | None) -> Preflight:
    """What the charge says about the item. Raises Unreadable."""
    charge = charge_of(tree)
    money, currency = asked(item), (word(charge.get("currency")) or "").upper()
    if currency and currency != money.currency:
        why = f"the charge is in {currency}, the item in {money.currency}"
        return Preflight(False, "currency_mismatch", why)
    total = minor(charge.get("amount"), charge.get("currency"), STRIPE)
    refunded = minor(charge.get("amount_refunded", 0), charge.get("currency"), STRIPE)
    left = total - refunded
    data = {"amount": str(total), "refunded": str(refunded)}
    # Both names of one payment, so that a caller can tell that two targets are the same.
    names = [found for name in ("id", "payment_intent") if (found := named(charge.get(name))) is not None]
    problem = _problem(charge, money, total=total, left=left, mode=mode)
    code, message = problem or (None, None)
    return Preflight(
        problem is None,
        code,
        message,
        data,
        stop=code == "wrong_mode",
        already=code in ("charge_already_refunded", "over_refund") and refunded.minor > 0,
        touched=refunded.minor > 0,
        taken=refunded,
        names=tuple(names),
    )


def _problem(
    charge: Mapping[str, Any], money: Money, *, total: Money, left: Money, mode: str | None
) -> tuple[str, str] | None:
    live = charge.get("livemode")
    if mode is not None and isinstance(live, bool) and live is not (mode == "live"):
        return "wrong_mode", f"the charge is in {'live' if live else 'test'} mode, the API key in {mode} mode"
    if charge.get("status") not in ("succeeded", "pending", None):
        return "charge_not_paid", f"the charge is {charge.get('status')}: there is nothing to refund"
    if charge.get("disputed") is True:
        return "charge_disputed", "the charge is disputed: its money goes back through the dispute"
    if left.minor == 0:
        return "charge_already_refunded", f"all of {total} has been refunded already"
    if left < money:
        return "over_refund", f"{left} of {total} is left, the item asks for {money}"
    return None
