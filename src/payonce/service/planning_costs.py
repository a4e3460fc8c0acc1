"""What a batch of calls may cost, before the first one: from the table of prices and the input.

Each item's request is built as it would be sent, and bounded. Of a large input the first items are priced and the rest
taken to be like them, which the report says. Sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Protocol, runtime_checkable

from payonce.core.errors import ConfigError
from payonce.core.keys import KeyMaker
from payonce.core.model import Item, Limits, NewItem, Request
from payonce.core.money import Money, format_minor
from payonce.core.wording import some
from payonce.providers.protocol import Provider
from payonce.service.durations import money_text

# Building a request costs some ten microseconds; beyond this many a plan would take noticeably longer.
_PRICED: Final = 20_000


@runtime_checkable
class Prices(Protocol):
    """A provider that can tell from a request what its call can cost at most, and will cost roughly."""

    def at_most(self, request: Request, item: Item) -> Money | None: ...

    def estimated(self, request: Request, item: Item) -> Money | None: ...


@dataclass(slots=True)
class CostPlan:
    """Sums in minor units by currency: at most, and roughly. ``unpriced`` items will be refused, ``example`` says why.

    ``basis`` says in words what the sums rest on.
    """

    at_most: dict[str, int] = field(default_factory=dict)
    estimated: dict[str, int] = field(default_factory=dict)
    unpriced: int = 0
    example: str = ""
    basis: str = ""

    def as_json(self) -> dict[str, Any]:
        """The JSON shape, in major units."""
        return {
            "at_most": {code: format_minor(minor, code) for code, minor in sorted(self.at_most.items())},
            "estimated": {code: format_minor(minor, code) for code, minor in sorted(self.estimated.items())},
            "unpriced": self.unpriced,
            "basis": self.basis,
        }


def cost_of(provider: Provider, items: Iterable[NewItem], *, count: int, limits: Limits, batch: str) -> CostPlan | None:
    """What so many items may cost; None where nothing tells it: no prices, and no reservation."""
    priced = _priced(provider, items, batch=batch)
    plan = priced[0] if priced is not None else CostPlan()
    seen = priced[1] if priced is not None else 0
    if seen and seen < count:
        plan.at_most = {code: minor * count // seen for code, minor in plan.at_most.items()}
        plan.estimated = {code: minor * count // seen for code, minor in plan.estimated.items()}
        plan.unpriced = plan.unpriced * count // seen
        plan.basis = f"the first {seen} items, the others taken to be like them"
    elif seen:
        plan.basis = "every item's request"
    if not plan.at_most and limits.reserve:
        plan.at_most = {code: minor * count for code, minor in list(limits.reserve.items())[:1]}
        plan.basis = f"{plan.basis}; [limits] reserve" if plan.estimated else "[limits] reserve, for every item"
    return plan if plan.at_most or plan.estimated or plan.unpriced else None


def _priced(provider: Provider, items: Iterable[NewItem], *, batch: str) -> tuple[CostPlan, int] | None:
    if not isinstance(provider, Prices):
        return None
    plan, seen = CostPlan(), 0
    key = _a_key(provider, batch)
    for seen, new in enumerate(islice(items, _PRICED), 1):
        item = Item(seen, new.id, new.target or new.id, new.money, new.fields)
        try:
            request = provider.prepare(item, key=key, step=0)
            bound, guess = provider.at_most(request, item), provider.estimated(request, item)
        except ConfigError as fault:
            plan.unpriced += 1
            plan.example = plan.example or fault.message
            continue
        if bound is None and guess is None and not plan.unpriced:
            return None
        _add(plan.at_most, bound)
        _add(plan.estimated, guess)
    return plan, seen


def _a_key(provider: Provider, batch: str) -> str | None:
    """A key of the right form, for measuring a request that is never sent."""
    declared = provider.declaration.key
    if declared is None:
        return None
    return KeyMaker(declared.format, namespace="estimate", batch=batch, operation="call").key("", step="", generation=0)


def _add(sums: dict[str, int], money: Money | None) -> None:
    if money is not None:
        sums[money.currency] = sums.get(money.currency, 0) + money.minor


def warnings_of(plan: CostPlan, budget: Mapping[str, int]) -> list[str]:
    """What somebody should know before the first call."""
    found = []
    if plan.unpriced:
        found.append(f"{some(plan.unpriced, 'item')} without a price will be refused: {plan.example}")
    for code, limit in budget.items():
        roughly, most = plan.estimated.get(code), plan.at_most.get(code)
        if roughly is not None and roughly > limit:
            text = f"{format_minor(roughly, code)} {code} is above the budget of {format_minor(limit, code)}"
            found.append(f"the estimated cost of {text}: the run will stop there")
        elif most is not None and most > limit:
            text = f"up to {format_minor(most, code)} {code}, the budget is {format_minor(limit, code)}"
            found.append(f"the calls may cost {text}: the run may stop there")
    return found


def guarantee_of(declared: str, limits: Limits) -> str:
    """What happens after a crash or a lost answer: as the provider allows, and as the batch's policy has it."""
    if limits.on_unknown != "pay_again" or not declared:
        return declared
    again = money_text(limits.pay_again_limit)
    return f"{declared} What no rule decides is paid for once more, up to {again} in all (on_unknown)."
