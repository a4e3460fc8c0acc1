"""The same command finds the same ledger, from whatever folder it is given."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.crash.harness import Job, Provider, finish


def test_from_another_folder_nothing_is_paid_again(tmp_path: Path) -> None:
    """Without [ledger] the ledger is beside the batch file: a run from elsewhere finds its batch finished."""
    provider = Provider.start(tmp_path, keys="ignored")
    try:
        job = Job(tmp_path, provider.url, 20, keys=False, max_execution="100ms")
        path = job.write()
        text = path.read_text()
        path.write_text(text.replace('[ledger]\nurl = "sqlite:payonce.db"\n', ""))
        assert job.run()[0] == 0
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        process = subprocess.Popen(
            job.start_command(),
            cwd=elsewhere,
            env=job.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        code, last, err = finish(process)
        assert (code, last["items"]["committed"]) == (0, 20), err
        assert set(provider.executed().values()) == {1}
        assert not (elsewhere / "payonce.db").exists()
    finally:
        provider.close()


@pytest.mark.parametrize("also_wal", [True, False])
def test_a_lost_ledger_is_not_replaced(tmp_path: Path, also_wal: bool) -> None:
    """The ledger is gone, its mark is there: exit 3, nothing is sent; put back, the batch is finished."""
    provider = Provider.start(tmp_path)
    try:
        job = Job(tmp_path, provider.url, 5)
        job.write()
        assert job.run()[0] == 0
        kept = tmp_path / "kept"
        kept.mkdir()
        for file in tmp_path.glob("payonce.db*"):
            if file.suffix != ".head" and (also_wal or file.name == "payonce.db"):
                shutil.move(file, kept / file.name)
        calls = provider.stats()["calls"]
        code, last, _ = job.run()
        assert (code, last["error"]["code"]) == (3, "ledger_lost")
        assert provider.stats()["calls"] == calls
        for file in kept.iterdir():
            shutil.move(file, tmp_path / file.name)
        assert job.run()[0] == 0
        assert provider.stats()["calls"] == calls
    finally:
        provider.close()
