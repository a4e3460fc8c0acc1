"""Rows to entries: rows of one reference are netted.

A row is used once. Equal rows are counted and never merged. Fees, exchange legs
and holds stay with the execution that they belong to and are part of no amount that is compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from payonce.reconcile.layout import Role, Standing
from payonce.reconcile.model import Attached, Entry
from payonce.reconcile.row import Row

# Before the files' first row, and after their last.
_FIRST = -(2**62)
_LAST = 2**62
_BESIDE = (Role.FEE, Role.FX, Role.HOLD)


@dataclass(slots=True)
class _Group:
    """The rows of one reference in one currency while they are collected."""

    place: int
    executions: list[tuple[str, Row]] = field(default_factory=list)
    reversals: list[tuple[str, Row]] = field(default_factory=list)
    waiting: list[tuple[str, Row]] = field(default_factory=list)
    beside: list[tuple[str, Row]] = field(default_factory=list)


GroupKey = tuple[str, str, bool]


@dataclass(frozen=True, slots=True)
class Netted:
    """The entries in the provider's order, and rows beside them that belong to none (a fee of the account)."""

    entries: list[Entry]
    loose: list[tuple[str, Row]]


def net(rows: Sequence[tuple[str, Row]], *, from_us: int | None = None, to_us: int | None = None) -> Netted:
    """The entries of some rows. Those out of the period ``[from_us, to_us)`` become entries of their own, marked."""
    start, end = _FIRST if from_us is None else from_us, _LAST if to_us is None else to_us
    executed = {row.reference for _, row in rows if row.role is Role.EXECUTION and row.reference}
    groups: dict[GroupKey, _Group] = {}
    loose: list[tuple[str, Row]] = []
    beside: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    for place, (name, row) in enumerate(rows):
        owner = _owner(row, executed)
        if row.role in _BESIDE:
            (beside[owner] if owner in executed else loose).append((name, row))
            continue
        outside = row.moment is not None and not start <= row.moment.at_us < end
        group = groups.setdefault((owner or f"\0{place}", row.money.currency, outside), _Group(place))
        if row.standing is not Standing.DONE:
            group.waiting.append((name, row))
        elif row.role is Role.REVERSAL:
            group.reversals.append((name, row))
        else:
            group.executions.append((name, row))
    for (owner, _, _), group in groups.items():
        group.beside = beside.pop(owner, [])
    entries = [_entry(key, group) for key, group in groups.items()]
    entries.sort(key=lambda entry: (entry.outside, entry.at_us if entry.at_us is not None else _LAST, entry.place))
    return Netted(entries, loose)


def _owner(row: Row, executed: set[str]) -> str:
    """Under which name a row is netted: its reference, the execution that it points at, its key, or its own reference."""
    if row.parent in executed and row.reference not in executed and row.role is not Role.EXECUTION:
        return row.parent
    return row.reference or next(iter((*row.keys, *row.owns)), "")


def _entry(key: GroupKey, group: _Group) -> Entry:
    _, currency, outside = key
    executions = sorted(group.executions, key=lambda named: _at(named[1]))
    legs = [row.money.minor for _, row in executions]
    returned = -sum(row.money.minor for _, row in group.reversals)
    failed = [row for _, row in group.waiting if row.standing is Standing.FAILED]
    if legs and failed and max(map(_at, failed)) >= max(_at(row) for _, row in executions):
        # It was booked as done and then failed: the money came back.
        returned += sum(abs(row.money.minor) for row in failed)
    named = [*executions, *group.reversals, *group.waiting]
    rows = [row for _, row in named]
    times = [row.moment.at_us for row in rows if row.moment is not None]
    return Entry(
        place=group.place,
        currency=currency,
        reference=next((row.reference for row in rows if row.reference and row.role is not Role.REVERSAL), None)
        or next((row.reference for row in rows if row.reference), None),
        keys=tuple(dict.fromkeys(key for row in rows for key in row.keys)),
        owns=tuple(dict.fromkeys(own for row in rows for own in row.owns)),
        target=next((row.target for row in rows if row.target), None),
        legs=tuple(legs),
        returned=max(returned, 0),
        pending=any(row.standing is Standing.PENDING for _, row in group.waiting),
        failed=bool(failed),
        at_us=min(times) if times else None,
        rows=tuple(name for name, _ in named),
        attached=tuple(Attached(row.role.value, row.money, name) for name, row in group.beside),
        outside=outside,
        credits=tuple(
            (row.credit.expected, row.credit.found, name) for name, row in executions if row.credit is not None
        ),
        # A row that was pending and is done in another row of the same reference is one execution.
        waiting=tuple(
            abs(row.money.minor)
            for _, row in group.waiting
            if row.standing is Standing.PENDING and row.role is Role.EXECUTION and not legs and not failed
        ),
    )


def _at(row: Row) -> int:
    return row.moment.at_us if row.moment is not None else _FIRST
