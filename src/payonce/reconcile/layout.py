"""How one kind of report says what payonce needs to know: which column is what, and what its words mean. Data only.

Columns are named, never counted. A word that no layout knows is not guessed: a status nobody knows is not final, a type
nobody knows is no execution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from payonce.core.decimals import Decimals


class Role(StrEnum):
    """What a row is to the operation that is being reconciled."""

    EXECUTION = "execution"
    REVERSAL = "reversal"
    FEE = "fee"
    FX = "fx"
    HOLD = "hold"
    OTHER = "other"


class Standing(StrEnum):
    """How final a row is. Only what is done moved money."""

    DONE = "done"
    PENDING = "pending"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Amount:
    """Where a row's amount is: one signed column, a column for each side, or an unsigned one beside its side.

    ``unit`` is that of the text, ``decimals`` the provider's own where its minor units are not ISO's. ``outflow`` is the
    sign that money leaving has in a signed column: -1 in accounts, +1 where amounts are those of the operation; None: the
    file proves it. ``unsigned``: the role alone gives the sign.
    """

    column: str
    credit: str | None = None
    side: str | None = None
    unit: Literal["major", "minor"] = "major"
    decimals: Decimals = field(default_factory=dict)
    outflow: int | None = -1
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Credit:
    """Where a row's contributor credit is: ``official`` price times the multiplier (a constant, or a column's value,
    translated by ``table`` where there is one). ``decimals`` None: the credit is the exact product, never rounded."""

    official: str
    credit: str
    multiplier: str | None = None
    constant: str | None = None
    table: Mapping[str, str] = field(default_factory=dict)
    decimals: int | None = None
    rounding: str = "half_even"


@dataclass(frozen=True, slots=True)
class Layout:
    """One report. ``needs`` are the columns that tell it; of several columns for one fact the first filled one counts.

    ``types`` gives the role of each word of the ``type`` column for an operation; ``own_prefix`` are metadata columns
    named after their key. ``adds_up`` are two columns (fee, net) that give gross -/+ fee = net, with the fee's sign.
    """

    name: str
    needs: tuple[str, ...]
    amount: Amount
    reference: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    own_prefix: str | None = None
    target: tuple[str, ...] = ()
    parent: str | None = None
    currency: str | None = None
    currency_value: str | None = None
    fee: str | None = None
    net: str | None = None
    fee_sign: int = -1
    time: tuple[str, ...] = ()
    time_format: str | None = None
    zone: str | None = None
    zone_column: str | None = None
    account: str | None = None
    type: str | None = None
    types: Mapping[str, Mapping[str, Role]] = field(default_factory=dict)
    strict_types: bool = False
    status: str | None = None
    statuses: Mapping[str, Standing] = field(default_factory=dict)
    row_type: str | None = None
    body: frozenset[str] = frozenset()
    counts: Mapping[str, str] = field(default_factory=dict)
    decimal: str | None = None
    thousands: str | None = None
    operations: frozenset[str] | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    lag_us: int = 0
    credit: Credit | None = None
    rounding: str | None = None
    tolerant: bool = False

    def roles(self, operation: str) -> Mapping[str, Role] | None:
        """The roles of the types' words for an operation; None where the report cannot show it at all."""
        if self.operations is not None and operation not in self.operations:
            return None
        return self.types.get(operation, self.types.get("*", {}))


def role_table(
    *, executions: str, reversals: str = "", fees: str = "", fx: str = "", holds: str = "", separator: str = ","
) -> dict[str, Role]:
    """Words in lower case to roles; each argument is a list of words."""
    table: dict[str, Role] = {}
    for words, role in ((executions, Role.EXECUTION), (reversals, Role.REVERSAL), (fees, Role.FEE), (fx, Role.FX),
                        (holds, Role.HOLD)):  # fmt: skip
        table.update({word.strip().lower(): role for word in words.split(separator) if word.strip()})
    return table


def status_table(*, done: str, failed: str = "", pending: str = "") -> dict[str, Standing]:
    """Words in lower case to standings; each argument is a list of words."""
    table: dict[str, Standing] = {}
    for words, standing in ((done, Standing.DONE), (failed, Standing.FAILED), (pending, Standing.PENDING)):
        table.update({word.strip().lower(): standing for word in words.split(",") if word.strip()})
    return table
