"""Progress: what is told, from the ledger's counts alone."""

from __future__ import annotations

import pytest

from payonce.cli.common import Common
from payonce.cli.progress import Meter, Progress, bar, line
from payonce.core.model import Batch, BatchSpec, Status, Tally
from payonce.core.states import BatchState, ItemState


def status(**counts: int) -> Status:
    """A running batch of items of 10.00 USD."""
    tallies = tuple(Tally(ItemState(name), "USD", count, count * 1000) for name, count in counts.items())
    spec = BatchSpec("b", "refund", "http")
    return Status(Batch(spec, 1, BatchState.RUNNING, "", sum(counts.values())), tallies)


def test_a_line_tells_counts_pace_and_money() -> None:
    """Done of all, items a second, time left, money, and what a person may have to look at."""
    meter = Meter()
    meter.add(at_s=0.0, done=0)
    meter.add(at_s=10.0, done=50)
    told = line(status(committed=48, refused=1, unknown=1, pending=10, planned=40), meter)
    assert told == "50/100 done, 5.0/s, 10s left; 480.00 of 1000.00 USD, 10 pending, 1 refused, 1 unknown"


def test_waiting_for_a_lookup_is_said() -> None:
    """When only pending items are left and nothing moves, that is no fault."""
    meter = Meter()
    meter.add(at_s=0.0, done=5)
    meter.add(at_s=9.0, done=5)
    assert "waiting until what is pending can be looked up" in line(status(committed=5, pending=2), meter)


def test_the_pace_forgets() -> None:
    """Only the last quarter of a minute counts."""
    meter = Meter()
    for second in range(100):
        meter.add(at_s=float(second), done=0 if second < 50 else (second - 50) * 3)
    assert meter.per_s == pytest.approx(3.0)


def test_the_bar_is_full_only_at_the_end() -> None:
    """One item left is not full."""
    assert bar(status(committed=100)).count("╌") == 0
    assert bar(status(committed=99, planned=1)).count("╌") >= 1


def test_elsewhere_than_on_a_terminal_a_plain_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """No control characters, on standard error, and none at all with ``--quiet``."""
    with Progress(Common()) as progress:
        progress._shown_s = -100.0
        progress(status(committed=1, planned=1))
        progress(status(committed=2))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "1/2 done; 10.00 of 20.00 USD\n"
    with Progress(Common(quiet=True)) as silent:
        silent._shown_s = -100.0
        silent(status(committed=1))
    assert capsys.readouterr().err == ""
