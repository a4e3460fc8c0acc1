"""The decisions: what an answer means for an item, and how a pending item is resolved (SPEC sections 4 and 6).

Pure functions over values. The engine executes what they return and decides nothing itself, so that a run, a restart
after a crash and the simulator all go through exactly this code.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Final, assert_never

from payonce.core.model import SECOND_US, Declaration, Item, OpenIntent
from payonce.core.outcome import (
    AlreadyDone,
    Executed,
    Execution,
    Found,
    NotExecuted,
    Outcome,
    Refused,
    Stop,
    Unresolved,
)

# How far a provider's clock may be behind ours before an execution counts as older than our first send.
CLOCK_TOLERANCE_US: Final = 60 * SECOND_US


# What an answer means


@dataclass(frozen=True, slots=True)
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
    """Surely not executed: back to planned. ``new_generation`` only where proof allows another key."""

    code: str
    message: str
    load: bool = False
    retry_after_us: int | None = None
    new_generation: bool = False


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
    """No rule decides it: unknown, for a statement or a person."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """The provider shows that someone else did it: skipped, and flagged with the executions that are there."""

    code: str
    message: str
    references: tuple[str, ...]


Verdict = Commit | NextStep | Refuse | PlanAgain | Doubt | GiveUp | LeaveOut


def after_reply(  # one answer, one verdict
    outcome: Outcome,
    *,
    item: Item,
    declaration: Declaration,
    resend: bool,
    replayed: bool,
    attempts: int,
) -> Verdict:
    """What an answer means for its item.

    ``resend``: an earlier call under this key may have been executed and was not proven absent by a look-up; an answer
    that speaks only of the call itself (429, a refusal that is not a replay) then decides nothing about the first.
    ``attempts`` is the limit of calls that count.
    """
    doubt = resend and declaration.lookup is None
    match outcome:
        case Executed():
            if item.step + 1 < len(declaration.steps):
                return NextStep(outcome)
            return Commit(outcome, mismatch=_mismatch(item, outcome))
        case Refused(code, message):
            if doubt and not replayed:
                return GiveUp("refused_after_unresolved", f"{code}: {message}")
            return Refuse(code, message)
        case NotExecuted(code, message, load, retry_after_us):
            if doubt:
                return Doubt(code, message, spends=not load, load=load, retry_after_us=retry_after_us)
            if not load and item.spent + 1 >= attempts:
                return Refuse("attempts_exhausted", f"{code}: {message}")
            return PlanAgain(code, message, load=load, retry_after_us=retry_after_us)
        case Unresolved():
            return Doubt(
                outcome.code,
                outcome.message,
                spends=not outcome.in_progress,
                burnt=outcome.burnt,
                final=outcome.final,
                in_progress=outcome.in_progress,
                retry_after_us=outcome.retry_after_us,
            )
        case AlreadyDone(code, message):
            if declaration.lookup is None:
                return GiveUp("already_done_unverified", f"{code}: {message}")
            return Doubt(code, message, already_done=True)
        case Stop(code, message, executed):
            if executed or doubt:
                return Doubt(code, message, spends=False)
            return PlanAgain(code, message, load=True)
        case _:
            assert_never(outcome)


def _mismatch(item: Item, executed: Executed) -> str | None:
    """The class of discrepancy between what was asked and what was billed, if any."""
    if executed.billed is None or item.money is None or executed.billed == item.money:
        return None
    return "currency_mismatch" if executed.billed.currency != item.money.currency else "amount_mismatch"


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


def key_is_usable(intent: OpenIntent, declaration: Declaration, *, now_us: int) -> bool:
    """Whether the key may be sent again: keys are promised, it is not burnt, and its window is still open."""
    if declaration.key is None or intent.key is None or intent.burnt or intent.final:
        return False
    window = declaration.key.window_us
    return window is None or now_us < intent.first_sent_us + window


def quiet_from(intent: OpenIntent, declaration: Declaration) -> int:
    """From when a look-up proves something: no call can start executing any more and every execution shows.

    A call left between ``sent_us`` and ``send_by_us``; where its answer or error was seen, before that was seen.
    """
    lag = declaration.lookup.lag_us if declaration.lookup else 0
    if intent.already_done and intent.seen_us is not None:
        return intent.seen_us + lag
    if intent.seen_us is not None:
        return min(intent.seen_us, intent.send_by_us) + declaration.max_execution_us + lag
    return max(intent.send_by_us + declaration.max_execution_us + lag, intent.deadline_us)


def next_move(intent: OpenIntent, declaration: Declaration, *, attempts: int, now_us: int) -> Move:
    """The next step in resolving a pending item, in the order of SPEC section 6: look-up, then key, then a person."""
    if not intent.intent:
        return SendNext(max(now_us, intent.retry_at_us))
    if declaration.lookup is not None:
        if intent.lookup_failures >= attempts:
            return GiveUp("lookup_failed", f"the look-up failed {intent.lookup_failures} times: {intent.message or ''}")
        return LookUp(max(quiet_from(intent, declaration), intent.retry_at_us))
    if intent.final or intent.burnt:
        return GiveUp(intent.code or "key_burnt", intent.message or "the provider replays a stored error for this key")
    if not key_is_usable(intent, declaration, now_us=max(now_us, intent.retry_at_us)):
        return GiveUp(*_no_way(intent, declaration))
    if intent.item.spent >= attempts:
        return GiveUp("attempts_exhausted", intent.message or "the last call may have been executed")
    return SendAgain(max(now_us, intent.retry_at_us))


def _no_way(intent: OpenIntent, declaration: Declaration) -> tuple[str, str]:
    if declaration.key is None:
        cause = intent.code or "no_answer"
        return cause, "the provider offers neither keys nor look-up, so nothing may be sent again"
    return "key_expired", "the key's window is over and there is no look-up, so nothing may be sent again"


# What a look-up means


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
    """Executions exist, none of them ours."""

    executions: tuple[Execution, ...]


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """There is an execution that cannot be told apart from ours."""

    execution: Execution


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing of ours was executed."""


Sighting = Ours | WrongAmount | FailedAtProvider | SomeoneElses | Ambiguous | Absent


def judge(found: Found, intent: OpenIntent, declaration: Declaration, *, claimed: Set[str]) -> Sighting:
    """Which of the executions that a look-up shows are ours (SPEC section 6, point 2).

    ``claimed`` are the references committed to other items. Where the provider echoes our reference or key, only
    those count; else those after our first send (less a clock tolerance) that agree in amount and currency.
    """
    free = tuple(e for e in found.executions if e.reference not in claimed)
    if _echoes(declaration):
        ours = tuple(e for e in free if _carries_ours(e, intent))
    else:
        ours = tuple(e for e in free if _after_first_send(e, intent))
    exact = tuple(e for e in ours if not e.failed and _agrees(e, intent.item))
    if exact:
        return Ours(exact[0], exact[1:])
    failed = tuple(e for e in ours if e.failed)
    other = tuple(e for e in ours if not e.failed)
    if other:
        dated = _echoes(declaration) or other[0].at_us is not None
        return WrongAmount(other[0]) if dated else Ambiguous(other[0])
    if failed:
        return FailedAtProvider(failed[0])
    living = tuple(e for e in found.executions if not e.failed)
    return SomeoneElses(living) if living else Absent()


def _echoes(declaration: Declaration) -> bool:
    lookup = declaration.lookup
    return lookup is not None and (lookup.own_reference or lookup.key)


def _carries_ours(execution: Execution, intent: OpenIntent) -> bool:
    if execution.own_reference is not None and execution.own_reference == intent.item.id:
        return True
    return execution.key is not None and execution.key == intent.key


def _after_first_send(execution: Execution, intent: OpenIntent) -> bool:
    return execution.at_us is None or execution.at_us >= intent.first_sent_us - CLOCK_TOLERANCE_US


def _agrees(execution: Execution, item: Item) -> bool:
    return execution.money is None or item.money is None or execution.money == item.money


def after_sighting(
    sighting: Sighting, intent: OpenIntent, declaration: Declaration, *, attempts: int, now_us: int
) -> Verdict | SendAgain:
    """What a look-up's answer means for a pending item; SendAgain where it was not executed and the key still holds."""
    match sighting:
        case Ours(execution):
            executed = as_executed(execution)
            if intent.item.step + 1 < len(declaration.steps):
                return NextStep(executed)
            return Commit(executed)
        case WrongAmount(execution):
            return GiveUp("wrong_amount", f"the provider executed {execution.reference} over {execution.money}")
        case Ambiguous(execution):
            return GiveUp("ambiguous", f"{execution.reference} at the provider cannot be told apart from this item")
        case FailedAtProvider(execution):
            return Refuse("failed_at_provider", f"the provider says that {execution.reference} failed")
        case SomeoneElses() | Absent():
            if intent.already_done:
                return GiveUp(
                    "already_done_not_found", intent.message or "the provider says done, the look-up shows none"
                )
            return after_absence(intent, declaration, attempts=attempts, now_us=now_us)
        case _:
            assert_never(sighting)


def after_absence(intent: OpenIntent, declaration: Declaration, *, attempts: int, now_us: int) -> Verdict | SendAgain:
    """Proven not executed: the same key while it holds, a new generation where it cannot, within the attempts."""
    if intent.final:
        return GiveUp(intent.code or "contradiction", intent.message or "the provider contradicts itself")
    if intent.item.spent >= attempts:
        return Refuse("attempts_exhausted", intent.message or "proven not executed; all attempts are used up")
    if key_is_usable(intent, declaration, now_us=now_us):
        return SendAgain(now_us)
    return PlanAgain("proven_absent", "the look-up shows no execution", new_generation=declaration.key is not None)


def as_executed(execution: Execution) -> Executed:
    """A look-up's execution in the form of an answer."""
    return Executed(
        reference=execution.reference,
        billed=execution.money,
        settlement=execution.settlement,
        kept=execution.kept,
        output=execution.output,
        carry=execution.carry,
    )
