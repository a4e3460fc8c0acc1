"""Short stories of one item at a provider that keeps its promises: faults that people met, and how each must end."""

from __future__ import annotations

import pytest

from payonce.core.model import SECOND_US
from payonce.core.states import ItemState
from tests.properties.tinyfar import Done, Fate, Promises, TinyFar
from tests.properties.tinyrun import TinyRun

DAY_US = 86_400 * SECOND_US
KEYS_ONLY = Promises(retention_us=DAY_US, lookup="none")
BOTH = Promises(retention_us=DAY_US)
LOOKUP_ONLY = Promises(keys=False)
NEITHER = Promises(keys=False, lookup="none")
COMMITTED, REFUSED, UNKNOWN, SKIPPED = ItemState.COMMITTED, ItemState.REFUSED, ItemState.UNKNOWN, ItemState.SKIPPED


def story(promises: Promises, *fates: Fate, foreign: int = 0) -> tuple[ItemState, int, int]:
    """How the item ends, how often it was executed, and how many calls were made for it."""
    far = TinyFar(promises)
    far.done.extend(Done(f"re_foreign_{n}", 0, 1000, None, ours=False) for n in range(foreign))
    run = TinyRun(far, iter(fates))
    return run.run(), sum(done.ours for done in far.done), run.item.attempts


def killed(when: str, asleep_us: int = SECOND_US) -> Fate:
    """The process dies before or after the call leaves, and is started again later."""
    return Fate(crash=when, asleep_us=asleep_us)


@pytest.mark.parametrize("promises", [KEYS_ONLY, BOTH])
def test_the_answer_is_lost_inside_the_key_s_life(promises: Promises) -> None:
    """The same key is sent again, or a look-up shows it: committed, executed once."""
    state, executed, _ = story(promises, Fate(lost=True))
    assert (state, executed) == (COMMITTED, 1)


@pytest.mark.parametrize("when", ["before", "after"])
def test_resumed_when_the_key_is_forgotten_and_there_is_no_look_up(when: str) -> None:
    """30 hours later: for a person, never sent again."""
    state, executed, calls = story(KEYS_ONLY, killed(when, 30 * 3600 * SECOND_US))
    assert (state, executed, calls) == (UNKNOWN, int(when == "after"), 1)


def test_resumed_when_the_key_is_forgotten_and_there_is_a_look_up() -> None:
    """30 hours later: what was executed is committed, what was not is sent under a new key."""
    assert story(BOTH, killed("after", 30 * 3600 * SECOND_US)) == (COMMITTED, 1, 1)
    assert story(BOTH, killed("before", 30 * 3600 * SECOND_US)) == (COMMITTED, 1, 2)


@pytest.mark.parametrize("fate", [Fate(lost=True), killed("before"), killed("after"), Fate(what="error before")])
def test_neither_keys_nor_look_up(fate: Fate) -> None:
    """One call, whatever became of it: for a person."""
    state, executed, calls = story(NEITHER, fate)
    assert state is UNKNOWN and executed <= 1 and calls == 1


def test_a_late_execution_after_the_connection_broke() -> None:
    """A look-up at once would show nothing; it waits for the longest execution, and shows it."""
    for late in (0.2, 0.9, 1.0):
        for lookup in ("reference", "neither"):
            promises = Promises(keys=False, lookup=lookup, lag_us=5 * SECOND_US)
            assert story(promises, Fate(late=late)) == (COMMITTED, 1, 1)


def test_the_first_call_is_still_running() -> None:
    """ "Key in use" waits and uses up no attempts."""
    state, executed, calls = story(KEYS_ONLY, Fate(slow=True))
    assert (state, executed) == (COMMITTED, 1) and calls > 3


@pytest.mark.parametrize("what", ["error before", "error after"])
def test_a_stored_error_is_replayed(what: str) -> None:
    """Without a look-up: the first replay ends it, executed or not; no third call, no new key."""
    state, executed, calls = story(KEYS_ONLY, Fate(what=what))
    assert (state, executed, calls) == (UNKNOWN, int(what == "error after"), 2)


def test_a_stored_error_with_a_look_up() -> None:
    """Executed behind the error: the look-up shows it. Not executed: the key is burnt, and the proof allows a new one."""
    assert story(BOTH, Fate(what="error after")) == (COMMITTED, 1, 1)
    assert story(BOTH, Fate(what="error before")) == (COMMITTED, 1, 3)


def test_a_refusal_of_a_repeated_call_says_nothing_of_the_first() -> None:
    """The first is still on its way when the second is refused: not refused, and right so: the first is executed."""
    promises = Promises(lookup="none", stores_errors=False)
    assert story(promises, Fate(late=1.0), Fate(what="refuse")) == (UNKNOWN, 1, 2)


@pytest.mark.parametrize("what", ["rate limited", "no connection", "busy"])
def test_a_429_of_a_repeated_call_says_nothing_of_the_first(what: str) -> None:
    """It stays pending and is sent again with the same key: executed once."""
    for promises in (KEYS_ONLY, BOTH, LOOKUP_ONLY):
        assert story(promises, Fate(lost=True), Fate(what=what))[:2] == (COMMITTED, 1)


@pytest.mark.parametrize("promises", [KEYS_ONLY, BOTH, LOOKUP_ONLY, NEITHER])
def test_a_storm_of_429s(promises: Promises) -> None:
    """A hundred in a row use up no attempts; then it is executed once."""
    assert story(promises, *[Fate(what="rate limited")] * 100) == (COMMITTED, 1, 101)


@pytest.mark.parametrize("promises", [KEYS_ONLY, BOTH, LOOKUP_ONLY, NEITHER])
def test_a_refusal(promises: Promises) -> None:
    """A definite no to the first call is the end."""
    assert story(promises, Fate(what="refuse")) == (REFUSED, 0, 1)


@pytest.mark.parametrize("promises", [KEYS_ONLY, BOTH, LOOKUP_ONLY, NEITHER])
def test_never_executed_until_the_attempts_are_used_up(promises: Promises) -> None:
    """Each call provably not executed: refused, not unknown."""
    assert story(promises, *[Fate(what="busy")] * 3) == (REFUSED, 0, 3)


def test_lost_and_never_executed_until_the_attempts_are_used_up() -> None:
    """Three calls that did nothing and told nothing: proven absent each time, then refused; no call counts twice."""
    assert story(LOOKUP_ONLY, *[Fate(what="error before")] * 9) == (REFUSED, 0, 3)
    assert story(Promises(stores_errors=False), *[Fate(what="error before")] * 9)[:2] == (REFUSED, 0)


def test_someone_else_did_it() -> None:
    """ "Already refunded", and the look-up shows an execution that is not ours: left out, not committed, not sent."""
    assert story(Promises(guards=True), foreign=1) == (SKIPPED, 0, 1)
    assert story(Promises(lookup="none", guards=True), foreign=1) == (UNKNOWN, 0, 1)


def test_our_own_execution_never_comes_back_as_already_done() -> None:
    """At a provider that refuses what was done already, the look-up comes before the second call: one call is made."""
    assert story(Promises(keys=False, guards=True), Fate(lost=True)) == (COMMITTED, 1, 1)


def test_look_ups_that_fail() -> None:
    """As many as attempts: then it is for a person, and nothing was sent again."""
    failed = Fate(lookup="failed")
    assert story(BOTH, Fate(lost=True), failed, failed, failed) == (UNKNOWN, 1, 1)
    assert story(BOTH, Fate(lost=True), failed, failed) == (COMMITTED, 1, 1)


def test_two_steps_with_a_loss_in_each() -> None:
    """Create, lost; fund, lost: each is executed once."""
    for promises in (Promises(steps=2), Promises(steps=2, lookup="none"), Promises(steps=2, keys=False)):
        state, executed, _ = story(promises, Fate(lost=True))
        assert (state, executed) == (COMMITTED, 2)
        state, executed, _ = story(promises, Fate(), Fate(lost=True))
        assert (state, executed) == (COMMITTED, 2)


def test_a_second_step_that_is_refused() -> None:
    """The first was executed, so the item is not called refused: a person has to look."""
    assert story(Promises(steps=2), Fate(), Fate(what="refuse")) == (UNKNOWN, 1, 2)
