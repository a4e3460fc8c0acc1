"""What truly happened at the simulated provider: every call that arrived, every execution. The auditor's only source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from payonce.core.money import Money

SEPARATOR = "\x1f"


@dataclass(slots=True, eq=False)
class Call:
    """One request that was handed to the network, as its bytes say."""

    number: int
    process: Any
    item: str
    step: int
    money: Money
    target: str
    key: str | None
    body: bytes
    sent_us: int
    deadline_us: int
    answer: Callable[[Any], None]
    works: bool = False
    waits: bool = True


@dataclass(frozen=True, slots=True)
class Effect:
    """One execution. ``call`` is the number of the request that caused it, 0 for someone else's."""

    reference: str
    call: int
    item: str
    step: int
    money: Money
    target: str
    key: str | None
    at_us: int


@dataclass(slots=True)
class Books:
    """All executions, by what they act on and by whose they are."""

    on_target: dict[str, list[Effect]] = field(default_factory=dict)
    of_item: dict[tuple[str, int], list[Effect]] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    count: int = 0

    def execute(self, call: Call, *, money: Money, at_us: int) -> Effect:
        """Money moves."""
        self.count += 1
        reference = f"e{self.count}"
        effect = Effect(reference, call.number, call.item, call.step, money, call.target, call.key, at_us)
        self.on_target.setdefault(call.target, []).append(effect)
        self.of_item.setdefault((call.item, call.step), []).append(effect)
        self.spent[money.currency] = self.spent.get(money.currency, 0) + money.minor
        return effect

    def add_foreign(self, target: str, *, money: Money, at_us: int) -> None:
        """Somebody else did something on a target before."""
        self.count += 1
        effect = Effect(f"e{self.count}", 0, "somebody-else", 0, money, target, None, at_us)
        self.on_target.setdefault(target, []).append(effect)

    def effects(self, item: str, *, steps: int) -> list[Effect]:
        """All executions for one item, over all its steps."""
        return [effect for step in range(steps) for effect in self.of_item.get((item, step), ())]


def encode(item: str, *, step: int, money: Money, target: str) -> bytes:
    """The body of a request: what the provider is asked to do."""
    return SEPARATOR.join((item, str(step), str(money.minor), money.currency, target)).encode()


def decode(body: bytes) -> tuple[str, int, Money, str]:
    """The inverse of ``encode``."""
    item, step, minor, currency, target = body.decode().split(SEPARATOR)
    return item, int(step), Money.of_minor(int(minor), currency), target
