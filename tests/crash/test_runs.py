"""Whole runs against the simulator's server: faults mixed in, limits kept, signals obeyed. No ledger is read by the
auditor: what was executed is what the provider says it executed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.crash.harness import Job, Provider, finish

FULL = bool(os.environ.get("PAYONCE_TORTURE"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the test's own."""
    return tmp_path


def test_faults_mixed_in(folder: Path) -> None:
    """Stored 500s, resets before and after, 429s at 3-5 % each: all committed, none doubled."""
    faults = {"error_500_after": 0.02, "error_500_before": 0.02, "reset_before": 0.04, "reset_after": 0.04}
    faults["rate_limited"] = 0.05
    provider = Provider.start(folder, latency="2ms", probability=faults)
    try:
        count = 5000 if FULL else 1000
        job = Job(folder, provider.url, count, max_execution="500ms", timeout="1s", limits={"attempts": 10})
        job.write()
        code, last, err = job.run()
        executed = provider.executed()
        assert code == 0, (last, err)
        assert sum(executed.values()) == len(executed) == count
    finally:
        provider.close()


def test_lost_answers_resumed_after_the_key_window(folder: Path) -> None:
    """A key window of 1 s, answers lost, killed, resumed after the window: the look-up decides, none doubled."""
    provider = Provider.start(folder, key_retention="1s", probability={"silent_after": 0.2})
    try:
        job = Job(folder, provider.url, 100, retention="1s", max_execution="300ms", timeout="500ms", concurrency=20)
        job.write()
        first = job.start()
        while provider.stats()["calls"] < 40:
            time.sleep(0.01)
        first.kill()
        first.communicate()
        time.sleep(1.5)
        code, last, err = job.run()
        executed = provider.executed()
        assert code == 0, (last, err)
        assert sum(executed.values()) == len(executed) == 100
    finally:
        provider.close()


def test_key_window_over_and_no_lookup(folder: Path) -> None:
    """Without a look-up, what is older than the window waits for a person and is never sent again."""
    provider = Provider.start(folder, key_retention="1s", lookup=False, faults=[{"kind": "silent_after", "first": 5}])
    try:
        job = Job(folder, provider.url, 40, lookup=False, retention="1s", timeout="700ms", concurrency=5)
        job.write()
        code, last, err = job.run()
        assert code == 1, err
        assert last["items"]["unknown"] == 5
        assert max(provider.executed().values()) == 1
    finally:
        provider.close()


def test_executed_late_with_lagging_lookups(folder: Path) -> None:
    """A connection reset now, executed 1.5 s later, look-ups lagging 1 s (declared), keys ignored: none doubled."""
    late = {"kind": "late_execution", "after": "1500ms", "first": 30}
    provider = Provider.start(folder, keys="ignored", lookup_lag="1s", faults=[late])
    try:
        job = Job(folder, provider.url, 100, keys=False, lag="1s", max_execution="2s", timeout="1s")
        job.write()
        code, last, err = job.run()
        executed = provider.executed()
        assert code == 0, (last, err)
        assert sum(executed.values()) == len(executed) == 100
    finally:
        provider.close()


def test_a_finished_batch_makes_no_call(folder: Path) -> None:
    """Running a finished batch again makes no call, look-ups included, and takes hardly any time."""
    provider = Provider.start(folder)
    try:
        count = 20_000 if FULL else 3000
        job = Job(folder, provider.url, count)
        job.write()
        assert job.run()[0] == 0
        before = provider.stats()
        start = time.monotonic()
        code, last, _ = job.run()
        took = time.monotonic() - start
        after = provider.stats()
        assert (code, last["items"]["committed"]) == (0, count)
        assert (after["calls"], after["lookups"]) == (before["calls"], before["lookups"])
        assert took < 10  # a bound against hanging; the real figure is measured, not asserted
    finally:
        provider.close()


def test_sigterm_ends_within_the_grace_period(folder: Path) -> None:
    """SIGTERM with 200 ms calls in flight: exit 75, nothing pending; the same command finishes."""
    provider = Provider.start(folder, latency="200ms")
    try:
        job = Job(folder, provider.url, 2000, concurrency=32, limits={"grace": "10s"})
        job.write()
        process = job.start()
        while provider.stats()["calls"] < 100:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        start = time.monotonic()
        code, last, err = finish(process, 20)
        assert code == 75, err
        assert time.monotonic() - start < 10
        assert last["state"] == "interrupted"
        assert last["items"]["pending"] == 0
        assert last["items"]["committed"] == sum(provider.executed().values())
        provider.post("/_sim/config", {"latency": "0ms"})
        assert job.run()[0] == 0
        assert sum(provider.executed().values()) == len(provider.executed()) == 2000
    finally:
        provider.close()


def test_the_rate_holds(folder: Path) -> None:
    """`rate = "180/s"` against a provider that allows 200/s: never over 216 in a second, almost no 429."""
    provider = Provider.start(folder, rate_limit=200)
    try:
        job = Job(folder, provider.url, 900, limits={"rate": "180/s"})
        job.write()
        code, last, err = job.run()
        stats = provider.stats()
        assert code == 0, (last, err)
        assert stats["max_calls_in_one_second"] <= 216
        assert stats["rate_limited"] <= 9
    finally:
        provider.close()


def test_it_finds_the_limit_by_itself(folder: Path) -> None:
    """Without a configured rate a provider's limit is found, 429s use up no attempts, and nothing is given up."""
    provider = Provider.start(folder, rate_limit=200)
    try:
        job = Job(folder, provider.url, 1500, limits={"attempts": 2})
        job.write()
        code, last, err = job.run()
        assert code == 0, (last, err)
        assert last["items"]["committed"] == 1500
        assert provider.stats()["rate_limited"] < 1500
    finally:
        provider.close()


def test_the_budget_holds(folder: Path) -> None:
    """A budget of 1,000.00 stops the batch with exit 4: never a cent over, within one item of it."""
    provider = Provider.start(folder, latency="5ms")
    try:
        job = Job(folder, provider.url, 400, limits={"budget": {"USD": "1000.00"}})
        job.amounts = [f"{5 + k % 7}.{k % 100:02d}" for k in range(400)]
        job.write()
        code, last, err = job.run()
        spent = sum(e["amount_minor"] for e in provider.get("/_sim/effects"))
        assert code == 4, (last, err)
        assert last["state"] == "stopped"
        assert 100_000 - 1199 <= spent <= 100_000
    finally:
        provider.close()


def test_partial_refunds_of_one_charge_follow_each_other(folder: Path) -> None:
    """300 partial refunds on 30 charges: never two of one charge in flight, each executed once."""
    provider = Provider.start(folder, latency="10ms")
    try:
        job = Job(folder, provider.url, 300, targets=[f"ch_{k % 30}" for k in range(300)])
        job.write()
        code, last, err = job.run()
        stats = provider.stats()
        assert code == 0, (last, err)
        assert stats["max_in_flight_per_target"] == 1
        assert stats["executed"] == len(provider.executed()) == 300
    finally:
        provider.close()


def test_one_cent_more_stops_the_batch(folder: Path) -> None:
    """A provider that executes one cent more than asked: the batch stops at once with exit 4 and names the item."""
    provider = Provider.start(folder, latency="5ms", script={"r40": ["other_amount"]})
    try:
        job = Job(folder, provider.url, 2000, concurrency=8)
        job.write()
        code, last, err = job.run()
        assert code == 4, (last, err)
        assert "r40" in last["reason"]
        assert provider.stats()["executed"] < 200
        again, _, _ = job.run()
        assert again == 4
    finally:
        provider.close()


def test_pause_resume_and_cancel_reach_a_running_process(folder: Path) -> None:
    """pause stops new calls of a running process, resume lets it go on, cancel ends it."""
    provider = Provider.start(folder, latency="20ms")
    try:
        job = Job(folder, provider.url, 3000, concurrency=4)
        job.write()
        process = job.start()
        while provider.stats()["calls"] < 40:
            time.sleep(0.02)
        assert job.command("pause", job.name)[0] == 0
        time.sleep(0.5)
        calls = provider.stats()["calls"]
        time.sleep(0.5)
        assert provider.stats()["calls"] == calls
        assert job.command("resume", job.name)[0] == 0
        while provider.stats()["calls"] < calls + 40:
            time.sleep(0.02)
        assert job.command("cancel", job.name)[0] == 0
        code, last, err = finish(process, 30)
        assert code == 0, err
        assert last["items"]["skipped"] > 0
        assert last["items"]["pending"] == last["items"]["planned"] == 0
        assert last["items"]["committed"] == sum(provider.executed().values())
    finally:
        provider.close()
