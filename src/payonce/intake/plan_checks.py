"""Compares items with what is known of their targets before anything is sent. Pure: no provider is asked here.

What does not fit is held, with the reason; nothing is matched by likeness, and where several items together ask for more
than is left on a target, all of them are held, since no rule says which one is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from payonce.core.model import NewItem
from payonce.core.money import Money, format_minor
from payonce.intake.ids import folded


@dataclass(frozen=True, slots=True)
class TargetState:
    """A target as the provider shows it: what can at most be taken from it, and what already was, in minor units."""

    currency: str
    captured_minor: int
    refunded_minor: int = 0
    disputed: bool = False

    @property
    def left_minor(self) -> int:
        """What is left."""
        return self.captured_minor - self.refunded_minor


@dataclass(frozen=True, slots=True)
class Held:
    """An item that is not sent as things are: a stable code and what is wrong."""

    item: str
    line: int | None
    code: str
    message: str


def against_snapshot(items: Iterable[NewItem], snapshot: Mapping[str, TargetState]) -> tuple[Held, ...]:
    """The items that do not fit the state of their targets, in input order.

    Codes: ``no_such_target``, ``other_currency``, ``disputed``, ``over_remaining``. Ids are compared exactly.
    """
    kept = list(items)
    asked: dict[str, int] = {}
    for item in kept:
        target = item.target or item.id
        state = snapshot.get(target)
        if state is not None and item.money is not None and item.money.currency == state.currency:
            asked[target] = asked.get(target, 0) + item.money.minor
    near = {folded(target): target for target in snapshot}
    found = (_held(item, snapshot, asked, near) for item in kept)
    return tuple(held for held in found if held is not None)


def _held(
    item: NewItem, snapshot: Mapping[str, TargetState], asked: Mapping[str, int], near: Mapping[str, str]
) -> Held | None:
    target = item.target or item.id
    state = snapshot.get(target)

    def held(code: str, message: str) -> Held:
        return Held(item.id, item.line, code, message)

    if state is None:
        other = near.get(folded(target))
        hint = f"; {other!r} differs only in case, blanks or leading zeros, and is not taken for it" if other else ""
        return held("no_such_target", f"there is no {target!r}{hint}")
    if state.disputed:
        return held("disputed", f"{target} is disputed; the provider decides about its money")
    if item.money is None:
        return None
    if item.money.currency != state.currency:
        return held("other_currency", f"{target} is in {state.currency}, the item in {item.money.currency}")
    if asked[target] > state.left_minor:
        return held("over_remaining", _too_much(item.money, target, asked[target], state))
    return None


def _too_much(money: Money, target: str, asked_minor: int, state: TargetState) -> str:
    left = f"{format_minor(max(state.left_minor, 0), state.currency)} {state.currency} is left on {target}"
    if asked_minor == money.minor:
        return f"{money} is asked, {left}"
    asked = format_minor(asked_minor, state.currency)
    return f"the items on {target} ask for {asked} {state.currency} together, {left}"


@dataclass(frozen=True, slots=True)
class Overlap:
    """An item whose target another batch acts on."""

    item: str
    line: int | None
    target: str
    batch: str


def overlaps(
    items: Iterable[NewItem], acted_on: Mapping[str, str], *, canonical: Mapping[str, str] | None = None
) -> Iterator[Overlap]:
    """The items whose target is in ``acted_on`` (target to batch), in input order.

    ``canonical`` gives the one name of a target that goes by several (a payment intent and its charge); both sides are
    looked up in it, and a name that is not in it stands for itself.
    """
    names = canonical or {}
    taken = {names.get(target, target): batch for target, batch in acted_on.items()}
    for item in items:
        target = item.target or item.id
        batch = taken.get(names.get(target, target))
        if batch is not None:
            yield Overlap(item.id, item.line, target, batch)
