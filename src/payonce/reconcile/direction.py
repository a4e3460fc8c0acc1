"""Which way money went: amounts get the operation's sign, so that an execution is positive and what came back is not.

The sign of executions is the layout's, declared, or proven by the whole file. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from payonce.core.money import Money
from payonce.reconcile.errors import refuse
from payonce.reconcile.layout import Amount, Role
from payonce.reconcile.row import Row


def signed(used: list[Row], amount: Amount, operation: str, *, file: str) -> list[Row]:
    """Gives amounts the operation's sign; rows that move money back become reversals."""
    direction = amount.outflow if operation != "invoice" or amount.outflow is None else 1
    if amount.unsigned:
        return [_absolute(row) for row in used]
    if direction is None:
        direction = _proven_direction(used, operation, file=file)
    return [_directed(row, direction) for row in used]


def _absolute(row: Row) -> Row:
    sign = -1 if row.role is Role.REVERSAL else 1
    return replace(row, money=Money.of_minor(sign * abs(row.money.minor), row.money.currency))


def _directed(row: Row, direction: int) -> Row:
    if row.role not in (Role.EXECUTION, Role.REVERSAL):
        return row
    minor = row.money.minor * direction
    role = Role.REVERSAL if minor < 0 else row.role
    # A reversal that the report shows with the execution's own sign still takes the money back.
    minor = -abs(minor) if role is Role.REVERSAL else minor
    return replace(row, role=role, money=Money.of_minor(minor, row.money.currency))


def _proven_direction(used: Sequence[Row], operation: str, *, file: str) -> int:
    """Which sign executions have, where nobody declared it: that of the first row under each reference, if all agree."""
    first: dict[str, int] = {}
    for row in used:
        if row.role is Role.EXECUTION and row.money.minor:
            name = row.reference or next(iter((*row.keys, *row.owns)), "") or f"#{row.line}"
            first.setdefault(name, 1 if row.money.minor > 0 else -1)
    signs = set(first.values())
    if len(signs) > 1:
        refuse(
            f"{file} has amounts of both signs and nothing tells which are the {operation}s",
            code="ambiguous_sign",
            hint='declare it: [statement] sign = "negative" where money leaving is negative, or name the type column',
            file=file,
        )
    return signs.pop() if signs else 1
