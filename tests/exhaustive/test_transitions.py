"""The transition table, pair by pair, against one written out by hand from the contract."""

from __future__ import annotations

import itertools

import pytest

from payonce.core.states import FINAL_STATES, RUNNABLE, TRANSITIONS, BatchState, ItemEvent, ItemState, transition

# From -> to, with the events that lead there. Everything that does not stand here must be refused.
BY_HAND = """
planned    intent        pending
planned    skip          skipped
planned    refuse        refused
planned    undecided     unknown
pending    resend        pending
pending    takeover      pending
pending    unresolved    pending
pending    lookup        pending
pending    step_done     pending
pending    commit        committed
pending    refuse        refused
pending    not_executed  planned
pending    pay_again     planned
pending    undecided     unknown
pending    skip          skipped
unknown    commit        committed
unknown    refuse        refused
unknown    not_executed  planned
unknown    lookup        unknown
refused    retry         planned
skipped    retry         planned
committed  settle        committed
"""
ALLOWED = {
    (ItemState(state), ItemEvent(event)): ItemState(after)
    for state, event, after in (line.split() for line in BY_HAND.split("\n") if line)
}
EVERY_PAIR = list(itertools.product(ItemState, ItemEvent))


@pytest.mark.parametrize(("state", "event"), EVERY_PAIR)
def test_every_pair_of_state_and_event(state: ItemState, event: ItemEvent) -> None:
    """An allowed pair leads where the contract says; every other pair leads nowhere."""
    assert transition(state, event) is ALLOWED.get((state, event))


def test_the_table_holds_nothing_else() -> None:
    """Neither more nor fewer edges than the contract has, and no pair twice."""
    assert ALLOWED == TRANSITIONS
    assert len(BY_HAND.split()) // 3 == len(TRANSITIONS)


def test_every_state_can_be_reached() -> None:
    """From planned, by the table's edges alone."""
    reached = {ItemState.PLANNED}
    while more := {after for (state, _), after in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(ItemState)


def test_a_call_may_leave_only_from_planned_or_pending() -> None:
    """No edge leads into pending from anywhere else: what is committed, refused, skipped or unknown is never sent."""
    assert {state for (state, _), after in TRANSITIONS.items() if after is ItemState.PENDING} == {
        ItemState.PLANNED,
        ItemState.PENDING,
    }
    assert transition(ItemState.PLANNED, ItemEvent.RESEND) is None
    assert transition(ItemState.PENDING, ItemEvent.INTENT) is None


def test_committed_is_for_good() -> None:
    """Only its settlement changes; no event takes a committed item anywhere."""
    assert {after for (state, _), after in TRANSITIONS.items() if state is ItemState.COMMITTED} == {ItemState.COMMITTED}


def test_the_way_out_of_unknown() -> None:
    """Only evidence: a commit, a refusal or the proof that it was not executed; never a resend, a skip or a retry."""
    events = {
        event for (state, event), after in TRANSITIONS.items() if state is ItemState.UNKNOWN and after is not state
    }
    assert events == {ItemEvent.COMMIT, ItemEvent.REFUSE, ItemEvent.NOT_EXECUTED}


def test_the_way_back_to_planned() -> None:
    """Only what was surely not executed, or what an operator puts back."""
    edges = {(state, event) for (state, event), after in TRANSITIONS.items() if after is ItemState.PLANNED}
    assert edges == {
        (ItemState.PENDING, ItemEvent.NOT_EXECUTED),
        (ItemState.PENDING, ItemEvent.PAY_AGAIN),
        (ItemState.UNKNOWN, ItemEvent.NOT_EXECUTED),
        (ItemState.REFUSED, ItemEvent.RETRY),
        (ItemState.SKIPPED, ItemEvent.RETRY),
    }


def test_nothing_is_committed_that_had_no_intent() -> None:
    """A commit comes from pending or unknown, which an item enters only through an intent."""
    assert {s for (s, e), after in TRANSITIONS.items() if e is ItemEvent.COMMIT} == {
        ItemState.PENDING,
        ItemState.UNKNOWN,
    }


@pytest.mark.parametrize("state", list(ItemState))
def test_open_final_and_money_holding_states(state: ItemState) -> None:
    """Planned and pending are open, the rest is final; pending and unknown hold money and target."""
    assert state.is_open == (state.value in ("planned", "pending"))
    assert (state in FINAL_STATES) == (not state.is_open)
    assert state.holds_money == (state.value in ("pending", "unknown"))


@pytest.mark.parametrize("state", list(BatchState))
def test_which_batches_can_be_run(state: BatchState) -> None:
    """A paused batch waits, a cancelled or finished one is over; everything else goes on with the same command."""
    assert (state in RUNNABLE) == (state.value not in ("paused", "cancelled", "finished"))


def test_names_are_the_same_everywhere() -> None:
    """The value of a state or event is its name in lower case: SQL, JSON, command line and web use it."""
    for kind in (ItemState, ItemEvent, BatchState):
        assert all(member.value == member.name.lower() for member in kind)
