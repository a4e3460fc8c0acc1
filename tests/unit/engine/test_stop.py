"""Asking a run to end: the first reason counts, a ledger fault counts more, a second signal hurries."""

from __future__ import annotations

import itertools

import pytest

from payonce.engine.stop import Ending, StopRequest
from tests.unit.engine.virtualtime import VirtualClock, run_virtually


def test_nothing_asked() -> None:
    """A new run has no reason to end."""
    stop = StopRequest()
    assert not stop.is_set and not stop.is_hurried and stop.end is None


@pytest.mark.parametrize(("first", "second"), list(itertools.product(Ending, Ending)))
def test_which_of_two_reasons_counts(first: Ending, second: Ending) -> None:
    """The first one, unless it was only a lost lease or the second is the first ledger fault."""
    stop = StopRequest()
    stop.request(first, code="first")
    stop.request(second, code="second")
    later = first is Ending.LEASE_LOST or (second is Ending.HALTED and first is not Ending.HALTED)
    assert stop.end is not None and stop.end.code == ("second" if later else "first")


def test_a_second_signal_hurries() -> None:
    """The first asks; the second ends at once, with the same reason."""
    stop = StopRequest()
    stop.signal()
    assert (stop.is_set, stop.is_hurried) == (True, False)
    stop.signal()
    assert stop.is_hurried
    assert stop.end is not None and (stop.end.ending, stop.end.code) == (Ending.INTERRUPTED, "signal")


@pytest.mark.parametrize("ending", [ending for ending in Ending if ending is not Ending.LEASE_LOST])
def test_a_signal_after_another_reason_hurries_and_keeps_it(ending: Ending) -> None:
    """A run that is ending already is hurried by the first signal, and still tells why it ended."""
    stop = StopRequest()
    stop.request(ending, code="why")
    stop.signal()
    assert stop.is_hurried and stop.end is not None and stop.end.code == "why"


@pytest.mark.parametrize("ending", list(Ending))
def test_only_a_lost_lease_is_forgotten(ending: Ending) -> None:
    """Before the worker joins again; every other reason stands."""
    stop = StopRequest()
    stop.request(ending, code="c")
    assert stop.forget_lost_lease() == (ending is Ending.LEASE_LOST)
    assert stop.is_set == (ending is not Ending.LEASE_LOST)
    assert not StopRequest().forget_lost_lease()


def test_who_waits_for_the_end_is_told() -> None:
    """Waiting ends with the request, and waiting for the hurry with the second signal."""

    async def main(_clock: VirtualClock) -> None:
        stop = StopRequest()
        stop.signal()
        await stop.wait()
        stop.signal()
        await stop.wait_hurry()

    run_virtually(main)
