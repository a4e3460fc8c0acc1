"""What a guarded call is about: the item and the promises around it, and what its body sees and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from payonce.core.errors import SealedError, UsageError
from payonce.core.keys import derive_key
from payonce.core.model import Declaration, Item, OpenIntent
from payonce.core.money import Money
from payonce.core.outcome import Executed, Outcome
from payonce.providers.python_operation import OperationSettings
from payonce.service.single_desk import MARGIN_US, ItemBusy, ItemRefused, ItemUnknown


@dataclass(slots=True)
class OnceCall:
    """What the body sees. ``done``: an earlier call executed it, ``reference`` is its; the body has nothing to do.

    Otherwise the body makes the call with ``key`` and reports one outcome: ``call.report(payonce.Executed(...))``, or
    for short ``call.executed("re_1")``.
    """

    item: Item
    key: str | None
    batch: str
    done: bool = False
    reference: str | None = None
    outcome: Outcome | None = None

    @property
    def money(self) -> Money | None:
        """The item's amount."""
        return self.item.money

    def report(self, outcome: Outcome) -> None:
        """What became of the call. Once; a second, different report is an error of the caller."""
        if self.done or (self.outcome is not None and self.outcome != outcome):
            raise UsageError(f"item {self.item.id} was reported already", code="reported_twice", hint="report once")
        self.outcome = outcome

    def executed(self, reference: str, *, billed: Money | None = None, **kept: Any) -> None:
        """The far side executed it: its reference, and what it billed if it says so."""
        self.report(Executed(reference, billed, kept=kept))
        self.reference = reference


@dataclass(frozen=True, slots=True)
class LookUpDue:
    """The body may not be entered before this item was looked up, which proves nothing before ``at_us``."""

    intent: OpenIntent
    at_us: int
    now_us: int


@dataclass(slots=True)
class Guarded:
    """What is guarded: an item of a batch, and what the far side promises."""

    batch: str
    item: str
    money: Money | None
    target: str | None
    fields: Mapping[str, Any]
    settings: OperationSettings
    declaration: Declaration
    namespace: str = "payonce"
    name: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.name = (self.batch, self.item)

    @property
    def lease_us(self) -> int:
        """How long a worker's lease must be for one more call."""
        return self.settings.timeout_us + MARGIN_US

    def key(self, item: Item) -> str | None:
        """The idempotency key of the item's present generation."""
        declared = self.declaration.key
        if declared is None:
            return None
        return derive_key(
            declared.format,
            namespace=self.namespace,
            batch=self.batch,
            operation=self.declaration.operation,
            step="call",
            item=item.id,
            generation=item.generation,
        )

    def compare(self, found: Item) -> None:
        """Refuses another amount or target than the item was added with."""
        if (found.money, found.target) != (self.money, self.target or self.item):
            raise SealedError(
                f"item {self.item} was {found.money} on {found.target}, now it is {self.money} on "
                f"{self.target or self.item}",
                code="item_changed",
                hint="an item never changes; use another item id for another payment",
            )

    def busy(self, why: str) -> ItemBusy:
        """The error for an item that others have."""
        return ItemBusy(f"item {self.item} is in work: {why}", code="item_busy", hint="enter again later")

    def unknown(self, code: str, message: str) -> ItemUnknown:
        """The error for an item that a person has to resolve."""
        return ItemUnknown(
            f"item {self.item} may have been executed ({code}: {message})",
            code="item_unknown",
            hint=f"find out, then payonce resolve {self.batch} {self.item} --as committed|refused|planned --reason ...",
        )

    def refused(self, item: Item) -> ItemRefused:
        """The error for an item that was refused or left out earlier."""
        return ItemRefused(
            f"item {self.item} is {item.state.value}: {item.code} {item.message or ''}",
            code=f"item_{item.state.value}",
            hint=f"payonce retry {self.batch} {self.item} --reason ... puts it back",
        )
