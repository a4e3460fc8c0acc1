"""How a pending item is resolved, for every combination of what is known of it: look-up first, then the key, else a
person; and from when, until when."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payonce.core.decide import GiveUp, LookUp, SendAgain, SendNext, key_is_usable, next_move, quiet_from
from payonce.core.model import SECOND_US, Declaration, KeyDeclaration, OpenIntent
from tests.exhaustive.decisionkit import (
    ATTEMPTS,
    DEADLINE_US,
    HOUR_US,
    LAG_US,
    MAX_EXECUTION_US,
    SEND_BY_US,
    SENT_US,
    declare,
    intent,
    item,
)

FRESH_US = SENT_US + HOUR_US
STALE_US = SENT_US + 23 * HOUR_US  # inside the day that is promised, outside the margin
FLAGS = ("burnt", "final", "in_progress", "already_done")
Pending = tuple[OpenIntent, Declaration, int, str]


def every_pending() -> list[Pending]:
    """Every combination of promises, flags, key age, attempts used, look-ups failed, and answer seen or not."""
    found = []
    for kind, now_us, spent, failures, seen, retry in itertools.product(
        ("keys", "lookup", "both", "neither"),
        (FRESH_US, STALE_US),
        (0, ATTEMPTS - 1, ATTEMPTS),
        (0, ATTEMPTS - 1, ATTEMPTS),
        (None, SENT_US + SECOND_US, SENT_US + 601 * SECOND_US),
        (0, STALE_US + HOUR_US),
    ):
        for flags in itertools.product((False, True), repeat=len(FLAGS)):
            open_intent = intent(
                item(spent=spent),
                key="key-0" if kind in ("keys", "both") else None,
                seen_us=seen,
                lookup_failures=failures,
                retry_at_us=retry,
                **dict(zip(FLAGS, flags, strict=True)),
            )
            found.append((open_intent, declare(kind), now_us, kind))
    return found


def test_every_combination_against_the_contract() -> None:
    """Sent again without a look-up only with a promised, unburnt key in its window and attempts left; with a look-up
    never; with neither never at all."""
    for pending, declaration, now_us, kind in every_pending():
        move = next_move(pending, declaration, attempts=ATTEMPTS, now_us=now_us)
        when_us = max(now_us, pending.retry_at_us)
        if kind in ("lookup", "both"):
            expected: type = GiveUp if pending.lookup_failures == ATTEMPTS else LookUp
        elif kind == "keys" and not (pending.burnt or pending.final) and when_us == FRESH_US:
            still = pending.in_progress and pending.seen_us == SENT_US + 601 * SECOND_US
            expected = SendAgain if pending.item.spent < ATTEMPTS and not still else GiveUp
        else:
            expected = GiveUp
        assert type(move) is expected, (kind, pending, now_us)
        if isinstance(move, SendAgain | LookUp):
            assert move.at_us >= pending.retry_at_us


def test_no_look_up_before_it_proves_something() -> None:
    """Never while a call may still start executing, or an execution not show yet; an answer that says "done" shows it
    after the lag alone."""
    for pending, declaration, now_us, kind in every_pending():
        move = next_move(pending, declaration, attempts=ATTEMPTS, now_us=now_us)
        if not isinstance(move, LookUp):
            continue
        if pending.seen_us is None:
            assert move.at_us >= max(SEND_BY_US + MAX_EXECUTION_US + LAG_US, DEADLINE_US), kind
        elif pending.already_done:
            assert move.at_us >= pending.seen_us + LAG_US
        else:
            assert move.at_us >= min(pending.seen_us, SEND_BY_US) + MAX_EXECUTION_US + LAG_US


def test_a_step_without_an_intent_is_sent() -> None:
    """Between two steps nothing was sent, so nothing is in doubt, whatever the provider promises."""
    for kind in ("keys", "lookup", "both", "neither"):
        between = intent(item(step=1), intent=False, retry_at_us=FRESH_US)
        assert next_move(between, declare(kind, steps=2), attempts=ATTEMPTS, now_us=SENT_US) == SendNext(FRESH_US)


def test_a_call_that_is_still_running_is_asked_after_for_ten_minutes() -> None:
    """Or ten times the longest execution. What counts is when the provider said so: after a long pause it is asked once
    more before a person is."""
    slow = Declaration("test", "refund", key=declare("keys").key, max_execution_us=600 * SECOND_US)
    for declaration, patience_s in ((declare("keys"), 600), (slow, 6000)):
        for seen_s, expected in ((patience_s, SendAgain), (patience_s + 1, GiveUp)):
            pending = intent(in_progress=True, seen_us=SENT_US + seen_s * SECOND_US)
            move = next_move(pending, declaration, attempts=ATTEMPTS, now_us=SENT_US + 20 * HOUR_US)
            assert isinstance(move, expected)


def test_why_a_person_is_asked() -> None:
    """Each way to the end has its own code."""

    def code(kind: str, now_us: int = FRESH_US, *, spent: int = 0, **more: object) -> str:
        key = "key-0" if kind in ("keys", "both") else None
        move = next_move(intent(item(spent=spent), key=key, **more), declare(kind), attempts=ATTEMPTS, now_us=now_us)
        assert isinstance(move, GiveUp)
        return move.code

    assert code("neither") == "no_answer"
    assert code("neither", code="timeout") == "timeout"
    assert code("keys", STALE_US) == "key_expired"
    assert code("keys", burnt=True) == "key_burnt"
    assert code("keys", burnt=True, code="http_500") == "http_500"
    assert code("keys", spent=ATTEMPTS) == "attempts_exhausted"
    assert code("keys", in_progress=True, seen_us=SENT_US + 601 * SECOND_US) == "still_in_progress"
    assert code("both", lookup_failures=ATTEMPTS) == "lookup_failed"


def test_a_look_up_that_failed_hides_no_answer() -> None:
    """Why the look-ups failed is on the item; what the call was answered stays, and a person is told both."""
    tried = replace(item(), code="status_503", message="busy")
    move = next_move(
        intent(tried, lookup_failures=ATTEMPTS, code="answer_contradicts", message="two amounts", final=True),
        declare("both"), attempts=ATTEMPTS, now_us=FRESH_US,
    )  # fmt: skip
    assert isinstance(move, GiveUp)
    assert move.message == ("the look-up failed 3 times: busy; the call was answered: answer_contradicts: two amounts")
    unheard = next_move(intent(tried, lookup_failures=ATTEMPTS), declare("both"), attempts=ATTEMPTS, now_us=FRESH_US)
    assert isinstance(unheard, GiveUp) and unheard.message == "the look-up failed 3 times: busy"


def test_from_when_a_look_up_proves_something() -> None:
    """The latest send, the longest execution and the lag; an answer that was seen bounds when its call was sent; a call
    whose caller may still wait is waited for."""
    both = declare("both")
    assert quiet_from(intent(), both) == SEND_BY_US + MAX_EXECUTION_US + LAG_US
    assert quiet_from(intent(seen_us=SENT_US + 1), both) == SENT_US + 1 + MAX_EXECUTION_US + LAG_US
    assert quiet_from(intent(seen_us=DEADLINE_US), both) == SEND_BY_US + MAX_EXECUTION_US + LAG_US
    assert quiet_from(intent(deadline_us=SENT_US + HOUR_US), both) == SENT_US + HOUR_US
    assert quiet_from(intent(seen_us=SENT_US + 1, already_done=True), both) == SENT_US + 1 + LAG_US
    assert quiet_from(intent(already_done=True), both) == SEND_BY_US + MAX_EXECUTION_US + LAG_US


# The window of a key


@pytest.mark.parametrize(
    ("retention_s", "window_s"),
    [
        (86_400, 82_080),  # a day: 5 %
        (6_000, 5_700),  # where both margins meet
        (3_600, 3_300),  # an hour: 5 minutes
        (601, 301),
        (600, 300),  # ten minutes: half
        (60, 30),
        (2, 1),
        (0, 0),
        (None, None),
    ],
)
def test_margin_of_a_window(retention_s: int | None, window_s: int | None) -> None:
    """The larger of 5 % and 5 minutes, never more than half; what is remembered for ever has no end."""
    key = KeyDeclaration("header", retention_us=None if retention_s is None else retention_s * SECOND_US)
    assert key.window_us == (None if window_s is None else window_s * SECOND_US)


@given(retention_us=st.integers(0, 10**15))
def test_margin_of_any_window(retention_us: int) -> None:
    """The window is never negative, never beyond what is promised, and at least half of it."""
    window = KeyDeclaration("header", retention_us=retention_us).window_us
    assert window is not None
    margin = retention_us - window
    assert 0 <= margin <= retention_us // 2
    assert margin == retention_us // 2 or margin == max(retention_us // 20, 300 * SECOND_US)


def test_a_key_is_usable_until_its_window_closes() -> None:
    """To the microsecond, counted from the first send; a later send does not extend it."""
    both, end_us = declare("both"), SENT_US + 82_080 * SECOND_US
    late = intent(sent_us=end_us - SECOND_US, send_by_us=end_us + SECOND_US)
    for pending in (intent(), late):
        assert key_is_usable(pending, both, now_us=end_us - 1)
        assert not key_is_usable(pending, both, now_us=end_us)


@pytest.mark.parametrize("flag", ["burnt", "final"])
def test_a_burnt_key_is_never_usable(flag: str) -> None:
    """Nor one of which the provider contradicts itself."""
    assert not key_is_usable(intent(**{flag: True}), declare("keys"), now_us=SENT_US)


def test_no_key_is_usable_where_none_is_promised() -> None:
    """Not even if the intent carries one, and not if it carries none."""
    assert not key_is_usable(intent(), declare("lookup"), now_us=SENT_US)
    assert not key_is_usable(intent(key=None), declare("keys"), now_us=SENT_US)


def test_a_key_for_ever_stays_usable() -> None:
    """A century later."""
    forever = declare("keys", key=KeyDeclaration("header", retention_us=None))
    assert key_is_usable(intent(), forever, now_us=SENT_US + 100 * 365 * 24 * HOUR_US)


@given(
    retention_us=st.integers(0, 3 * HOUR_US), age_us=st.integers(0, 3 * HOUR_US), execution_us=st.integers(0, HOUR_US)
)
def test_a_late_start_still_meets_the_provider_s_memory(retention_us: int, age_us: int, execution_us: int) -> None:
    """A call sent at the last instant allowed, that starts executing as late as the provider allows, starts before the
    key may be forgotten: else it would be executed a second time."""
    base = declare("keys", key=KeyDeclaration("header", retention_us=retention_us))
    declaration = Declaration("test", "refund", key=base.key, max_execution_us=execution_us)
    if key_is_usable(intent(), declaration, now_us=SENT_US + age_us):
        send_window_us = SEND_BY_US - SENT_US
        assert age_us + send_window_us + execution_us < retention_us
