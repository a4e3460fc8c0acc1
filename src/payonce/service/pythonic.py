"""Batches from Python: items of several shapes, checked and sealed, and runs around a callable.

The checks are those of an input file (SPEC section 8): every problem is reported together and nothing is sent while
one is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from payonce.core.errors import ConfigError, InputError, MoneyError, Problem, UsageError
from payonce.core.model import NewItem
from payonce.core.money import Money, currency_code

_NAMES: Final = frozenset({"id", "money", "amount", "amount_minor", "currency", "target"})
_CONTROL: Final = re.compile(r"[\x00-\x1f\ud800-\udfff]")
# So many problems are named in the error's text.
_NAMED: Final = 3
ItemLike = NewItem | Mapping[str, Any] | tuple[str, Money]


@dataclass(frozen=True, slots=True)
class Checked:
    """Items that may be sealed, in order."""

    items: tuple[NewItem, ...]
    targets: bool


def check_items(items: Iterable[ItemLike], *, needs_money: bool, max_amount: Mapping[str, int]) -> Checked:
    """Turns what a caller gives into validated items.

    Accepted: ``payonce.Item``, ``(id, Money)``, and mappings with ``id`` and ``money``, or ``amount`` (text or Decimal,
    major units) or ``amount_minor`` (int) with ``currency``; further entries are fields. Raises InputError with every
    problem; ``line`` is the item's place, from 1.
    """
    good: list[NewItem] = []
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for place, given in enumerate(items, 1):
        try:
            item = _item(given)
            _check(item, needs_money=needs_money, max_amount=max_amount)
        except (MoneyError, UsageError, ConfigError) as fault:
            problems.append(Problem("items", place, None, repr(given)[:80], fault.code, fault.message))
            continue
        if item.id in seen:
            text = f"id {item.id!r} is at places {seen[item.id]} and {place}"
            problems.append(Problem("items", place, "id", item.id, "duplicate_id", text))
            continue
        seen[item.id] = place
        good.append(item)
    if problems:
        first = "; ".join(f"item {problem.line}: {problem.message}" for problem in problems[:_NAMED])
        more = ", and so on (all are in problems)" if len(problems) > _NAMED else ""
        raise InputError(
            f"{len(problems)} of the items cannot be used, nothing was sealed: {first}{more}",
            problems=tuple(problems),
            hint="correct every item that is named",
        )
    if not good:
        raise InputError("there are no items", problems=(), code="no_items", hint="pass at least one item")
    return Checked(tuple(good), any(i.target is not None and i.target != i.id for i in good))


def check_item(item: NewItem, *, needs_money: bool) -> None:
    """The same checks for one item, without a list around it."""
    try:
        _check(item, needs_money=needs_money, max_amount={})
    except (MoneyError, UsageError, ConfigError):
        check_items([item], needs_money=needs_money, max_amount={})


def _item(given: Any) -> NewItem:
    if isinstance(given, NewItem):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return NewItem(given[0], given[1])
    if isinstance(given, Mapping):
        return _from_mapping(given)
    kind = type(given).__name__
    raise UsageError(
        f"an item cannot be a {kind}", code="bad_item", hint='pass {"id": ..., "amount": ..., "currency": ...}'
    )


def _from_mapping(given: Mapping[str, Any]) -> NewItem:
    if "id" not in given:
        raise UsageError("an item has no id", code="missing_id", hint='{"id": "r-17", ...}')
    money = given.get("money")
    if money is None and "amount_minor" in given:
        money = Money.of_minor(given["amount_minor"], currency_code(str(given.get("currency", ""))))
    elif money is None and "amount" in given:
        money = Money(given["amount"], str(given.get("currency", "")))
    fields = {str(k): _plain(v) for k, v in given.items() if k not in _NAMES}
    return NewItem(given["id"], money, target=given.get("target"), fields=fields)


def _plain(value: Any) -> Any:
    """A field as JSON can hold it exactly."""
    return format(value, "f") if isinstance(value, Decimal) else value


def _check(item: NewItem, *, needs_money: bool, max_amount: Mapping[str, int]) -> None:
    for name, text in (("id", item.id), ("target", item.target)):
        if text is not None:
            _check_name(name, text)
    if item.money is None:
        if needs_money:
            raise UsageError(
                f"item {item.id!r} has no amount", code="missing_amount", hint="an amount is never guessed"
            )
        return
    if not isinstance(item.money, Money):
        raise UsageError(
            f"item {item.id!r}: money must be payonce.Money", code="bad_amount", hint='Money("1.00", "USD")'
        )
    if item.money.minor <= 0:
        raise UsageError(f"item {item.id!r}: {item.money} is not above zero", code="not_positive", hint="leave it out")
    limit = max_amount.get(item.money.currency)
    if limit is not None and item.money.minor > limit:
        allowed = Money.of_minor(limit, item.money.currency)
        raise UsageError(
            f"item {item.id!r}: {item.money} is over {allowed}", code="over_limit", hint="check the amount"
        )


def _check_name(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise UsageError(f"{name} must be text, not {type(text).__name__}", code="bad_id", hint="ids are opaque text")
    if not text or text != text.strip() or len(text) > 512:
        raise UsageError(f"{name} {text[:40]!r} is empty, padded or over 512 characters", code="bad_id", hint="trim it")
    if _CONTROL.search(text):
        raise UsageError(f"{name} {text[:40]!r} has a control character", code="bad_id", hint="take it out")
