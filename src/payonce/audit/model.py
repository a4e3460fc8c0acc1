"""The two sides of an audit and what it gives. Frozen values, nothing that acts. Amounts are exact, times microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from payonce.core.money import Money


class Found(StrEnum):
    """How often an item was executed (SPEC section 11)."""

    EXACTLY_ONE = "exactly_one"
    NONE = "none"
    MORE_THAN_ONE = "more_than_one"
    WRONG_AMOUNT = "wrong_amount"


@dataclass(frozen=True, slots=True)
class Wish:
    """One item as it should have been executed, once."""

    item: str
    target: str
    money: Money | None


@dataclass(frozen=True, slots=True)
class Seen:
    """One execution that the provider shows, in its order (``place``). ``owns`` are references of ours that it carries,
    ``undone`` says that it was reversed or came back, ``pending`` that it is not final yet."""

    place: int
    reference: str
    money: Money
    owns: tuple[str, ...] = ()
    target: str | None = None
    at_us: int | None = None
    undone: bool = False
    pending: bool = False
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extra:
    """An execution too many of an item; ``kept`` is the one that stays."""

    item: str
    seen: Seen
    kept: str


@dataclass(frozen=True, slots=True)
class Stranger:
    """Executions that no item explains, together where they share a reference or, without one, a target."""

    name: str
    target: str | None
    count: int
    currency: str
    minor: int
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sorted:
    """The audit. Every item is in one class; every execution is kept, extra, wrong, undone or a stranger's.

    ``kept`` is the execution that counts for an item; for a wrong amount, the one with the wrong amount.
    """

    classes: Mapping[str, Found]
    kept: Mapping[str, Seen]
    extras: tuple[Extra, ...]
    strangers: tuple[Stranger, ...]
    undone: int

    def count(self, found: Found) -> int:
        """How many items are in a class."""
        return sum(kind is found for kind in self.classes.values())

    @property
    def clean(self) -> bool:
        """Whether every item was executed exactly once and nothing else was."""
        return not self.extras and not self.strangers and self.count(Found.EXACTLY_ONE) == len(self.classes)
