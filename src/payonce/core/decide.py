"""The decisions: what an answer means for an item, and how a pending item is resolved (SPEC sections 4 and 6).

Pure functions over values. The engine executes what they return and decides nothing itself, so that a run, a restart
after a crash and the simulator all go through exactly this code.
"""

from __future__ import annotations

from typing import Final, assert_never

from payonce.core.model import SECOND_US, Declaration, Item, OpenIntent
from payonce.core.money import Money
from payonce.core.outcome import AlreadyDone, Executed, Execution, NotExecuted, Outcome, Refused, Stop, Unresolved
from payonce.core.sighting import (
    CLOCK_TOLERANCE_US,
    Absent,
    Ambiguous,
    FailedAtProvider,
    Ours,
    Sighting,
    SomeoneElses,
    WrongAmount,
    judge,
)
from payonce.core.verdict import (
    Commit,
    Doubt,
    GiveUp,
    LeaveOut,
    LookUp,
    Move,
    NextStep,
    PayAgain,
    PlanAgain,
    Refuse,
    SendAgain,
    SendNext,
    Verdict,
)

__all__ = [
    "Absent",
    "Ambiguous",
    "CLOCK_TOLERANCE_US",
    "Commit",
    "Doubt",
    "FailedAtProvider",
    "GiveUp",
    "LeaveOut",
    "LookUp",
    "Move",
    "NextStep",
    "Ours",
    "PayAgain",
    "PlanAgain",
    "Refuse",
    "SendAgain",
    "SendNext",
    "Sighting",
    "SomeoneElses",
    "Verdict",
    "WrongAmount",
    "after_absence",
    "after_gate",
    "after_reply",
    "after_sighting",
    "as_executed",
    "judge",
    "key_is_usable",
    "next_move",
    "or_pay_again",
    "quiet_from",
    "with_the_answer",
]


# A provider that says 'still in progress' is asked again without using up attempts, but not for ever.
PROGRESS_PATIENCE_US: Final = 600 * SECOND_US


# What an answer means


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
    ``attempts`` is the limit of calls that count. An item past its first step is never refused, left out or put back
    while it can be resolved: its earlier steps were executed, and it holds its money and its target.
    """
    doubt = resend and declaration.lookup is None
    stays = doubt or _stays_pending(item, declaration)
    match outcome:
        case Executed():
            return _executed(outcome, item, declaration)
        case Refused(code, message):
            if doubt and not replayed:
                return GiveUp("refused_after_unresolved", f"{code}: {message}")
            return _refuse(code, message, item)
        case NotExecuted(code, message, load, retry_after_us):
            if stays:
                return Doubt(code, message, spends=not load, load=load, retry_after_us=retry_after_us)
            if not load and item.spent + 1 >= attempts:
                return _refuse("attempts_exhausted", f"{code}: {message}", item)
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
            if executed or stays:
                return Doubt(code, message, spends=False)
            return PlanAgain(code, message, load=True)
        case _:
            assert_never(outcome)


def after_gate(*, item: Item, declaration: Declaration, resend: bool) -> Verdict:
    """The gate refused and nothing left: a first call goes back to planned; a repeated one, whose first may have been
    executed, and a later step stay pending."""
    code, message = "not_sent", "the call was not made"
    if resend or _stays_pending(item, declaration):
        return Doubt(code, message, spends=False)
    return PlanAgain(code, message, load=True)


def _stays_pending(item: Item, declaration: Declaration) -> bool:
    """Whether a call that was surely not executed leaves its item pending: earlier steps were executed, and keys or a
    look-up can send the same call again."""
    return item.step > 0 and (declaration.key is not None or declaration.lookup is not None)


def _refuse(code: str, message: str, item: Item) -> Refuse | GiveUp:
    """Refused says that nothing was executed, which is not true of an item past its first step."""
    if item.step == 0:
        return Refuse(code, message)
    return GiveUp("later_step_refused", f"step {item.step + 1} failed, earlier ones were executed; {code}: {message}")


def _executed(executed: Executed, item: Item, declaration: Declaration) -> Commit | NextStep | GiveUp:
    """The next step, or the commit. No further step over another amount than was asked."""
    mismatch = _mismatch(item, executed)
    if item.step + 1 >= len(declaration.steps):
        return Commit(executed, mismatch=mismatch)
    if mismatch is None:
        return NextStep(executed)
    return _wrong_amount(executed, mismatch)


def _wrong_amount(executed: Executed, mismatch: str | None) -> GiveUp:
    text = f"the provider executed {executed.reference} over {executed.billed}"
    return GiveUp("wrong_amount", text, mismatch=mismatch, executed=executed)


def _mismatch(item: Item, executed: Executed) -> str | None:
    """The class of discrepancy between what was asked and what was billed, if any."""
    if executed.billed is None or item.money is None or executed.billed == item.money:
        return None
    return "currency_mismatch" if executed.billed.currency != item.money.currency else "amount_mismatch"


# How a pending item is resolved


def key_is_usable(intent: OpenIntent, declaration: Declaration, *, now_us: int) -> bool:
    """Whether the key may be sent again: keys are promised, it is not burnt, and its window is still open."""
    if declaration.key is None or intent.key is None or intent.burnt or intent.final:
        return False
    retention, window = declaration.key.retention_us, declaration.key.window_us
    if retention is None or window is None:
        return True
    # A call that may leave as late as its send window allows, and start executing as late as the provider allows, must
    # still meet the provider's memory of the key.
    latest_start = intent.send_by_us - intent.sent_us + declaration.max_execution_us
    return now_us < intent.first_sent_us + min(window, retention - latest_start)


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
            why = f"the look-up failed {intent.lookup_failures} times: {intent.item.message or ''}"
            return GiveUp("lookup_failed", with_the_answer(why, intent))
        return LookUp(max(quiet_from(intent, declaration), intent.retry_at_us))
    if intent.final or intent.burnt:
        return GiveUp(intent.code or "key_burnt", intent.message or "the provider replays a stored error for this key")
    if not key_is_usable(intent, declaration, now_us=max(now_us, intent.retry_at_us)):
        return GiveUp(*_no_way(intent, declaration))
    if intent.item.spent >= attempts:
        return GiveUp("attempts_exhausted", intent.message or "the last call may have been executed")
    if _in_progress_too_long(intent, declaration):
        return GiveUp("still_in_progress", intent.message or "the provider says that the first call is still running")
    return SendAgain(max(now_us, intent.retry_at_us))


def with_the_answer(why: str, intent: OpenIntent) -> str:
    """Why a look-up told nothing, and what the call before it had answered: a person needs both."""
    return why if intent.code is None else f"{why}; the call was answered: {intent.code}: {intent.message or ''}"


# What a policy may pay for once more: doubts about whether a call was executed. Never where an execution was seen, where
# somebody else may have done it, or where the provider contradicts itself.
_DOUBTS: Final = frozenset({"ambiguous", "already_done_not_found", "already_done_otherwise", "already_done_unverified"})


def or_pay_again(verdict: GiveUp, intent: OpenIntent, declaration: Declaration, *, attempts: int) -> GiveUp | PayAgain:
    """The verdict under the policy ``pay_again``: pay once more for what may have been executed, within the attempts.

    Only where the provider has no keys, nothing that was executed was seen, and the provider does not contradict itself.
    """
    item = intent.item
    seen = verdict.executed is not None or verdict.mismatch is not None or intent.final or intent.already_done
    if seen or declaration.key is not None or item.step > 0 or verdict.code in _DOUBTS or item.spent >= attempts:
        return verdict
    return PayAgain(verdict.code, verdict.message, spends=intent.seen_us is None)


def _in_progress_too_long(intent: OpenIntent, declaration: Declaration) -> bool:
    """Whether the provider has said "still in progress" that long after the first send. What counts is when it said so:
    after a pause it is asked again."""
    patience = max(PROGRESS_PATIENCE_US, 10 * declaration.max_execution_us)
    return intent.in_progress and intent.seen_us is not None and intent.seen_us - intent.first_sent_us > patience


def _no_way(intent: OpenIntent, declaration: Declaration) -> tuple[str, str]:
    if declaration.key is None:
        cause = intent.code or "no_answer"
        return cause, "the provider offers neither keys nor look-up, so nothing may be sent again"
    return "key_expired", "the key's window is over and there is no look-up, so nothing may be sent again"


# What a look-up means


def after_sighting(
    sighting: Sighting, intent: OpenIntent, declaration: Declaration, *, attempts: int, now_us: int
) -> Verdict | SendAgain:
    """What a look-up's answer means for a pending item; SendAgain where it was not executed and the key still holds."""
    match sighting:
        case Ours(execution):
            return _executed(as_executed(execution), intent.item, declaration)
        case WrongAmount(execution):
            executed = as_executed(execution)
            return _wrong_amount(executed, _mismatch(intent.item, executed))
        case Ambiguous(execution):
            return GiveUp("ambiguous", f"{execution.reference} at the provider cannot be told apart from this item")
        case FailedAtProvider(execution):
            return _refuse("failed_at_provider", f"the provider says that {execution.reference} failed", intent.item)
        case SomeoneElses(executions) if intent.already_done:
            return _done_by_others(executions, intent)
        case SomeoneElses() | Absent():
            if intent.already_done:
                return GiveUp(
                    "already_done_not_found", intent.message or "the provider says done, the look-up shows none"
                )
            return after_absence(intent, declaration, attempts=attempts, now_us=now_us)
        case _:
            assert_never(sighting)


def _done_by_others(executions: tuple[Execution, ...], intent: OpenIntent) -> LeaveOut | GiveUp:
    """The provider says done, and shows executions that are not ours. Left out only where one of them, or all together,
    are exactly the amount asked; a part of it, or an amount not told, is for a person."""
    item, references = intent.item, tuple(e.reference for e in executions)
    amounts = [e.money for e in executions]
    whole = item.money is None or item.money in amounts or _sum(amounts) == item.money
    if whole and item.step == 0:
        return LeaveOut("already_done_elsewhere", f"someone else did it: {', '.join(references)}", references)
    text = f"the provider says done, and shows {', '.join(references)}, which is not this item"
    return GiveUp("already_done_otherwise", text)


def _sum(amounts: list[Money | None]) -> Money | None:
    """All of them together; None where one is not told or the currencies differ."""
    told = [amount for amount in amounts if amount is not None]
    if len(told) < len(amounts) or len({amount.currency for amount in told}) != 1:
        return None
    return Money.of_minor(sum(amount.minor for amount in told), told[0].currency)


def after_absence(intent: OpenIntent, declaration: Declaration, *, attempts: int, now_us: int) -> Verdict | SendAgain:
    """Proven not executed: the same key while it holds, a new generation where it cannot, within the attempts."""
    item = intent.item
    if intent.final:
        return GiveUp(intent.code or "contradiction", intent.message or "the provider contradicts itself")
    if item.spent >= attempts:
        text = intent.message or "proven not executed; all attempts are used up"
        return _refuse("attempts_exhausted", text, item)
    keyless = declaration.key is None and _stays_pending(item, declaration)
    if keyless or key_is_usable(intent, declaration, now_us=now_us):
        return SendAgain(now_us)
    # An answer that was seen has used up its attempt; a call whose worker died has not.
    return PlanAgain(
        "proven_absent",
        "the look-up shows no execution",
        new_generation=declaration.key is not None,
        spends=declaration.key is None and (intent.seen_us is None or intent.in_progress),
    )


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
