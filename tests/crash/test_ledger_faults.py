"""The ledger's disk is really full, its files may not grow, or an older copy was put back. No further call is made, answers go
to the spool, exit code 3; when there is room again the same command finishes and nothing was executed twice."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.disks import fill, small
from tests.crash.harness import Job, Provider, finish


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 megabytes, for the ledger alone."""
    with small() as found:
        yield found.folder


def until_calls(provider: Provider, calls: int) -> None:
    """Waits until the provider has seen so many calls."""
    end = time.monotonic() + 60
    while provider.stats()["calls"] < calls:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("keys", [True, False], ids=["keys", "lookup only"])
def test_full_disk(tmp_path: Path, disk: Path, keys: bool) -> None:
    """A full disk: exit 3, calls stop, answers in the spool; with room again the same command finishes."""
    provider = Provider.start(tmp_path, latency="50ms", keys="honoured" if keys else "ignored")
    try:
        job = Job(tmp_path, provider.url, 2000, keys=keys, concurrency=16, ledger=f"sqlite:{disk}/payonce.db")
        job.write()
        process = job.start()
        until_calls(provider, 200)
        filler = fill(disk)
        code, last, err = finish(process, 60)
        assert code == 3, (last, err)
        assert last["lost"] == []
        calls = provider.stats()["calls"]
        filler.unlink()
        code, last, err = job.run()
        executed = provider.executed()
        assert code == 0, (last, err)
        assert calls < 2000
        assert sum(executed.values()) == len(executed) == 2000
        assert last["items"]["committed"] == 2000
        assert not list(disk.glob("*.spool"))
    finally:
        provider.close()


def test_a_file_size_limit(tmp_path: Path) -> None:
    """A limit on file sizes in the middle of a run (no right to mount needed): exit 3, then finished, none doubled."""
    provider = Provider.start(tmp_path, latency="10ms")
    try:
        job = Job(tmp_path, provider.url, 1500, concurrency=16)
        job.write()
        assert job.command("plan", str(tmp_path / "batch.toml"))[0] == 0
        size = sum(f.stat().st_size for f in tmp_path.glob("payonce.db*"))
        command = f'ulimit -f {size // 1024 + 300}; exec "$@"'
        limited = ["bash", "-c", command, "bash", *job.start_command()]
        process = subprocess.Popen(
            limited, cwd=tmp_path, env=job.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        code, last, err = finish(process, 100)
        assert code == 3, (last, err)
        code, last, err = job.run()
        executed = provider.executed()
        assert code == 0, (last, err)
        assert sum(executed.values()) == len(executed) == 1500
    finally:
        provider.close()


def test_an_older_copy_of_the_ledger_sends_nothing(tmp_path: Path) -> None:
    """A ledger restored from an older copy is noticed, and nothing is sent."""
    provider = Provider.start(tmp_path, latency="5ms")
    try:
        job = Job(tmp_path, provider.url, 400, limits={"budget": {"USD": "1000.00"}})
        job.env = {"XDG_STATE_HOME": str(tmp_path / "state")}
        job.write()
        assert job.run()[0] == 4
        kept = {f.name: f.read_bytes() for f in tmp_path.glob("payonce.db*") if f.suffix != ".head"}
        job.limits = {}
        job.write()
        assert job.run()[0] == 0
        for file in tmp_path.glob("payonce.db*"):
            if file.suffix != ".head":
                file.unlink()
        for name, data in kept.items():
            (tmp_path / name).write_bytes(data)
        calls = provider.stats()["calls"]
        code, last, _ = job.run()
        assert code == 3
        assert last["error"]["code"] == "ledger_rolled_back"
        assert provider.stats()["calls"] == calls
    finally:
        provider.close()
