"""The tool that kills runs: some kills run clean, and it sees what it is there to see."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from payonce.core.states import ItemState
from tests.crash.harness import Job, Provider
from tests.crash.torture import Round, Tally


def test_some_kills_run_clean(tmp_path: Path) -> None:
    """A few on a SQLite and a JSON Lines ledger, with the seed and the table on the screen; exit code 0."""
    command = [sys.executable, "-m", "tests.crash.torture", "--kills", "2", "--seconds", "60", "--seed", "3"]
    stores = ["--stores", "jsonl,sqlite", "--folder", str(tmp_path / "torture")]
    done = subprocess.run([*command, *stores], capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 3" in done.stdout
    assert "doubled" in done.stdout


def test_it_sees_a_second_execution_and_a_lost_item(tmp_path: Path) -> None:
    """An item executed twice in the provider's books, and items whose state the books contradict, are counted."""
    provider = Provider.start(tmp_path, latency="1ms", keys="ignored")
    try:
        job = Job(tmp_path, provider.url, 10, ledger=f"sqlite:{tmp_path / 'payonce.db'}")
        job.env = {"XDG_STATE_HOME": str(tmp_path / "state")}
        job.write()
        assert job.run()[0] == 0
        call = {"charge": "ch_3", "amount": 404, "currency": "usd", "metadata": {"ref": "r3"}}
        provider.post("/v1/refunds", call, authorization="Bearer sim_secret_token")
        tally = Tally()
        round_ = Round(job, provider, random.Random(1), tally, alone=False)
        round_.close(left_open=False)
        assert (tally.doubled, tally.lost, tally.items) == (1, 0, 10)
        for state, executed in (
            (None, 0), (ItemState.PENDING, 1), (ItemState.PLANNED, 0), (ItemState.COMMITTED, 0), (ItemState.REFUSED, 1),
        ):  # fmt: skip
            assert round_._is_lost("r1", state, executed)
        assert not round_._is_lost("r1", ItemState.UNKNOWN, 1)
    finally:
        provider.close()
