"""Reading provider's JSON without trusting it: exact numbers, no guesses. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payonce.core.decimals import Decimals, read, written
from payonce.core.errors import ConfigError, MoneyError
from payonce.core.model import Item
from payonce.core.money import Money, currency_code
from payonce.providers import answers_values as values


class Contradiction(Exception):
    """An answer that speaks of another call than the one it answers. ``reference`` is what it names."""

    def __init__(self, message: str, *, reference: str | None = None) -> None:
        super().__init__(message)
        self.reference = reference


class Unreadable(Exception):
    """An answer that lacks what an answer of its kind always has."""


def parse_object(body: bytes) -> dict[str, Any]:
    """A JSON object. Raises ValueError for anything else."""
    tree = values.parse(body)
    if not isinstance(tree, dict):
        raise ValueError("not a JSON object")
    return tree


def mapping(value: Any) -> Mapping[str, Any]:
    """The value, if it is a JSON object; an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def entries(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; raises Unreadable for anything but a list of objects."""
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise Unreadable("the answer has no list where one belongs")
    return value


def word(value: Any) -> str | None:
    """A text that is not empty, or None."""
    return value if isinstance(value, str) and value.strip() else None


def ident(tree: Mapping[str, Any], name: str = "id") -> str:
    """A reference. Raises Unreadable where there is none."""
    found = values.reference(tree.get(name))
    if found is None:
        raise Unreadable(f"the answer has no {name}")
    return found


def named(value: Any) -> str | None:
    """The id of a field that holds one, or the whole object with one."""
    return word(value) or word(mapping(value).get("id"))


def minor(amount: Any, currency: Any, decimals: Decimals) -> Money:
    """An amount in the provider's minor units. Raises Unreadable for what is not exactly one."""
    code = word(currency)
    if isinstance(amount, bool) or not isinstance(amount, int) or code is None:
        raise Unreadable("the answer states no exact amount with a currency")
    try:
        return read(amount, currency_code(code), decimals)
    except MoneyError as error:
        raise Unreadable(error.message) from error


def major(amount: Any, currency: Any) -> Money:
    """An amount in major units, as text. Raises Unreadable for what is not exactly one."""
    code = word(currency)
    if not isinstance(amount, str) or code is None:
        raise Unreadable("the answer states no exact amount with a currency")
    try:
        return values.amount(amount, unit="major", currency=code)
    except ValueError as error:
        raise Unreadable(str(error)) from error


def agrees(what: str, told: str | None, *, asked: str, reference: str | None) -> None:
    """Raises Contradiction where an answer tells something else than was asked; what it does not tell is no matter."""
    if told is not None and told != asked:
        raise Contradiction(f"asked for {what} {asked}, the answer is about {told}", reference=reference)


def units(item: Item, decimals: Decimals) -> int:
    """The item's amount in the provider's minor units. Raises ConfigError for one that it cannot write."""
    money = asked(item)
    try:
        return written(money, decimals)
    except MoneyError as error:
        raise ConfigError(f"item {item.id}: {error.message}", code=error.code, hint=error.hint) from error


def asked(item: Item) -> Money:
    """The item's amount. Raises ConfigError for an item without one: nothing is sent without an amount."""
    if item.money is None:
        raise ConfigError(f"item {item.id} has no amount", code="amount_missing", hint="map [item] amount and currency")
    return item.money
