"""What an answer means, for every combination: an auditor's rules first, then the contract's table by hand."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import pytest

from payonce.core.decide import (
    Commit,
    Doubt,
    GiveUp,
    LeaveOut,
    NextStep,
    PlanAgain,
    Refuse,
    Verdict,
    after_gate,
    after_reply,
)
from payonce.core.money import Money
from payonce.core.outcome import AlreadyDone, Executed, NotExecuted, Outcome, Refused, Stop, Unresolved
from tests.exhaustive.decisionkit import ASKED, ATTEMPTS, declare, item

OUTCOMES: dict[str, Outcome] = {
    "executed": Executed("re_1", billed=ASKED),
    "executed, amount not told": Executed("re_1"),
    "executed over less": Executed("re_1", billed=Money("9.99", "USD")),
    "executed in euros": Executed("re_1", billed=Money("10.00", "EUR")),
    "refused": Refused("disputed", "no"),
    "not executed, load": NotExecuted("rate_limited", load=True, retry_after_us=5),
    "not executed": NotExecuted("no_such_host"),
    "unresolved": Unresolved("timeout"),
    "unresolved, burnt": Unresolved("stored_500", burnt=True),
    "unresolved, final": Unresolved("contradiction", final=True),
    "unresolved, in progress": Unresolved("in_use", in_progress=True, retry_after_us=9),
    "already done": AlreadyDone("already_refunded"),
    "stop, not executed": Stop("bad_key"),
    "stop, may be executed": Stop("account_closed", executed=True),
}
KINDS = ("keys", "lookup", "both", "neither")


@dataclass(frozen=True)
class Case:
    """One combination."""

    outcome: str
    kind: str
    resend: bool
    replayed: bool
    spent: int
    step: int
    steps: int

    @cached_property
    def verdict(self) -> Verdict:
        """What the program says."""
        return after_reply(
            OUTCOMES[self.outcome],
            item=item(spent=self.spent, step=self.step),
            declaration=declare(self.kind, steps=self.steps),
            resend=self.resend,
            replayed=self.replayed,
            attempts=ATTEMPTS,
        )

    @cached_property
    def this_call(self) -> str:
        """What the answer says of the call it answers."""
        if self.outcome.startswith("executed"):
            return "executed"
        if self.outcome in ("refused", "not executed, load", "not executed", "stop, not executed"):
            return "not executed"
        return "perhaps"

    @cached_property
    def earlier_call_is_open(self) -> bool:
        """Whether an earlier call may have been executed for all that is known: it was sent, nothing proved it absent
        (a look-up does before each resend), and this answer is not the stored answer to it."""
        stored = self.outcome == "refused" and self.replayed
        return self.resend and self.kind in ("keys", "neither") and not stored

    @cached_property
    def may_be_executed(self) -> bool:
        """Whether the present step may have been executed without our knowing."""
        return self.this_call == "perhaps" or (self.this_call == "not executed" and self.earlier_call_is_open)


CASES = [
    Case(*parts, step, steps)
    for parts in itertools.product(OUTCOMES, KINDS, (False, True), (False, True), (0, ATTEMPTS - 1, ATTEMPTS))
    for step, steps in ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3))
]


def check(rule: str, wrong: list[Case]) -> None:
    """Fails with the combinations that break a rule."""
    assert not wrong, f"{rule}: {len(wrong)} combinations, first {wrong[0]} -> {wrong[0].verdict}"


def test_never_refused_or_planned_while_it_may_be_executed() -> None:
    """No combination calls an item refused, skipped or planned whose step may have been executed."""
    check(
        "may be executed, but let go",
        [c for c in CASES if c.may_be_executed and isinstance(c.verdict, Refuse | PlanAgain | LeaveOut | Commit)],
    )


def test_never_refused_after_an_executed_step() -> None:
    """Refused and skipped say that nothing was executed; of an item past its first step that is not true."""
    check("later step", [c for c in CASES if c.step > 0 and isinstance(c.verdict, Refuse | LeaveOut)])


def test_commits_exactly_what_is_confirmed() -> None:
    """Commit and NextStep come from a confirmation and from nothing else; a confirmation is never forgotten."""
    for case in CASES:
        confirmed = case.this_call == "executed"
        assert isinstance(case.verdict, Commit | NextStep) or not confirmed or case.verdict.executed is not None, case
        if isinstance(case.verdict, Commit | NextStep):
            assert confirmed and case.verdict.executed == OUTCOMES[case.outcome]


def test_the_last_step_commits_and_no_other() -> None:
    """An item of several steps is committed with the last one."""
    for case in CASES:
        if case.this_call == "executed":
            last = case.step == case.steps - 1
            assert isinstance(case.verdict, Commit) == last, case


def test_another_amount_stops_the_batch() -> None:
    """A confirmation over another amount or currency: committed with a mismatch, or no further step; never silent."""
    expected = {"executed over less": "amount_mismatch", "executed in euros": "currency_mismatch"}
    for case in CASES:
        if case.this_call == "executed":
            verdict = case.verdict
            mismatch = verdict.mismatch if isinstance(verdict, Commit | GiveUp) else None
            assert mismatch == expected.get(case.outcome), case
            assert isinstance(verdict, GiveUp) == (mismatch is not None and case.step < case.steps - 1), case


def test_no_answer_gives_a_new_key() -> None:
    """A new generation needs a look-up's proof; an answer alone never is one."""
    check("new key", [c for c in CASES if isinstance(c.verdict, PlanAgain) and c.verdict.new_generation])


def test_load_and_waiting_use_up_no_attempts() -> None:
    """429s, refused connections, calls still running and stops count nothing; everything else counts one."""
    free = ("not executed, load", "unresolved, in progress", "stop, not executed", "stop, may be executed")
    for case in CASES:
        if isinstance(case.verdict, Doubt):
            assert case.verdict.spends == (case.outcome not in free), case
        if isinstance(case.verdict, PlanAgain):
            assert (not case.verdict.load) == (case.outcome not in free), case


def test_attempts_are_bounded() -> None:
    """Once the attempts are used up, nothing is planned again but what load or a stop kept from being tried."""
    for case in CASES:
        if isinstance(case.verdict, PlanAgain) and not case.verdict.load:
            assert case.spent + 1 < ATTEMPTS, case


def test_what_was_learned_is_kept() -> None:
    """Burnt, final, in progress, already done and the wait asked for pass from the answer to the verdict."""
    for case in CASES:
        verdict, outcome = case.verdict, OUTCOMES[case.outcome]
        if isinstance(verdict, Doubt) and isinstance(outcome, Unresolved):
            flags = (verdict.burnt, verdict.final, verdict.in_progress, verdict.retry_after_us)
            assert flags == (outcome.burnt, outcome.final, outcome.in_progress, outcome.retry_after_us)
        if isinstance(verdict, Doubt | PlanAgain) and isinstance(outcome, NotExecuted):
            assert (verdict.load, verdict.retry_after_us) == (outcome.load, outcome.retry_after_us)
        if isinstance(verdict, Doubt):
            assert verdict.already_done == isinstance(outcome, AlreadyDone)


# The contract's table for a first step, by hand. Columns: a first call; a repeated call where a look-up had proved the
# first one absent; a repeated call without look-up (keys only).
BY_HAND = {
    "executed": ("commit", "commit", "commit"),
    "executed, amount not told": ("commit", "commit", "commit"),
    "executed over less": ("commit", "commit", "commit"),
    "executed in euros": ("commit", "commit", "commit"),
    "refused": ("refuse", "refuse", "give up"),
    "not executed, load": ("plan", "plan", "doubt"),
    "not executed": ("plan", "plan", "doubt"),
    "unresolved": ("doubt", "doubt", "doubt"),
    "unresolved, burnt": ("doubt", "doubt", "doubt"),
    "unresolved, final": ("doubt", "doubt", "doubt"),
    "unresolved, in progress": ("doubt", "doubt", "doubt"),
    "already done": ("by look-up", "doubt", "give up"),
    "stop, not executed": ("plan", "plan", "doubt"),
    "stop, may be executed": ("doubt", "doubt", "doubt"),
}
NAMES = {
    Commit: "commit",
    Refuse: "refuse",
    PlanAgain: "plan",
    Doubt: "doubt",
    GiveUp: "give up",
    LeaveOut: "skip",
    NextStep: "next",
}


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_contracts_table(outcome: str, kind: str) -> None:
    """Section 4 for a first call and for a repeated one, with attempts left."""
    first, proven, unproven = BY_HAND[outcome]
    has_lookup = kind in ("lookup", "both")
    if first == "by look-up":
        first = "doubt" if has_lookup else "give up"
    for resend, expected in ((False, first), (True, proven if has_lookup else unproven)):
        case = Case(outcome, kind, resend, replayed=False, spent=0, step=0, steps=1)
        assert NAMES[type(case.verdict)] == expected, case


@pytest.mark.parametrize("kind", KINDS)
def test_the_stored_refusal_of_the_first_call_is_a_refusal(kind: str) -> None:
    """Where a repeated call is answered with the stored answer to the first, the first is known to be refused."""
    case = Case("refused", kind, resend=True, replayed=True, spent=0, step=0, steps=1)
    assert isinstance(case.verdict, Refuse)


@pytest.mark.parametrize("kind", KINDS)
def test_used_up_attempts(kind: str) -> None:
    """Proven not executed for the last time: refused with a code of its own, never unknown, never tried again."""
    case = Case("not executed", kind, resend=False, replayed=False, spent=ATTEMPTS - 1, step=0, steps=1)
    assert isinstance(case.verdict, Refuse) and case.verdict.code == "attempts_exhausted"


@pytest.mark.parametrize(("kind", "resend", "step"), list(itertools.product(KINDS, (False, True), (0, 1))))
def test_a_call_that_the_gate_kept_back(kind: str, resend: bool, step: int) -> None:
    """A first call goes back to planned; a repeated one, and a later step that can be sent again, stays pending."""
    verdict = after_gate(item=item(step=step), declaration=declare(kind, steps=2), resend=resend)
    stays = resend or (step > 0 and kind != "neither")
    assert isinstance(verdict, Doubt if stays else PlanAgain)
    assert not (isinstance(verdict, Doubt) and verdict.spends)


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_step_not_executed_keeps_its_money_and_target(kind: str) -> None:
    """It stays pending where it can be sent again; where nothing can resolve it, it is planned, since it surely was not
    executed."""
    case = Case("not executed, load", kind, resend=False, replayed=False, spent=0, step=1, steps=2)
    assert isinstance(case.verdict, PlanAgain if kind == "neither" else Doubt)
