"""Waiting between calls: bounded, jittered; and a pace that finds the limit of a provider by its 429s."""

from __future__ import annotations

from collections import deque

import pytest

from payonce.core.backoff import BASE_US, CAP_US, LONGEST_WAIT_US, Pace, full_jitter_us
from payonce.core.model import SECOND_US

ALMOST_ONE = 1 - 2**-53


@pytest.mark.parametrize(
    ("attempt", "ceiling_us"),
    [(0, 200_000), (1, 200_000), (2, 400_000), (3, 800_000), (8, 25_600_000), (9, 30_000_000), (10**9, 30_000_000)],
)
def test_the_ceiling_doubles_up_to_its_cap(attempt: int, ceiling_us: int) -> None:
    """200 ms, 400 ms, 800 ms, ... and never more than 30 s, however many attempts there were."""
    assert full_jitter_us(attempt, rand=ALMOST_ONE) == pytest.approx(ceiling_us, abs=1)


def test_jitter_is_full() -> None:
    """Uniform from nothing to the ceiling, but at least a millisecond, so that refusals never make a loop spin."""
    assert full_jitter_us(5, rand=0.0) == 1000
    assert full_jitter_us(5, rand=0.5) == 1_600_000
    assert full_jitter_us(1, rand=0.5, base_us=100, cap_us=100) == 1000


def test_no_provider_makes_a_process_wait_for_hours() -> None:
    """What is waited for inside a run is bounded, and far below the window of any key."""
    assert BASE_US < CAP_US < LONGEST_WAIT_US == 15 * 60 * SECOND_US


def test_a_burst_of_429s_cuts_once() -> None:
    """Two hundred calls that met the same limit at once are one lesson, not two hundred."""
    pace = Pace().cut(accepted_per_s=100, now_us=10 * SECOND_US)
    assert pace.per_ks == 90_000
    for later_us in (0, 1, 499_999):
        assert pace.cut(accepted_per_s=100, now_us=10 * SECOND_US + later_us) is pace
    assert pace.cut(accepted_per_s=100, now_us=10 * SECOND_US + 500_000).per_ks == 81_000


def test_a_429_after_a_raise_counts_at_once() -> None:
    """A raise that was too much is taken back with the first 429 that it brings."""
    raised = Pace().cut(accepted_per_s=100, now_us=0).grow(now_us=SECOND_US)
    assert raised.per_ks == 94_500
    assert raised.cut(accepted_per_s=90, now_us=SECOND_US + 1).per_ks == 81_000


def test_nothing_is_paced_that_was_never_refused() -> None:
    """Without a 429 there is no pace to raise."""
    assert Pace().grow(now_us=100 * SECOND_US).per_ks is None


def test_never_slower_than_one_call_a_second() -> None:
    """A provider that takes nothing at all is still asked once a second; patience is another matter."""
    pace = Pace()
    for second in range(20):
        pace = pace.cut(accepted_per_s=0, now_us=second * SECOND_US)
    assert pace.per_ks == 1000


def test_grows_once_a_second_at_most() -> None:
    """However many calls are taken, the pace is raised by a twentieth (at least half a call) once a second, by a tenth
    where the last cut was long ago."""
    pace = Pace(100_000, 0, 0)
    assert pace.grow(now_us=SECOND_US - 1) is pace
    once = pace.grow(now_us=SECOND_US)
    assert once.per_ks == 105_000 and once.grow(now_us=SECOND_US + 1) is once
    assert Pace(1000, 0).grow(now_us=SECOND_US).per_ks == 1500
    assert Pace(100_000, 0, 0).grow(now_us=6 * SECOND_US).per_ks == 110_000


def calls_at_a_limit(limit: int, *, latency_us: int, seconds: int) -> list[tuple[int, bool]]:
    """The calls that a client makes at a provider that takes at most ``limit`` in any one second, and which it took."""
    pace, now_us, wait_until = Pace(), 0, 0
    taken: deque[int] = deque()  # as the provider counts
    answered: deque[int] = deque()  # calls taken, as the client hears of it
    on_the_way: deque[tuple[int, bool]] = deque()
    calls: list[tuple[int, bool]] = []
    while now_us < seconds * SECOND_US:
        while on_the_way and on_the_way[0][0] <= now_us:
            at_us, took = on_the_way.popleft()
            if took:
                answered.append(at_us)
                pace = pace.grow(now_us=at_us)
                continue
            while answered and answered[0] < at_us - SECOND_US:
                answered.popleft()
            pace = pace.cut(accepted_per_s=len(answered), now_us=at_us)
            wait_until = at_us + 100_000
        if now_us < wait_until:
            now_us = wait_until
            continue
        while taken and taken[0] <= now_us - SECOND_US:
            taken.popleft()
        took = len(taken) < limit
        if took:
            taken.append(now_us)
        calls.append((now_us, took))
        on_the_way.append((now_us + latency_us, took))
        now_us += 1000 * SECOND_US // (pace.per_ks or 2_000_000)
    return calls


@pytest.mark.parametrize("latency_us", [5_000, 50_000, 300_000])
@pytest.mark.parametrize("limit", [25, 200])
def test_finds_a_limit_and_stays_just_under_it(limit: int, latency_us: int) -> None:
    """In its second minute: more than four fifths of what the provider takes, and at most one call in fifty refused."""
    calls = [
        took for at_us, took in calls_at_a_limit(limit, latency_us=latency_us, seconds=120) if at_us > 60 * SECOND_US
    ]
    assert limit * 60 * 0.8 < sum(calls) <= limit * 60
    assert calls.count(False) <= len(calls) / 50
