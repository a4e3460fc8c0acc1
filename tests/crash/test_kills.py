"""Processes really killed by SIGKILL: whatever the provider offers, no item is executed twice and none is lost.

`PAYONCE_TORTURE=1` runs them at full size (5,000 items, six kills); by default they are smaller.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from payonce.engine.crashpoints import CRASH_POINTS
from tests.crash.harness import Job, Provider, finish, kill_at

FULL = bool(os.environ.get("PAYONCE_TORTURE"))
ITEMS = 5000 if FULL else 1200
KILLS = 6 if FULL else 3


def killed_runs(job: Job, provider: Provider, kills: int) -> int:
    """Kills the run so many times, spread over its items; returns how many kills there were."""
    done = 0
    for k in range(kills):
        wanted = provider.stats()["calls"] + max(1, job.items // (kills + 2)) + 37 * k % 29
        done += kill_at(job.start(), provider, wanted)
    return done


@pytest.mark.parametrize(
    ("keys", "lookup"), [(True, True), (True, False), (False, True)], ids=["both", "keys", "lookup only"]
)
def test_killed_again_and_again(tmp_path: Path, keys: bool, lookup: bool) -> None:
    """With keys, with look-up only (the provider ignores keys), with both: each item is executed exactly once."""
    provider = Provider.start(tmp_path, latency="20ms", keys="honoured" if keys else "ignored")
    try:
        job = Job(tmp_path, provider.url, ITEMS, keys=keys, lookup=lookup, timeout="1s", limits={"lease": "5s"})
        job.write()
        assert killed_runs(job, provider, KILLS) == KILLS
        code, last, err = job.run()
        executed = provider.executed()
        assert code == 0, err
        assert last["items"]["committed"] == ITEMS
        assert sum(executed.values()) == len(executed) == ITEMS
    finally:
        provider.close()


def test_killed_with_neither_keys_nor_lookup(tmp_path: Path) -> None:
    """Nothing is sent again: at most `concurrency` items a kill are unknown, and every item is accounted for."""
    provider = Provider.start(tmp_path, latency="20ms", keys="ignored", lookup=False)
    try:
        job = Job(tmp_path, provider.url, ITEMS, keys=False, lookup=False, timeout="1s")
        job.write()
        kills = killed_runs(job, provider, KILLS)
        code, last, err = job.run()
        executed, items = provider.executed(), last["items"]
        assert code == (1 if items["unknown"] else 0), err
        assert max(executed.values()) == 1
        assert items["unknown"] <= kills * 64
        assert items["committed"] + items["unknown"] == items["total"] == ITEMS
        assert items["committed"] <= sum(executed.values())
    finally:
        provider.close()


# Those of long answers are for calls: tests/unit/calls.
_OF_CALLS = ("after_answer_begun", "after_output")


@pytest.mark.parametrize("point", [point for point in CRASH_POINTS if point not in _OF_CALLS])
@pytest.mark.parametrize("keys", [True, False], ids=["keys", "lookup only"])
def test_killed_at_every_crash_point(tmp_path: Path, point: str, keys: bool) -> None:
    """Dying at any named instant, then running the same command again, executes each item exactly once."""
    faults = {"error_500_after": 0.1, "reset_after": 0.1, "reset_before": 0.1}
    provider = Provider.start(tmp_path, keys="honoured" if keys else "ignored", probability=faults)
    try:
        job = Job(tmp_path, provider.url, 60, keys=keys, max_execution="100ms", timeout="500ms", concurrency=8)
        job.limits = {"lease": "3s", "attempts": 20}
        job.write()
        code, _, err = job.run(PAYONCE_CRASH_AT=f"{point}:3" if point != "before_finish" else point)
        assert code in (0, -signal.SIGKILL), err
        code, last, err = job.run()
        executed = provider.executed()
        assert code == 0, (last, err)
        assert sum(executed.values()) == len(executed) == 60
    finally:
        provider.close()


def test_a_frozen_worker_wakes_after_its_lease(tmp_path: Path) -> None:
    """A worker stopped past its lease while another takes over, then woken, doubles nothing; both end cleanly."""
    provider = Provider.start(tmp_path, latency="20ms", keys="ignored")
    try:
        job = Job(tmp_path, provider.url, 600, keys=False, timeout="1s", max_execution="200ms", concurrency=8)
        job.limits = {"lease": "3s"}
        job.write()
        first = job.start()
        while provider.stats()["calls"] < 100:
            time.sleep(0.02)
        first.send_signal(signal.SIGSTOP)
        second = job.start()
        time.sleep(5)
        first.send_signal(signal.SIGCONT)
        code_second, last, err = finish(second, 120)
        code_first, _, err_first = finish(first, 120)
        executed = provider.executed()
        assert (code_first, code_second) == (0, 0), (err_first, err)
        assert last["items"]["committed"] == 600
        assert sum(executed.values()) == len(executed) == 600
    finally:
        provider.close()


def test_three_processes_on_one_batch(tmp_path: Path) -> None:
    """Three processes started together on a provider that ignores keys: each item once, all of them end with 0."""
    provider = Provider.start(tmp_path, latency="20ms", keys="ignored")
    try:
        job = Job(tmp_path, provider.url, ITEMS, keys=False, concurrency=16)
        job.write()
        ended = [finish(p, 200) for p in [job.start() for _ in range(3)]]
        executed = provider.executed()
        assert [code for code, _, _ in ended] == [0, 0, 0], [err for _, _, err in ended]
        assert sum(executed.values()) == len(executed) == ITEMS
        assert ended[0][1]["items"]["committed"] == ITEMS
    finally:
        provider.close()
