"""What people do to a batch: retry, resolve, raise a limit, stop it by tripwires. Real processes, one provider."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.crash.harness import Job, Provider

REFUSED = {"kind": "refuse", "code": "card_declined", "status": 402}


def test_refused_items_are_retried_under_a_new_key(tmp_path: Path) -> None:
    """A stored refusal would be replayed under the old key: the retry has another, and succeeds."""
    provider = Provider.start(tmp_path, script={"r3": [REFUSED], "r5": [REFUSED]})
    try:
        job = Job(tmp_path, provider.url, 10)
        job.write()
        code, last, _ = job.run()
        assert (code, last["items"]["refused"], last["items"]["committed"]) == (1, 2, 8)
        assert job.command("retry", job.name, "--reason", "the customer has another card")[0] == 0
        code, last, err = job.run()
        assert (code, last["items"]["committed"]) == (0, 10), err
        assert set(provider.executed().values()) == {1}
    finally:
        provider.close()


def test_unknown_items_are_resolved_by_a_person(tmp_path: Path) -> None:
    """Committed with a reference, refused, or planned again; only the last one is sent."""
    provider = Provider.start(tmp_path, lookup=False, script={"r0": ["silent_after"], "r1": ["hang"], "r2": ["hang"]})
    try:
        job = Job(tmp_path, provider.url, 6, keys=False, lookup=False, timeout="300ms")
        job.write()
        code, last, _ = job.run()
        assert (code, last["items"]["unknown"]) == (1, 3)
        reason = ("--reason", "seen in the dashboard")
        there = ("--reference", "re_dashboard", "--amount", "1.00")
        assert job.command("resolve", job.name, "r0", "--as", "committed", *there, *reason)[0] == 0
        assert job.command("resolve", job.name, "r1", "--as", "refused", *reason)[0] == 0
        assert job.command("resolve", job.name, "r2", "--as", "planned", *reason)[0] == 0
        code, last, err = job.run()
        assert (code, last["items"]["committed"], last["items"]["refused"]) == (1, 5, 1), err
        assert provider.executed() == {"r0": 1, "r2": 1, "r3": 1, "r4": 1, "r5": 1}
    finally:
        provider.close()


@pytest.mark.parametrize("limit", [{"stop_after_refusals": 5}, {"stop_after_consecutive": 5}])
def test_tripwires(tmp_path: Path, limit: dict[str, int]) -> None:
    """A provider that refuses everything stops the batch with exit 4; it goes on when the cause is gone."""
    provider = Provider.start(tmp_path, latency="5ms", faults=[REFUSED])
    try:
        job = Job(tmp_path, provider.url, 200, concurrency=4, limits=dict(limit))
        job.write()
        code, last, err = job.run()
        assert (code, last["state"]) == (4, "stopped"), err
        assert 5 <= last["items"]["refused"] <= 12
        provider.post("/_sim/config", {"faults": []})
        code, last, err = job.run()
        assert code == 1, err
        assert last["items"]["committed"] + last["items"]["refused"] == 200
    finally:
        provider.close()


def test_a_raised_budget_lets_the_batch_go_on(tmp_path: Path) -> None:
    """The same command with a higher budget finishes the batch."""
    provider = Provider.start(tmp_path)
    try:
        job = Job(tmp_path, provider.url, 50, amounts=["10.00"] * 50, limits={"budget": {"USD": "105.00"}})
        job.write()
        code, last, _ = job.run()
        assert (code, last["items"]["committed"]) == (4, 10)
        job.limits = {"budget": {"USD": "500.00"}}
        job.write()
        code, last, err = job.run()
        assert (code, last["items"]["committed"]) == (0, 50), err
        assert sum(provider.executed().values()) == 50
    finally:
        provider.close()


def test_bad_credentials_stop_the_batch(tmp_path: Path) -> None:
    """A 401 stops everything at once, nothing is refused; with good credentials the same command finishes."""
    provider = Provider.start(tmp_path, latency="5ms", faults=[{"kind": "stop_401"}])
    try:
        job = Job(tmp_path, provider.url, 100, concurrency=4)
        job.write()
        code, last, err = job.run()
        assert (code, last["state"], last["items"]["refused"]) == (4, "stopped", 0), err
        assert provider.stats()["calls"] < 30
        provider.post("/_sim/config", {"faults": []})
        code, last, err = job.run()
        assert (code, last["items"]["committed"]) == (0, 100), err
    finally:
        provider.close()


def test_an_edited_input_sends_nothing(tmp_path: Path) -> None:
    """An amount changed between plan and run: exit 2, the item named, nothing sent."""
    provider = Provider.start(tmp_path)
    try:
        job = Job(tmp_path, provider.url, 20)
        path = job.write()
        assert job.command("plan", str(path))[0] == 0
        text = (tmp_path / "input.csv").read_text()
        (tmp_path / "input.csv").write_text(text.replace("r7,ch_7,8.07", "r7,ch_7,80.70"))
        code, last, _ = job.run()
        assert code == 2
        assert "r7" in str(last)
        assert provider.stats()["calls"] == 0
        (tmp_path / "input.csv").unlink()
        code, _, err = job.run()
        assert code == 0, err
        assert "gone" in err
    finally:
        provider.close()


def test_every_problem_of_a_bad_input_is_listed(tmp_path: Path) -> None:
    """All problems in one list with their lines; nothing is sealed and nothing sent."""
    provider = Provider.start(tmp_path)
    try:
        job = Job(tmp_path, provider.url, 8)
        job.write()
        rows = (tmp_path / "input.csv").read_text().splitlines()
        rows[2] = "1.23E+15,ch_1,2.01,USD"
        rows[4] = "r3,ch_3,4.005,USD"
        rows[6] = "r5,ch_5,-1.00,USD"
        rows[8] = "r0,ch_7,8.07,USD"
        (tmp_path / "input.csv").write_text("\n".join(rows) + "\n")
        code, last, _ = job.run()
        assert code == 2
        lines = {p["line"] for p in last["error"]["problems"]}
        assert {3, 5, 7, 9} <= lines
        assert provider.stats()["calls"] == 0
    finally:
        provider.close()


def test_pending_items_of_a_cancelled_batch_are_decided(tmp_path: Path) -> None:
    """Killed, then cancelled: the next run decides what was pending, sends nothing new, and is done."""
    provider = Provider.start(tmp_path, latency="100ms")
    try:
        job = Job(tmp_path, provider.url, 300, concurrency=8, max_execution="300ms", timeout="1s")
        job.write()
        process = job.start()
        until = time.monotonic() + 60
        while provider.stats()["calls"] < 50:
            assert time.monotonic() < until
            time.sleep(0.02)
        process.kill()
        process.communicate()
        assert job.command("cancel", job.name)[0] == 0
        executed = sum(provider.executed().values())
        code, last, err = job.run()
        assert code == 0, err
        assert sum(provider.executed().values()) == executed == last["items"]["committed"]
        assert last["items"]["planned"] == last["items"]["pending"] == 0
    finally:
        provider.close()
