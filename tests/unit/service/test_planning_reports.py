"""What a plan expects and warns of, and which ledger is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from payonce.core.model import Limits
from payonce.service.addresses import absolute_ledger, ledger_url
from payonce.service.report_plan import expected


def test_the_expected_time_follows_the_rate() -> None:
    """1,000 items at 80 a second take 12.5 seconds."""
    found = expected(Limits(concurrency=64, rate_per_ks=80_000), left=1000)
    assert found.seconds == 12.5
    assert "configured rate" in found.basis


def test_without_a_rate_it_is_a_guess_that_says_so() -> None:
    """So it is where the concurrency is too low for the rate."""
    assert expected(Limits(concurrency=10), left=100).basis.startswith("a guess")
    assert expected(Limits(concurrency=1, rate_per_ks=80_000), left=100).basis.startswith("a guess")


def test_nothing_left_takes_no_time() -> None:
    """A finished batch has no expected duration."""
    assert expected(Limits(), left=0).seconds is None


def test_several_steps_take_several_calls() -> None:
    """An operation of three calls takes three times as long."""
    assert expected(Limits(concurrency=64, rate_per_ks=10_000), left=10, steps=3).seconds == 3.0


def test_the_order_of_ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option, the environment, the batch file, the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PAYONCE_LEDGER", raising=False)
    assert ledger_url(None) == f"sqlite:{tmp_path}/payonce.db"
    assert ledger_url(None, "sqlite:/f.db") == "sqlite:/f.db"
    monkeypatch.setenv("PAYONCE_LEDGER", "sqlite:e.db")
    assert ledger_url(None, "sqlite:/f.db") == f"sqlite:{tmp_path}/e.db"
    assert ledger_url("sqlite:o.db", "sqlite:/f.db") == f"sqlite:{tmp_path}/o.db"


@pytest.mark.parametrize("url", ["postgresql://host/db", "sqlite:/abs/x.db", "sqlite"])
def test_other_addresses_stay_as_they_are(url: str) -> None:
    """Only the path of a file is made absolute."""
    assert absolute_ledger(url, base=Path("/base")) == url
