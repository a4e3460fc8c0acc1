"""Which of the executions that a look-up shows are ours (SPEC section 6, point 2). Pure.

It must never take for ours what may be someone else's, nor for absent what may be ours.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from payonce.core.model import SECOND_US, Declaration, Item, OpenIntent
from payonce.core.outcome import Execution, Found

# How far a provider's clock may be behind ours before an execution counts as older than our first send.
CLOCK_TOLERANCE_US: Final = 60 * SECOND_US
# An execution under our reference this long before our first send cannot be ours, however wrong a clock may be.
LONG_BEFORE_US: Final = 3600 * SECOND_US


@dataclass(frozen=True, slots=True)
class Ours:
    """The provider shows our execution. ``extra`` are further ones of ours: each a duplicate."""

    execution: Execution
    extra: tuple[Execution, ...] = ()


@dataclass(frozen=True, slots=True)
class WrongAmount:
    """Ours, but over another amount than was asked: unknown, and the batch stops."""

    execution: Execution


@dataclass(frozen=True, slots=True)
class FailedAtProvider:
    """Ours, and the provider says that it failed for good."""

    execution: Execution


@dataclass(frozen=True, slots=True)
class SomeoneElses:
    """Executions exist that are neither ours nor committed to other items."""

    executions: tuple[Execution, ...]


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """There is an execution that cannot be told apart from ours."""

    execution: Execution


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing of ours was executed."""


Sighting = Ours | WrongAmount | FailedAtProvider | SomeoneElses | Ambiguous | Absent


def judge(
    found: Found,
    intent: OpenIntent,
    declaration: Declaration,
    *,
    claimed: Set[str],
    elsewhere: Set[str] = frozenset(),
) -> Sighting:
    """Which of the executions that a look-up shows are ours (SPEC section 6, point 2).

    ``claimed`` are the references committed to other items; ``elsewhere`` those of them whose items act on another
    target or at another provider. Such a reference may name two executions, so that one which would be ours but for
    its reference is Ambiguous, never Absent. Where the provider echoes our reference or key, only
    those count; else those surely after our first send (less a clock tolerance) that surely agree in amount and
    currency. What cannot be told apart, for want of a time or an amount, is Ambiguous.
    """
    free = tuple(e for e in found.executions if e.reference not in claimed)
    sighting = _judge_echoed(free, intent) if _echoes(declaration) else _judge_unmarked(free, intent)
    if not isinstance(sighting, Absent):
        return sighting
    doubtful = _doubtful(tuple(e for e in found.executions if e.reference in elsewhere), intent, declaration)
    if doubtful is not None:
        return Ambiguous(doubtful)
    living = tuple(e for e in free if not e.failed)
    return SomeoneElses(living) if living else Absent()


def _doubtful(named_twice: tuple[Execution, ...], intent: OpenIntent, declaration: Declaration) -> Execution | None:
    """The one that may be ours of executions whose references name others of the ledger too, if any. Without our mark
    another amount says that it is not."""
    echoes = _echoes(declaration)
    match _judge_echoed(named_twice, intent) if echoes else _judge_unmarked(named_twice, intent):
        case Ours(execution) | Ambiguous(execution):
            return execution
        case WrongAmount(execution) if echoes:
            return execution
        case _:
            return None


def _judge_echoed(free: tuple[Execution, ...], intent: OpenIntent) -> Sighting:
    """Ours are those that carry our reference or key, whatever their amount; one that failed before our first send was
    a try that was given up. One under our reference from long before our first send was made by someone else under
    the same number: a person has to look, and only where there is no later one."""
    carrying = tuple(e for e in free if _carries_ours(e, intent))
    ours = tuple(e for e in carrying if not _is_long_before(e, intent))
    before = tuple(e for e in carrying if e not in ours and not e.failed)
    if before and not any(not e.failed for e in ours):
        return Ambiguous(before[-1])
    living = tuple(e for e in ours if not e.failed)
    failed = tuple(e for e in ours if e.failed and _may_follow_first_send(e, intent))
    exact = next((e for e in living if _agrees(e, intent.item)), None)
    if exact is not None:
        return Ours(exact, tuple(e for e in living if e is not exact))
    if living:
        return WrongAmount(living[0])
    return FailedAtProvider(failed[0]) if failed else Absent()


def _judge_unmarked(free: tuple[Execution, ...], intent: OpenIntent) -> Sighting:
    """Ours are those after our first send with our amount. One without an amount may be ours; an undated one is taken
    for ours where it is the only one there is."""
    after = tuple(e for e in free if _may_follow_first_send(e, intent))
    living = tuple(e for e in after if not e.failed)
    sure = tuple(e for e in living if e.at_us is not None and _surely_agrees(e, intent.item))
    if sure:
        return Ours(sure[0], sure[1:])
    if len(living) == 1 and living[0].at_us is None and _surely_agrees(living[0], intent.item):
        return Ours(living[0])
    for execution in living:
        dated_otherwise = execution.at_us is not None and not _agrees(execution, intent.item)
        return WrongAmount(execution) if dated_otherwise else Ambiguous(execution)
    failed = tuple(e for e in after if e.failed and _agrees(e, intent.item))
    for execution in failed:
        certain = execution.at_us is not None and _surely_agrees(execution, intent.item)
        return FailedAtProvider(execution) if certain else Ambiguous(execution)
    return Absent()


def _echoes(declaration: Declaration) -> bool:
    lookup = declaration.lookup
    return lookup is not None and (lookup.own_reference or lookup.key)


def under_our_mark(found: Found, item: Item, *, key: str | None, claimed: Set[str]) -> tuple[Execution, ...]:
    """Executions that carry the item's own reference or key, did not fail and belong to no other item, whatever their
    amount and time."""
    return tuple(
        e
        for e in found.executions
        if not e.failed and e.reference not in claimed and _carries(e, item_id=item.id, key=key)
    )


def _carries_ours(execution: Execution, intent: OpenIntent) -> bool:
    return _carries(execution, item_id=intent.item.id, key=intent.key)


def _carries(execution: Execution, *, item_id: str, key: str | None) -> bool:
    if execution.own_reference is not None and execution.own_reference == item_id:
        return True
    return execution.key is not None and execution.key == key


def _is_long_before(execution: Execution, intent: OpenIntent) -> bool:
    if execution.at_us is None or intent.item.generation > 0:
        return False  # an earlier generation of this item may have executed it at any time
    if execution.key is not None and execution.key == intent.key:
        return False
    return execution.at_us < intent.first_sent_us - LONG_BEFORE_US


def _may_follow_first_send(execution: Execution, intent: OpenIntent) -> bool:
    return execution.at_us is None or execution.at_us >= intent.first_sent_us - CLOCK_TOLERANCE_US


def _agrees(execution: Execution, item: Item) -> bool:
    return execution.money is None or item.money is None or execution.money == item.money


def _surely_agrees(execution: Execution, item: Item) -> bool:
    return item.money is None or execution.money == item.money
