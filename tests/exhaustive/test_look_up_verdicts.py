"""What a look-up's answer means for its item: every sighting, with every flag, key age, promise and step."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields
from functools import cached_property

import pytest

from payonce.core.decide import (
    Absent,
    Ambiguous,
    Commit,
    Doubt,
    FailedAtProvider,
    GiveUp,
    LeaveOut,
    NextStep,
    Ours,
    PlanAgain,
    Refuse,
    SendAgain,
    Sighting,
    SomeoneElses,
    Verdict,
    WrongAmount,
    after_sighting,
    as_executed,
    key_is_usable,
)
from payonce.core.model import Declaration, OpenIntent
from payonce.core.money import Money
from payonce.core.outcome import Executed, Execution
from payonce.core.states import Settlement
from tests.exhaustive.decisionkit import ASKED, ATTEMPTS, HOUR_US, SENT_US, declare, intent, item

FRESH_US, STALE_US = SENT_US + HOUR_US, SENT_US + 25 * HOUR_US
LESS = Money("4.00", "USD")
SIGHTINGS: dict[str, Sighting] = {
    "ours": Ours(Execution("re_1", ASKED)),
    "ours, amount not told": Ours(Execution("re_1")),
    "wrong amount": WrongAmount(Execution("re_1", LESS)),
    "wrong currency": WrongAmount(Execution("re_1", Money("10.00", "EUR"))),
    "failed": FailedAtProvider(Execution("re_1", ASKED, failed=True)),
    "ambiguous": Ambiguous(Execution("re_1")),
    "someone else's, all of it": SomeoneElses((Execution("re_9", ASKED),)),
    "someone else's, in two parts": SomeoneElses((Execution("re_8", LESS), Execution("re_9", Money("6.00", "USD")))),
    "someone else's, a part": SomeoneElses((Execution("re_9", LESS),)),
    "someone else's, amount not told": SomeoneElses((Execution("re_9"),)),
    "someone else's, in euros": SomeoneElses((Execution("re_9", Money("10.00", "EUR")),)),
    "absent": Absent(),
}
NOT_OURS = [name for name in SIGHTINGS if name.startswith(("someone", "absent"))]
WHOLLY_DONE = ("someone else's, all of it", "someone else's, in two parts")


@dataclass(frozen=True)
class Case:
    """One combination."""

    sighting: str
    kind: str
    now_us: int
    spent: int
    seen: bool
    burnt: bool
    final: bool
    already_done: bool
    step: int
    steps: int

    @cached_property
    def pending(self) -> OpenIntent:
        """The open intent."""
        return intent(
            item(spent=self.spent, step=self.step),
            key="key-0" if self.kind == "both" else None,
            seen_us=SENT_US + 1 if self.seen else None,
            burnt=self.burnt,
            final=self.final,
            already_done=self.already_done,
        )

    @cached_property
    def declaration(self) -> Declaration:
        """What the provider promises."""
        return declare(self.kind, steps=self.steps)

    @cached_property
    def verdict(self) -> Verdict | SendAgain:
        """What the program says."""
        return after_sighting(
            SIGHTINGS[self.sighting], self.pending, self.declaration, attempts=ATTEMPTS, now_us=self.now_us
        )

    @cached_property
    def key_holds(self) -> bool:
        """Whether its key may be sent again."""
        return self.kind == "both" and not (self.burnt or self.final) and self.now_us == FRESH_US


BOTH = (False, True)
CASES = [
    Case(*parts, step, steps)
    for parts in itertools.product(
        SIGHTINGS, ("lookup", "both"), (FRESH_US, STALE_US), (0, ATTEMPTS - 1, ATTEMPTS), BOTH, BOTH, BOTH, BOTH
    )
    for step, steps in ((0, 1), (0, 2), (1, 2))
]


def test_sent_again_only_when_proven_absent() -> None:
    """Back to planned or sent again: only where nothing of ours was shown, the provider does not say "done", it does not
    contradict itself, and attempts are left."""
    for case in CASES:
        if isinstance(case.verdict, SendAgain | PlanAgain):
            assert case.sighting in NOT_OURS, case
            assert not (case.already_done or case.final) and case.spent < ATTEMPTS, case


def test_absent_means_that_it_goes_on() -> None:
    """The other way round: proven absent with attempts left, it is tried again, with nothing left to a person."""
    for case in CASES:
        if case.sighting in NOT_OURS and not (case.already_done or case.final) and case.spent < ATTEMPTS:
            assert isinstance(case.verdict, SendAgain | PlanAgain), case


def test_which_key_it_is_sent_with() -> None:
    """The same while its window is open and it is not burnt; else a new one, where the provider takes keys at all."""
    for case in CASES:
        verdict = case.verdict
        if isinstance(verdict, SendAgain):
            later_step_without_keys = case.kind == "lookup" and case.step > 0
            assert case.key_holds or later_step_without_keys, case
        if isinstance(verdict, PlanAgain):
            assert not case.key_holds and verdict.new_generation == (case.kind == "both"), case


def test_the_key_is_judged_as_everywhere() -> None:
    """The window, the burnt flag and the promise mean the same here as for a resend without look-up."""
    for case in CASES:
        assert key_is_usable(case.pending, case.declaration, now_us=case.now_us) == case.key_holds


def test_what_is_ours_is_committed() -> None:
    """Whatever else is known; an earlier step leads to the next one."""
    for case in CASES:
        ours = case.sighting.startswith("ours")
        assert isinstance(case.verdict, Commit) == (ours and case.step == case.steps - 1), case
        assert isinstance(case.verdict, NextStep) == (ours and case.step < case.steps - 1), case


def test_another_amount_waits_and_stops_the_batch() -> None:
    """Unknown, with the mismatch and what was executed: a person decides."""
    expected = {"wrong amount": "amount_mismatch", "wrong currency": "currency_mismatch"}
    for case in CASES:
        mismatch = case.verdict.mismatch if isinstance(case.verdict, GiveUp | Commit) else None
        assert mismatch == expected.get(case.sighting), case
        if mismatch is not None:
            assert isinstance(case.verdict, GiveUp) and case.verdict.executed is not None, case


def test_refused_only_where_nothing_was_executed() -> None:
    """The provider says that it failed, or it is absent and the attempts are used up; and no earlier step was executed."""
    for case in CASES:
        if isinstance(case.verdict, Refuse):
            assert case.step == 0, case
            exhausted = case.sighting in NOT_OURS and case.spent == ATTEMPTS
            assert case.sighting == "failed" or exhausted, case


def test_used_up_attempts_have_their_own_code() -> None:
    """Proven not executed and no attempt left."""
    case = Case("absent", "both", FRESH_US, ATTEMPTS, True, False, False, False, 0, 1)
    assert isinstance(case.verdict, Refuse) and case.verdict.code == "attempts_exhausted"


def test_left_out_only_where_someone_else_did_all_of_it() -> None:
    """The provider says "done" and shows executions that are not ours over exactly the amount asked."""
    for case in CASES:
        done = case.already_done and case.step == 0 and case.sighting in WHOLLY_DONE
        assert isinstance(case.verdict, LeaveOut) == done, case


def test_done_without_trace_is_for_a_person() -> None:
    """The provider says "done", but shows nothing, a part or something that cannot be compared: unknown."""
    for case in CASES:
        if case.already_done and case.sighting in NOT_OURS and case.sighting not in WHOLLY_DONE:
            assert isinstance(case.verdict, GiveUp), case


def test_a_contradiction_is_for_a_person() -> None:
    """Asking again cannot help where the provider contradicts itself, unless ours is shown."""
    for case in CASES:
        if case.final and not case.already_done and case.sighting in NOT_OURS:
            assert isinstance(case.verdict, GiveUp), case


def test_a_look_up_never_leaves_it_in_doubt() -> None:
    """Each answered look-up ends in a decision: there is no loop of look-ups."""
    assert not any(isinstance(case.verdict, Doubt) for case in CASES)


def test_one_call_uses_up_one_attempt() -> None:
    """An answer that was seen has been counted; a call whose worker died is counted when it is proven absent, unless the
    key changes."""
    for case in CASES:
        if isinstance(case.verdict, PlanAgain):
            assert case.verdict.spends == (case.kind == "lookup" and not case.seen), case


@pytest.mark.parametrize("settlement", list(Settlement))
def test_a_sighting_is_committed_with_all_it_tells(settlement: Settlement) -> None:
    """Reference, billed amount, settlement, kept fields, output and what a later step needs."""
    seen = Execution("re_1", ASKED, settlement=settlement, kept={"a": 1}, output=[2], carry={"b": "3"})
    assert as_executed(seen) == Executed("re_1", ASKED, settlement, {"a": 1}, [2], {"b": "3"})
    assert {f.name for f in fields(Executed)} == {"reference", "billed", "settlement", "kept", "output", "carry"}
