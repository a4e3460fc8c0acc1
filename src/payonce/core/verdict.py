"""What a decision says: the verdict on an answer, and the next move for a pending item. Values, nothing that decides."""

from __future__ import annotations

from dataclasses import dataclass

from payonce.core.outcome import Executed
from payonce.core.values import value

# What an answer or a look-up means for an item


@value
class Commit:
    """Executed: record it. ``mismatch`` where another amount was billed than was asked: the batch stops."""

    executed: Executed
    mismatch: str | None = None


@dataclass(frozen=True, slots=True)
class NextStep:
    """One of several calls is done; the next is due."""

    executed: Executed


@dataclass(frozen=True, slots=True)
class Refuse:
    """A definite no."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class PlanAgain:
    """Surely not executed: back to planned. ``new_generation`` only where proof allows another key.

    ``spends``: it uses up one attempt; not where the call's answer has used it up already."""

    code: str
    message: str
    load: bool = False
    retry_after_us: int | None = None
    new_generation: bool = False
    spends: bool = True


@dataclass(frozen=True, slots=True)
class Doubt:
    """May have been executed: it stays pending and is resolved. ``spends``: it uses up one attempt."""

    code: str
    message: str
    spends: bool = True
    load: bool = False
    burnt: bool = False
    final: bool = False
    in_progress: bool = False
    already_done: bool = False
    retry_after_us: int | None = None


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No rule decides it: unknown, for a statement or a person.

    ``mismatch`` where another amount was executed than was asked, by ``executed``: the batch stops as well."""

    code: str
    message: str
    mismatch: str | None = None
    executed: Executed | None = None


@dataclass(frozen=True, slots=True)
class PayAgain:
    """No rule decides it, and the batch's policy is to pay for it once more, within a limit that the ledger keeps."""

    code: str
    message: str
    spends: bool = True


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """The provider shows that someone else did it: skipped, and flagged with the executions that are there."""

    code: str
    message: str
    references: tuple[str, ...]


Verdict = Commit | NextStep | Refuse | PlanAgain | Doubt | GiveUp | PayAgain | LeaveOut


# How a pending item is resolved


@dataclass(frozen=True, slots=True)
class SendNext:
    """The step of a pending item that has had no intent yet: send it."""

    at_us: int


@dataclass(frozen=True, slots=True)
class SendAgain:
    """Send the same key and the same bytes, not before ``at_us``."""

    at_us: int


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask the provider, not before ``at_us``: earlier an execution might not show yet, or still begin."""

    at_us: int


Move = SendNext | SendAgain | LookUp | GiveUp
