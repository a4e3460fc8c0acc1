"""What one row of a statement means, and what one file gives. Frozen values, nothing that acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from payonce.core.money import Money
from payonce.intake.report import Ignored
from payonce.reconcile.credits import CreditFault
from payonce.reconcile.layout import Role, Standing
from payonce.reconcile.times import Moment


@dataclass(frozen=True, slots=True)
class Row:
    """One used row. ``minor`` is positive where money moved the operation's way, and signed as reported for rows that
    are no executions. ``identity`` is the row's text: equal rows of two files may be one row exported twice."""

    line: int
    role: Role
    standing: Standing
    reference: str
    parent: str
    keys: tuple[str, ...]
    owns: tuple[str, ...]
    target: str
    money: Money
    moment: Moment | None
    identity: tuple[str, ...]
    credit: CreditFault | None = None


class Told(NamedTuple):
    """What one row says, whatever its role: its text, its plain amount, the provider's reference if it has one, its time."""

    text: tuple[str, ...]
    currency: str
    minor: int
    reference: str
    moment: Moment | None


@dataclass(frozen=True, slots=True)
class Rows:
    """What one file gives. ``net`` is the plain sum of all its amounts by currency, whatever their role; ``told`` is what each
    of these rows says."""

    file: str
    digest: str
    layout: str
    count: int
    used: tuple[Row, ...]
    ignored: tuple[Ignored, ...]
    net: Mapping[str, int]
    accounts: frozenset[str] = frozenset()
    moments: tuple[int, int] | None = None
    declared: Mapping[str, str] = field(default_factory=dict)
    has_reference: bool = False
    told: Sequence[Told] = ()
