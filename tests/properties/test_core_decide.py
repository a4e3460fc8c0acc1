"""An item driven by the decisions alone is never executed twice, and never called what it is not, whatever a provider
that keeps its promises does with its calls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payonce.core.model import SECOND_US
from payonce.core.states import ItemState
from tests.properties.tinyfar import Done, Fate, Promises, TinyFar
from tests.properties.tinyrun import TinyRun

WHATS = (
    "execute",
    "execute",
    "refuse",
    "error before",
    "error after",
    "rate limited",
    "busy",
    "stop",
    "no connection",
)
# Mostly one thing at a time goes wrong: several at once hide each other.
PLAIN = st.builds(Fate, what=st.sampled_from(WHATS))
LOST = st.builds(Fate, what=st.sampled_from(WHATS), lost=st.just(True))
LATE = st.builds(Fate, what=st.sampled_from(WHATS), late=st.sampled_from([0.01, 0.3, 1.0]))
SLEEP_US = st.sampled_from([0, 1, 30, 61, 280, 600, 3000, 3700, 90_000]).map(lambda s: s * SECOND_US)
KILLED = st.builds(Fate, what=st.sampled_from(WHATS), crash=st.sampled_from(["before", "after"]), asleep_us=SLEEP_US)
MIXED = st.builds(
    Fate,
    what=st.sampled_from(WHATS),
    late=st.sampled_from([0.0, 0.3, 1.0]),
    lost=st.booleans(),
    slow=st.booleans(),
    crash=st.sampled_from(["no", "no", "before", "after"]),
    asleep_us=SLEEP_US,
    lookup=st.sampled_from(["answered", "answered", "failed", "shows young ones"]),
)
FATES = PLAIN | LOST | LATE | KILLED | MIXED
SCRIPTS = st.lists(FATES, max_size=8)
PROMISES = st.builds(
    Promises,
    retention_us=st.sampled_from([None, 0, 90, 700, 3600, 86_400]).map(lambda s: s if s is None else s * SECOND_US),
    stores_errors=st.booleans(),
    lag_us=st.sampled_from([0, 5, 3600]).map(lambda s: s * SECOND_US),
    max_execution_us=st.sampled_from([0, 1, 60, 900]).map(lambda s: s * SECOND_US),
    guards=st.booleans(),
    steps=st.sampled_from([1, 1, 2, 3]),
)
KEYS_AND_LOOKUPS = [(True, "none"), (True, "reference"), (True, "key"), (True, "neither"), (False, "reference")]
KEYS_AND_LOOKUPS += [(False, "neither"), (False, "none")]


def drive(promises: Promises, script: list[Fate], *, foreign: int = 0) -> TinyRun:
    """The whole life of one item. ``foreign``: so many executions by someone else are there before it."""
    far = TinyFar(promises)
    far.done.extend(Done(f"re_foreign_{n}", 0, 1000 + n, None, ours=False) for n in range(foreign))
    run = TinyRun(far, iter(script))
    run.run()
    return run


def ours(run: TinyRun) -> list[Done]:
    """What the provider executed for the item."""
    return [done for done in run.far.done if done.ours]


@pytest.mark.parametrize(("keys", "lookup"), KEYS_AND_LOOKUPS)
@settings(max_examples=100, deadline=None)
@given(promises=PROMISES, script=SCRIPTS, foreign=st.sampled_from([0, 0, 1, 2]))
def test_never_executed_twice_and_never_called_what_it_is_not(
    promises: Promises, script: list[Fate], foreign: int, keys: bool, lookup: str
) -> None:
    """Keys kept or ignored, windows, stored errors, late executions, lagging look-ups, crashes and long sleeps: each step
    at most once; committed means executed once, refused and skipped mean never executed, not even later."""
    run = drive(replace(promises, keys=keys, lookup=lookup), script, foreign=foreign)
    steps = [done.step for done in ours(run)]
    assert len(steps) == len(set(steps)), f"executed twice: {run.far.done}"
    match run.item.state:
        case ItemState.COMMITTED:
            assert sorted(steps) == list(range(promises.steps))
            assert run.item.reference == next(d.reference for d in ours(run) if d.step == promises.steps - 1)
        case ItemState.REFUSED | ItemState.SKIPPED:
            assert steps == []
        case state:
            assert state is ItemState.UNKNOWN


HARMLESS = FATES.filter(lambda f: f.what not in ("refuse", "stop")).map(
    lambda f: replace(f, lookup="answered" if f.lookup == "failed" else f.lookup)
)


@settings(max_examples=100, deadline=None)
@given(promises=PROMISES, script=st.lists(HARMLESS, max_size=12))
def test_keys_and_look_up_leave_nothing_to_a_person(promises: Promises, script: list[Fate]) -> None:
    """With both, and look-ups that are answered, an item ends committed, or refused when its attempts are used up: never
    unknown, whatever was lost, late or killed."""
    both = replace(promises, keys=True, lookup="reference", guards=False, steps=1)
    run = drive(both, script)
    assert run.item.state in (ItemState.COMMITTED, ItemState.REFUSED)


def is_doubtful(fate: Fate) -> bool:
    """Whether the caller cannot know what became of a call that meets this fate."""
    if fate.crash != "no":
        return True
    unanswered = fate.lost or fate.slow or fate.late > 0
    return fate.what != "no connection" and (unanswered or fate.what.startswith("error"))


@settings(max_examples=100, deadline=None)
@given(script=SCRIPTS)
def test_neither_keys_nor_look_up_never_sends_again(script: list[Fate]) -> None:
    """Where nothing is promised, the first call that may have been executed is the item's last one."""
    run = drive(Promises(keys=False, lookup="none"), script)
    doubtful = next((n for n, fate in enumerate(script) if is_doubtful(fate)), len(script))
    assert run.item.attempts <= doubtful + 1
    assert (run.item.state is ItemState.UNKNOWN) == (run.item.attempts == doubtful + 1 and doubtful < len(script))


@settings(max_examples=100, deadline=None)
@given(script=SCRIPTS, foreign=st.integers(1, 2))
def test_someone_else_s_execution_is_never_ours(script: list[Fate], foreign: int) -> None:
    """A provider that says "already done" for what someone else did: the item is never committed."""
    for lookup in ("reference", "neither"):
        run = drive(Promises(lookup=lookup, guards=True), script, foreign=foreign)
        assert run.item.state is not ItemState.COMMITTED
        assert ours(run) == []


def test_all_goes_well() -> None:
    """One call, one execution, committed, for every set of promises."""
    for keys in (True, False):
        for lookup in ("reference", "neither", "none"):
            run = drive(Promises(keys=keys, lookup=lookup, steps=2), [])
            assert (run.item.state, run.item.attempts) == (ItemState.COMMITTED, 2)


TIMEOUT_AND_MORE = [Fate(lost=True), Fate(crash="after", asleep_us=SECOND_US), Fate(late=1.0), Fate(what="error after")]


@pytest.mark.parametrize("fate", TIMEOUT_AND_MORE)
def test_a_runner_that_tries_again_with_a_new_key_pays_twice(fate: Fate) -> None:
    """The model has teeth: without the decisions, the same losses lead to two executions at this provider."""
    far = TinyFar(Promises())
    far.call(0, step=0, key="key-0-0", fate=fate)
    far.call(20 * SECOND_US, step=0, key="key-0-1", fate=Fate())
    far.advance(10**15)
    assert len(far.done) == 2


def test_the_same_key_after_its_window_pays_twice() -> None:
    """So does the same key once the provider has forgotten it; within its memory it does not."""
    for at_us, executions in ((3599 * SECOND_US, 1), (3600 * SECOND_US, 2)):
        far = TinyFar(Promises())
        far.call(0, step=0, key="key-0-0", fate=Fate(lost=True))
        far.call(at_us, step=0, key="key-0-0", fate=Fate())
        assert len(far.done) == executions


def test_a_call_that_starts_late_after_its_key_was_forgotten_pays_twice() -> None:
    """A resend inside the memory that starts executing after it: why the window leaves room for the longest execution."""
    promises = Promises(retention_us=700 * SECOND_US, max_execution_us=900 * SECOND_US)
    far = TinyFar(promises)
    far.call(0, step=0, key="key-0-0", fate=Fate(lost=True))
    far.call(300 * SECOND_US, step=0, key="key-0-0", fate=Fate(late=0.5))
    far.advance(10**15)
    assert len(far.done) == 2
