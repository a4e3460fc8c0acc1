"""The two sides of a reconciliation and what comparing them gives. Frozen values, nothing that acts.

Amounts are integer minor units with their currency; on the statement's side they are positive where money moved the way
the operation moves it (a refund of 10.00 is 1000, whatever sign the provider's report gives it). Times are microseconds
since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from payonce.core.money import Money
from payonce.core.states import ItemState, Settlement


class Kind(StrEnum):
    """The class of a finding (SPEC section 10). The value is its name in JSON, CSV and on the screen."""

    MATCHED = "matched"
    AMOUNT_MISMATCH = "amount_mismatch"
    CURRENCY_MISMATCH = "currency_mismatch"
    MISSING_AT_PROVIDER = "missing_at_provider"
    MISSING_IN_LEDGER = "missing_in_ledger"
    DUPLICATE = "duplicate"
    CREDIT_MISMATCH = "credit_mismatch"
    STATUS_MISMATCH = "status_mismatch"
    NOT_COVERED = "not_covered"

    @property
    def is_finding(self) -> bool:
        """Whether somebody has to look at it."""
        return self not in (Kind.MATCHED, Kind.NOT_COVERED)


class Proof(StrEnum):
    """What a statement proves about an item whose outcome the ledger does not know, or about its money later on."""

    EXECUTED = "executed"
    NOT_EXECUTED = "not_executed"
    FAILED = "failed"
    RETURNED = "returned"
    SETTLED = "settled"  # the money of a committed item arrived
    ELSEWHERE = "elsewhere"  # a planned item was executed by someone else: it must not be sent


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One item of the ledger's side. Its execution, if any, lies between ``earliest_us`` and ``latest_us``; None where
    nothing was ever sent. ``settled_us`` is when the ledger last learned something about it."""

    n: int
    item: str
    target: str
    state: ItemState
    settlement: Settlement = Settlement.NONE
    reference: str | None = None
    keys: tuple[str, ...] = ()
    asked: Money | None = None
    billed: Money | None = None
    earliest_us: int | None = None
    latest_us: int | None = None
    settled_us: int = 0
    generation: int = 0

    @property
    def committed(self) -> bool:
        """Whether the ledger says that the provider executed it."""
        return self.state is ItemState.COMMITTED

    @property
    def came_back(self) -> bool:
        """Whether the ledger knows that the money came back."""
        return self.settlement in (Settlement.RETURNED, Settlement.FAILED)

    @property
    def money(self) -> Money | None:
        """What it should have cost: the billed amount of a committed item, else the asked one."""
        return self.billed or self.asked


@dataclass(frozen=True, slots=True)
class Attached:
    """A row that belongs to an execution and is none itself: a fee, a leg of an exchange, a hold. Signed as reported."""

    role: str
    money: Money
    row: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Everything a statement says under one reference in one currency, netted.

    ``legs`` are the amounts of the single executions in the provider's order, ``waiting`` those of executions that were
    accepted and are not final, ``returned`` what came back (not negative). ``pending`` and ``failed`` say that there were rows that are no executions (yet, or for good). ``rows``
    name the rows, ``FILE:LINE`` or the line alone where there is one file; ``outside`` marks one out of the period. ``credits`` are wrong contributor credits: expected, found (major units), and the row.
    """

    place: int
    currency: str
    reference: str | None = None
    keys: tuple[str, ...] = ()
    owns: tuple[str, ...] = ()
    target: str | None = None
    legs: tuple[int, ...] = ()
    returned: int = 0
    pending: bool = False
    failed: bool = False
    at_us: int | None = None
    rows: tuple[str, ...] = ()
    attached: tuple[Attached, ...] = ()
    outside: bool = False
    credits: tuple[tuple[str, str, str], ...] = ()
    waiting: tuple[int, ...] = ()

    @property
    def executed(self) -> int:
        """The sum of the executions, in minor units."""
        return sum(self.legs)

    @property
    def net(self) -> int:
        """What was executed less what came back, in minor units."""
        return sum(self.legs) - self.returned


@dataclass(frozen=True, slots=True)
class Coverage:
    """When absence from the statement proves something: between ``from_us`` and ``to_us`` less ``lag_us``, in a
    complete statement. An execution shows at the latest ``lag_us`` after it happened. ``gaps`` are stretches between
    united files that none of them covers, and nothing after ``read_us`` is covered, whatever period somebody states."""

    from_us: int | None = None
    to_us: int | None = None
    lag_us: int = 0
    complete: bool = True
    gaps: tuple[tuple[int, int], ...] = ()
    read_us: int | None = None

    def proves_absence(self, earliest_us: int | None, latest_us: int | None) -> bool:
        """Whether something that happened between two times, at the latest, would surely be shown."""
        if not self.complete or self.from_us is None or self.to_us is None or earliest_us is None or latest_us is None:
            return False
        if any(latest_us >= start and earliest_us < end for start, end in self.gaps):
            return False
        end = self.to_us if self.read_us is None else min(self.to_us, self.read_us)
        return self.from_us <= earliest_us and latest_us <= end - self.lag_us


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One finding, or one item that is not covered. ``ledger`` and ``statement`` are both sides' net minor units in
    ``currency``; ``statement_currency`` differs from it only for a currency mismatch. ``count`` is how many executions
    it stands for, ``expected`` and ``found`` are the two credits of a credit mismatch."""

    kind: Kind
    item: str | None
    reference: str | None
    currency: str
    ledger: int = 0
    statement: int = 0
    statement_currency: str | None = None
    rows: tuple[str, ...] = ()
    note: str = ""
    count: int = 1
    state: str | None = None
    target: str | None = None
    suggestion: str | None = None
    expected: str | None = None
    found: str | None = None
    at_us: int | None = None
    attached: tuple[Attached, ...] = ()


@dataclass(frozen=True, slots=True)
class Proven:
    """What the statement proves about one item, with the entry that is the evidence (None: its absence)."""

    line: LedgerLine
    proof: Proof
    entry: Entry | None = None
    billed: Money | None = None


@dataclass(frozen=True, slots=True)
class Balance:
    """One currency's equation in minor units: ``ledger`` + the discrepancies' differences = ``statement``."""

    ledger: int = 0
    statement: int = 0
    explained: int = 0
    not_covered: int = 0

    @property
    def difference(self) -> int:
        """What the statement has more than the ledger."""
        return self.statement - self.ledger


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What comparing gave. ``counts`` counts every class, ``matched`` items included; ``discrepancies`` are the
    findings in the ledger's order, then the statement's; ``uncovered`` those about which the statement says nothing."""

    counts: Mapping[Kind, int]
    balance: Mapping[str, Balance]
    discrepancies: tuple[Discrepancy, ...] = ()
    uncovered: tuple[Discrepancy, ...] = ()
    proven: tuple[Proven, ...] = ()
    undecided: tuple[str, ...] = ()
    elsewhere: tuple[Entry, ...] = ()
    pairs: Mapping[str, int] = field(default_factory=dict)
    near_misses: Mapping[str, str] = field(default_factory=dict)
