"""What other programs and people do to a ledger's files, for real: an older copy put in their place under a running process,
permission to write taken away, a last record cut anywhere. No further call, exit code 3, and then finished."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from payonce.core.states import ItemState
from payonce.ledger.connect import connect
from tests.crash.harness import finish
from tests.crash.test_ledger_faults import until_calls
from tests.crash.test_real_faults import FILES, FULL, ON_THEIR_WAY, finishes, job_on, started
from tests.unit.ledger.test_jsonl import ends_of

# Read-only under a running process is in test_real_faults.py: what is open already stays writable whatever its mode is.
pytestmark = pytest.mark.skipif(not FULL, reason="takes half a minute: PAYONCE_TORTURE=1")


def limited(command: list[str]) -> list[str]:
    """A command without root's right to pass over permissions; for anybody else as it is. Skips loudly where that fails."""
    if os.geteuid() != 0:
        return command
    rights = "-dac_override,-dac_read_search"
    found = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", *command]
    if shutil.which("setpriv") is None:
        pytest.skip("root passes over permissions, and there is no setpriv to take that right away")
    return found


@pytest.mark.parametrize("store", FILES)
def test_an_older_copy_in_its_place_under_a_run(store: str, tmp_path: Path) -> None:
    """A backup put back while a run goes on: it ends at once; the copy is refused, since its trail is too short, and sends
    nothing; with the right files back the same command finishes."""
    provider = started(tmp_path)
    try:
        job = job_on(tmp_path, store, provider, tmp_path)
        job.limits["rate"] = "100/s"
        job.write()
        path, copy, aside = tmp_path / FILES[store], tmp_path / "copy", tmp_path / "aside"
        process = job.start()
        until_calls(provider, 20)
        _copy(path, copy)
        until_calls(provider, provider.stats()["calls"] + 40)
        aside.mkdir()
        for file in tmp_path.glob(f"{path.name}*"):
            if not file.name.endswith((".head", "-shm")):
                os.link(file, aside / file.name)
        copy.replace(path)
        (tmp_path / f"{path.name}-wal").unlink(missing_ok=True)
        calls = provider.stats()["calls"]
        code, last, err = finish(process, 60)
        assert (code, last.get("reason_code"), last.get("lost")) == (3, "ledger_replaced", []), (last, err)
        assert provider.stats()["calls"] <= calls + ON_THEIR_WAY
        calls = provider.stats()["calls"]
        code, last, err = job.run()
        assert (code, last.get("error", {}).get("code")) == (3, "ledger_rolled_back"), f"{code} {last} {err}"
        assert provider.stats()["calls"] == calls
        for file in tmp_path.glob(f"{path.name}-*"):
            file.unlink()
        for file in aside.iterdir():
            file.replace(tmp_path / file.name)
        finishes(job, provider)
    finally:
        provider.close()


def _copy(path: Path, copy: Path) -> None:
    """As a backup program does it, while others write."""
    if path.suffix != ".db":
        shutil.copy(path, copy)
        return
    here, there = sqlite3.connect(path), sqlite3.connect(copy)
    here.backup(there)
    here.close()
    there.close()


@pytest.mark.parametrize("store", FILES)
def test_a_ledger_that_may_not_be_written(store: str, tmp_path: Path) -> None:
    """Its folder, or the file itself, belongs to somebody who lets nobody write: exit code 3 and nothing sent."""
    provider = started(tmp_path)
    try:
        folder = tmp_path / "ledgers"
        folder.mkdir()
        job = job_on(folder, store, provider, tmp_path)
        assert job.command("plan", str(tmp_path / "batch.toml"))[0] == 0
        path = folder / FILES[store]
        for place, mode, usual in ((path, 0o444, 0o644), (folder, 0o555, 0o755)):
            place.chmod(mode)
            process = subprocess.Popen(
                limited(job.start_command()), cwd=tmp_path, env=job.environment(),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            code, last, err = finish(process, 60)
            place.chmod(usual)
            assert code == 3, (place, last, err)
            assert last["error"]["code"] == "ledger_read_only", (last, err)
            assert provider.stats()["calls"] == 0
        finishes(job, provider)
    finally:
        provider.close()


def test_a_last_record_cut_at_every_byte(tmp_path: Path) -> None:
    """Killed in the middle of a batch and paused, and the file ends anywhere in its last record: each time the ledger opens with what
    stood before it, sets the rest aside, and holds together. Cut in the middle it runs to its end."""
    provider = started(tmp_path)
    try:
        job = job_on(tmp_path, "jsonl", provider, tmp_path)
        process = job.start()
        until_calls(provider, 40)
        process.kill()
        process.communicate()
        # The last record is one that no call has followed: what was durable before a call is never torn.
        assert job.command("pause", job.name, "--ledger", job.ledger, "--reason", "a look around")[0] == 0
        path = tmp_path / FILES["jsonl"]
        data = path.read_bytes()
        *_, before, end = ends_of(data)
        cuts = range(before, end)
        seen = {_opened(path, data[:cut]) for cut in cuts}
        assert len(seen) == 1, "what stood before the last record, whatever is left of it"
        _unmarked(path).write_bytes(data[: cuts[len(cuts) // 2]])
        finishes(job, provider)
    finally:
        provider.close()


def _opened(path: Path, data: bytes) -> tuple[int, ...]:
    """What a ledger that ends so holds, opened for writing and checked."""
    _unmarked(path).write_bytes(data)
    ledger = connect(f"jsonl:{path}", create=False, marks=path.parent / "state")
    try:
        assert ledger.check() == ()
        status, events = ledger.status("torture"), ledger.events(limit=100_000)
    finally:
        ledger.close()
    own = sum(b'"torn_end_cut"' not in event.body for event in events)
    assert len(list(path.parent.glob("*.torn-*"))) == len(events) - own <= 1
    return own, *(status.count(state) for state in ItemState)


def _unmarked(path: Path) -> Path:
    """A mark is never ahead of what is durable; here the file is what changes."""
    for file in (*path.parent.glob("*.head"), *path.parent.glob("*.torn-*"), *(path.parent / "state").rglob("*.json")):
        file.unlink()
    return path
