"""The ways in which a simulated provider can misbehave, and when each is to happen.

A fault is data: what goes wrong (`kind` and its parameters) and for which calls (`when`). Nothing here acts; the
world does. Every kind says whether the operation is executed, because that is what a client must not guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Kind(StrEnum):
    """Every fault, with what happens to the operation."""

    OK = "ok"  # nothing goes wrong; "execute" and "replay" are other names of it in a script
    UNREACHABLE = "unreachable"  # not executed; in process: no byte was sent. Over HTTP: as reset_before
    RESET_BEFORE = "reset_before"  # not executed, connection reset
    CLOSE_BEFORE = "close_before"  # not executed, connection closed without an answer
    HANG = "hang"  # not executed, never answered
    STOP_401 = "stop_401"  # not executed, 401
    RATE_LIMITED = "rate_limited"  # not executed, 429
    LOCK_TIMEOUT = "lock_timeout"  # not executed, 429 with code lock_timeout
    ERROR_500_BEFORE = "error_500_before"  # not executed, 500 (stored under the key, where errors are)
    REFUSE = "refuse"  # not executed, the given status and code
    ALREADY_REFUNDED = "already_refunded"  # not executed, 400 charge_already_refunded
    ERROR_500_AFTER = "error_500_after"  # executed, 500 (stored under the key, where errors are)
    RESET_AFTER = "reset_after"  # executed, connection reset
    CLOSE_AFTER = "close_after"  # executed, connection closed without an answer
    SILENT_AFTER = "silent_after"  # executed, never answered
    CUT_AFTER = "cut_after"  # executed, half of the answer, then the connection closes
    GARBAGE = "garbage"  # executed, 200 with a body that is no JSON
    TRICKLE = "trickle"  # executed, the head of the answer at once, its body piece by piece over `after`
    ERROR_IN_200 = "error_in_200"  # not executed, 200 with an error in its body
    HUGE = "huge"  # executed, 200 with a body of `size` bytes
    ODD_SUCCESS = "odd_success"  # executed, a 2xx that nobody expected: 204 empty, or an unknown shape
    OTHER_AMOUNT = "other_amount"  # executes `delta` minor units more than asked, and says so
    WRONG_CREDIT = "wrong_credit"  # executed; the statement credits the contributor `delta` too much
    SLOW = "slow"  # executed after `after`, then answered
    LATE_EXECUTION = "late_execution"  # connection reset now, executed `after` later
    ACCEPTED_202 = "accepted_202"  # 202 now, executed `after` later


On = Literal["writes", "reads", "all"]


@dataclass(frozen=True, slots=True)
class When:
    """Which calls a fault applies to: those that meet every condition that is set (None: not set).

    `first` counts the calls of the whole world, `nth` those of one item, both from 1; `start_us` and `length_us` are
    measured from the world's start. `probability` is drawn per call from the world's seed.
    """

    on: On = "writes"
    probability: float | None = None
    items: frozenset[str] | None = None
    operations: frozenset[str] | None = None
    first: int | None = None
    nth: int | None = None
    start_us: int | None = None
    length_us: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its kind, the kind's parameters (the others are ignored) and when it happens."""

    kind: Kind
    after_us: int = 50_000
    status: int = 400
    code: str = "refused"
    message: str = ""
    delta: int = 1
    shape: str = "empty"
    size: int = 8_388_608
    retry_after_us: int | None = None
    retry_as: str = "seconds"
    when: When = When()


# What a fault does when it is met, in the order in which a request passes the provider's layers.
BEFORE_THE_KEY = frozenset(
    {
        Kind.UNREACHABLE,
        Kind.RESET_BEFORE,
        Kind.CLOSE_BEFORE,
        Kind.HANG,
        Kind.STOP_401,
        Kind.RATE_LIMITED,
        Kind.LOCK_TIMEOUT,
    }
)
"""Met before the idempotency layer: a call that repeats a key meets them too, and nothing is stored."""

INSTEAD_OF_EXECUTING = frozenset({Kind.ERROR_500_BEFORE, Kind.REFUSE, Kind.ALREADY_REFUNDED, Kind.ERROR_IN_200})
"""Met in place of the execution."""

DELAYED = frozenset({Kind.SLOW, Kind.LATE_EXECUTION, Kind.ACCEPTED_202})
"""The execution comes later than the call."""

DELIVERY = frozenset({Kind.RESET_AFTER, Kind.CLOSE_AFTER, Kind.SILENT_AFTER, Kind.CUT_AFTER, Kind.GARBAGE, Kind.HUGE})
"""The answer is lost or spoilt on its way: true for a replayed answer as well."""
