"""The settings of a batch file about what calls may cost: what stays unknown, paying again, and a budget that can hold.

A budget over calls whose price nobody knows beforehand holds only where each call reserves something; paying again is
for calls alone and never without a limit. Both are refused here, before anything is read or sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payonce.core.errors import PayonceError
from payonce.core.model import Limits
from payonce.service.batchfile_check import Faults
from payonce.service.durations import amounts_minor

_POLICIES = ("hold", "pay_again")


def read_policy(raw: Mapping[str, Any], provider: dict[str, Any], faults: Faults) -> tuple[str, dict[str, int]]:
    """``on_unknown`` and ``pay_again_limit``, taken out of the provider's table: they are the engine's, not an adapter's.

    Every fault is added.
    """
    policy = provider.pop("on_unknown", "hold")
    stated = provider.pop("pay_again_limit", {})
    if policy not in _POLICIES:
        faults.add(
            f'{policy!r} does not fit; expected "hold" or "pay_again"',
            table="provider", key="on_unknown", value=policy, code="bad_setting",
        )  # fmt: skip
        policy = "hold"
    limit = _limit(stated, faults)
    operation = raw.get("batch", {}).get("operation")
    if policy == "pay_again" and operation != "call":
        faults.add(
            f'"pay_again" is for calls; a {operation} that may have been executed is never sent again by a rule',
            table="provider", key="on_unknown", value=policy, code="pay_again_refused",
        )  # fmt: skip
    if policy == "pay_again" and not limit:
        faults.add(
            'missing: "pay_again" needs a limit, such as pay_again_limit = {USDC = "1.00"}',
            table="provider", key="pay_again_limit", code="pay_again_refused",
        )  # fmt: skip
    return policy, limit


def check_costs(raw: Mapping[str, Any], limits: Limits, faults: Faults) -> None:
    """Adds a fault where a budget or a limit of paying again could not be kept, since a call reserves nothing."""
    item, price = raw.get("item", {}), raw.get("provider", {}).get("price")
    has_amount = bool({"amount", "amount_minor"} & set(item))
    bounded = isinstance(price, Mapping) and bool(price.get("at_most"))
    if has_amount or limits.reserve or bounded or raw.get("batch", {}).get("operation") != "call":
        return
    advice = 'state reserve = {USDC = "0.020000"} in [limits], or at_most in [provider.price]'
    if limits.budget:
        faults.add(
            f"a budget cannot hold where a call reserves nothing; {advice}",
            table="limits", key="budget", code="no_reserve",
        )  # fmt: skip
    if limits.on_unknown == "pay_again":
        faults.add(
            f"nobody would know what paying again may cost; {advice}",
            table="provider", key="on_unknown", code="no_reserve",
        )  # fmt: skip


def _limit(stated: object, faults: Faults) -> dict[str, int]:
    try:
        if not isinstance(stated, Mapping):
            raise ValueError('expected an amount in major units in quotes for each currency, such as {USDC = "1.00"}')
        return amounts_minor(stated)
    except (ValueError, PayonceError) as error:
        message = getattr(error, "message", str(error))
        faults.add(
            f"{stated!r} does not fit; {message}",
            table="provider", key="pay_again_limit", value=stated, code="bad_setting",
        )  # fmt: skip
        return {}
