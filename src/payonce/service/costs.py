"""What a batch of calls costs: spent, reserved, left, projected; and broken down by model or any other field.

Everything comes from the ledger: counts from its tallies, exact costs from what is kept with each commit. Sums are decimals
with all their digits; only what is shown is rounded, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final

from payonce.core.events import iso
from payonce.core.model import Status
from payonce.core.money import exponent, format_minor, parse_minor
from payonce.core.states import ItemState
from payonce.ledger.costs import OVER_RESERVE, PAID_AGAIN
from payonce.ledger.protocol import Ledger, Output
from payonce.service.inspecting import find_batch
from payonce.service.report import budget_minor

_PAGE: Final = 500
_WIDE: Final = Context(prec=60, rounding=ROUND_HALF_EVEN)
# Averages are shown with so many decimals more than their currency has.
_FINER: Final = 3
# What stands for the field where nobody names one: the first that an item has.
USUAL: Final = "model"
_OF_ITEMS: Final = ("target", "state", "day", "code")


def summary(ledger: Ledger, now: Status) -> dict[str, Any]:
    """Per currency what is spent, reserved, left of the budget, per item and projected; empty for other operations."""
    if now.batch.spec.operation != "call":
        return {}
    over, again = _findings(ledger, now.batch.spec.id)
    limit = dict(now.batch.limits.get("pay_again_limit") or {})
    codes = sorted({*now.currencies, *dict(now.batch.limits.get("budget") or {}), *again, *limit})
    return {code: _currency(now, code, over, again, limit, alone=len(codes) == 1) for code in codes}


def _currency(
    now: Status,
    code: str,
    over: Mapping[str, int],
    again: Mapping[str, list[int]],
    limit: Mapping[str, Any],
    *,
    alone: bool,
) -> dict[str, Any]:
    spent = now.minor(code, ItemState.COMMITTED)
    held = now.minor(code, ItemState.PENDING, ItemState.UNKNOWN)
    items = sum(t.items for t in now.tallies if t.state is ItemState.COMMITTED and t.currency == code)
    count, doubled = again.get(code, [0, 0])
    budget = budget_minor(now.batch, code)
    per_item = _WIDE.divide(Decimal(spent), Decimal(items)) if items else None
    projected = None
    if per_item is not None and alone:
        rest = _WIDE.multiply(per_item, Decimal(now.count(ItemState.PLANNED)))
        projected = spent + held + int(rest.to_integral_value(rounding=ROUND_HALF_EVEN))
    return {
        "spent": format_minor(spent, code),
        "reserved": format_minor(held, code),
        "left": None if budget is None else format_minor(budget - spent - held - doubled, code),
        "items": items,
        "per_item": None if per_item is None else _finer(per_item, code),
        "projected": None if projected is None else format_minor(projected, code),
        "over_reserve": over.get(code, 0),
        "paid_again": count,
        "paid_again_amount": format_minor(doubled, code),
        "pay_again_limit": format_minor(int(limit[code]), code) if code in limit else None,
    }


def _findings(ledger: Ledger, batch: str) -> tuple[dict[str, int], dict[str, list[int]]]:
    over: dict[str, int] = {}
    again: dict[str, list[int]] = {}
    for found in ledger.findings(batch):
        code = str(found.data.get("currency"))
        if "of" in found.data:
            continue  # a step of an earlier finding
        if found.kind == OVER_RESERVE:
            over[code] = over.get(code, 0) + 1
        elif found.kind == PAID_AGAIN:
            sums = again.setdefault(code, [0, 0])
            sums[0] += 1
            sums[1] += parse_minor(str(found.data["amount"]), code)
    return over, again


@dataclass(slots=True)
class Group:
    """Items with one value of a field, in one currency. ``exact`` is in major units, with every digit that was kept."""

    value: str
    currency: str
    items: int = 0
    billed: int = 0
    exact: Decimal = field(default_factory=Decimal)

    def as_json(self) -> dict[str, Any]:
        """The group in the JSON shape."""
        per_item = _WIDE.divide(Decimal(self.billed), Decimal(self.items))
        return {
            "value": self.value,
            "currency": self.currency,
            "items": self.items,
            "billed": format_minor(self.billed, self.currency),
            "exact": f"{self.exact:f}",
            "per_item": _finer(per_item, self.currency),
        }


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A batch's committed cost by the values of ``by``, the dearest first, and by currency in all."""

    batch: str
    by: str
    groups: tuple[Group, ...]
    totals: tuple[Group, ...]
    summary: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The JSON contract of ``payonce costs --json``."""
        return {
            "batch": self.batch,
            "by": self.by,
            "groups": [group.as_json() for group in self.groups],
            "totals": [group.as_json() for group in self.totals],
            "cost": dict(self.summary),
        }


def breakdown(ledger: Ledger, batch: str, *, by: str = USUAL) -> Breakdown:
    """The cost of a batch's committed items by a kept field, a column of the input, or target, state, day or code.

    Items without the field are one group with an empty value. Raises UsageError for an unknown batch.
    """
    find_batch(ledger, batch)
    groups: dict[tuple[str, str], Group] = {}
    totals: dict[str, Group] = {}
    for entry in outputs(ledger, batch):
        billed = entry.item.billed
        if entry.item.state is not ItemState.COMMITTED or billed is None:
            continue
        value = value_of(entry, by)
        exact = Decimal(str(entry.kept.get("$cost") or billed.text))
        here = groups.setdefault((value, billed.currency), Group(value, billed.currency))
        for group in (here, totals.setdefault(billed.currency, Group("", billed.currency))):
            group.items += 1
            group.billed += billed.minor
            group.exact = _WIDE.add(group.exact, exact)
    dearest = sorted(groups.values(), key=lambda group: (group.currency, -group.billed, group.value))
    return Breakdown(
        batch, by, tuple(dearest), tuple(totals[code] for code in sorted(totals)), summary(ledger, ledger.status(batch))
    )


def value_of(entry: Output, by: str) -> str:
    """What an item has in a field: kept of its answer, in its input, or of the item itself; empty where it has none."""
    for place in (entry.kept, entry.item.fields):
        if by in place and not by.startswith("$"):
            return str(place[by])
    match by:
        case "target":
            return entry.item.target
        case "state":
            return entry.item.state.value
        case "day":
            return iso(entry.item.updated_us)[:10]
        case "code":
            return entry.item.code or ""
        case _:
            return ""


def outputs(ledger: Ledger, batch: str) -> Iterator[Output]:
    """All items in input order with what their calls returned."""
    after = 0
    while True:
        page = ledger.outputs(batch, after_n=after, limit=_PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].item.n


def _finer(minor: Decimal, currency: str) -> str:
    """An average of minor units in major ones, with some decimals more than the currency has."""
    places = exponent(currency)
    return f"{minor.scaleb(-places).quantize(Decimal(1).scaleb(-places - _FINER), context=_WIDE):f}"
