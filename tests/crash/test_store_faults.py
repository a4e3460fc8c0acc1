"""The store fails while a batch runs: at each of its moments, in each way a disk has. No further call, exit code 3, nothing
lost; the same command finishes later and nothing is executed twice. By a wrapped store here; for real in
test_ledger_faults.py and below."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payonce.core.states import BatchState, ItemState
from payonce.ledger.actors import this_actor
from payonce.ledger.connect import connect
from payonce.ledger.jsonl_file import JsonlFile
from payonce.ledger.jsonl_tables import JsonlTables
from payonce.ledger.sqlite_tables import SqliteTables
from tests.crash.harness import Job, Provider, finish
from tests.crash.test_ledger_faults import until_calls
from tests.crash.test_postgres_lost import IN_FLIGHT, ITEMS, Far, gone, run

FULL = bool(os.environ.get("PAYONCE_TORTURE"))


def sqlite_fault(name: str) -> Callable[[], Exception]:
    """What SQLite raises, with its code."""

    def make() -> Exception:
        error = sqlite3.OperationalError(name)
        error.sqlite_errorcode = getattr(sqlite3, name)
        return error

    return make


def os_fault(code: int) -> Callable[[], Exception]:
    """What a system call raises."""
    return lambda: OSError(code, os.strerror(code))


TABLES: dict[str, type[Any]] = {"sqlite": SqliteTables, "jsonl": JsonlTables}
WAYS: dict[str, dict[str, tuple[Callable[[], Exception], str]]] = {
    "sqlite": {
        "full": (sqlite_fault("SQLITE_FULL"), "disk_full"),
        "failing fsync": (sqlite_fault("SQLITE_IOERR_FSYNC"), "ledger_io"),
        "read-only": (sqlite_fault("SQLITE_READONLY"), "ledger_read_only"),
        "locked for too long": (sqlite_fault("SQLITE_BUSY"), "ledger_locked"),
        "damaged": (sqlite_fault("SQLITE_CORRUPT"), "ledger_corrupt"),
        "no such thing": (lambda: ValueError("a bug"), "ledger_bug"),
    },
    "jsonl": {
        "full": (os_fault(errno.ENOSPC), "disk_full"),
        "failing fsync": (os_fault(errno.EIO), "ledger_io"),
        "read-only": (os_fault(errno.EROFS), "ledger_io"),
        "no such thing": (lambda: ValueError("a bug"), "ledger_bug"),
    },
}
# Before the transaction, in the middle of it, before it is durable, and after it is, when nobody can know.
MOMENTS = ("begin", "save", "append", "commit", "after commit")
# Each way once, each moment once: they do not depend on each other.
CASES = [
    (store, way, MOMENTS[(k + shift) % len(MOMENTS)])
    for store, shift in (("sqlite", 0), ("jsonl", 2))
    for k, way in enumerate(WAYS[store])
] + [("sqlite", "full", "after commit"), ("jsonl", "failing fsync", "after commit"), ("jsonl", "full", "save")]


class Broken:
    """Lets one method of a store's tables fail from some call of the provider on, until it is mended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type[Any], moment: str, far: Far, fault: Any) -> None:
        name = moment.removeprefix("after ")
        real = getattr(kind, name)
        self.broken = False
        self.calls: list[int] = []

        def failing(tables: Any, *args: Any, **named: Any) -> Any:
            if far.calls < 10:
                return real(tables, *args, **named)
            if moment.startswith("after") and not self.broken:
                real(tables, *args, **named)
            self.broken = True
            self.calls.append(far.calls)
            raise fault()

        monkeypatch.setattr(kind, name, failing)


@pytest.mark.parametrize(("store", "way", "moment"), CASES)
def test_a_store_that_fails(store: str, way: str, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the commit was made and said it was not."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    url, far = f"{store}:{tmp_path / 'ledger'}", Far()
    fault, code = WAYS[store][way]
    # Both runs are in this process; the first one is taken for one that has ended, as it would have.
    monkeypatch.setattr("payonce.service.running.this_actor", gone)
    with monkeypatch.context() as patched:
        broken = Broken(patched, TABLES[store], moment, far, fault)
        halted = run(url, far)
    assert (halted.exit_code, halted.state, halted.code) == (3, BatchState.HALTED, code)
    assert far.calls <= broken.calls[0] + IN_FLIGHT < ITEMS, "no further call"
    monkeypatch.setattr("payonce.service.running.this_actor", this_actor)
    done = run(url, far)
    assert (done.exit_code, done.counts.committed) == (0, ITEMS)
    assert set(far.executed.values()) == {1}
    assert len(far.executed) == ITEMS
    assert not list(tmp_path.rglob("*.spool")), "every answer was taken in"
    ledger = connect(url, create=False, read_only=True)
    assert ledger.check() == ()
    ledger.close()


def test_an_fsync_that_fails_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one may say yes although the bytes are gone: after the first failure the file is not written any more."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    far, synced, failed = Far(), [0], list[int]()
    real, append = os.fdatasync, JsonlFile._append
    appended_after: list[int] = []

    def once(fd: int) -> None:
        synced[0] += 1
        if far.calls >= 10 and not failed:
            failed.append(synced[0])
            raise OSError(errno.EIO, "Input/output error")
        real(fd)

    def counted(file: JsonlFile) -> None:
        if failed:
            appended_after.append(1)
        append(file)

    with monkeypatch.context() as patched:
        patched.setattr("payonce.ledger.jsonl_file.os.fdatasync", once)
        patched.setattr(JsonlFile, "_append", counted)
        patched.setattr("payonce.service.running.this_actor", gone)
        halted = run(f"jsonl:{tmp_path / 'ledger'}", far)
    assert (halted.exit_code, halted.code, appended_after) == (3, "ledger_io", [])
    done = run(f"jsonl:{tmp_path / 'ledger'}", far)
    assert (done.exit_code, done.counts.committed, set(far.executed.values())) == (0, ITEMS, {1})


_HOLD = {
    "sqlite": "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); time.sleep(float(sys.argv[2]))",
    "jsonl": "import fcntl, sys, time; f = open(sys.argv[1], 'rb')\n"
    "fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(float(sys.argv[2]))",
}


def test_a_lock_that_is_held_in_the_middle_of_a_run(tmp_path: Path) -> None:
    """Another program holds the database, for 40 s at full size: nothing is sent meanwhile, and when it lets go the run
    goes on by itself. One that holds it for longer than a minute halts the run (ledger_locked)."""
    held_s = 40.0 if FULL else 2.5
    provider = Provider.start(tmp_path, latency="20ms")
    try:
        job = Job(tmp_path, provider.url, 150, concurrency=4, env={"XDG_STATE_HOME": str(tmp_path / "state")})
        job.write()
        process = job.start()
        until_calls(provider, 20)
        command = [sys.executable, "-c", _HOLD["sqlite"], str(tmp_path / "payonce.db"), str(held_s)]
        holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        time.sleep(0.5)  # what had its intent already is on its way
        calls = provider.stats()["calls"]
        time.sleep(held_s - 1.2)
        assert provider.stats()["calls"] == calls < 150
        holder.communicate()
        code, last, err = finish(process, 120)
        assert (code, last["items"]["committed"]) == (0, 150), err
        assert set(provider.executed().values()) == {1}
    finally:
        provider.close()


@pytest.mark.skipif(not FULL, reason="waits for the ten seconds that a JSON Lines ledger waits; PAYONCE_TORTURE=1")
def test_a_json_lines_ledger_that_another_process_holds(tmp_path: Path) -> None:
    """It belongs to one process: exit code 3 within a bounded wait, nothing sent, and the same command finishes later."""
    provider = Provider.start(tmp_path)
    try:
        job = Job(tmp_path, provider.url, 20, ledger="jsonl:payonce.jsonl")
        job.write()
        assert job.command("plan", str(tmp_path / "batch.toml"))[0] == 0
        with (tmp_path / "payonce.jsonl").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            code, last, _ = job.run()
            assert (code, last["error"]["code"], provider.stats()["calls"]) == (3, "ledger_locked", 0)
        code, last, err = job.run()
        assert (code, last["items"]["committed"]) == (0, 20), err
    finally:
        provider.close()


@pytest.mark.parametrize("store", ["sqlite", "jsonl"])
def test_a_ledger_replaced_under_a_run(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody puts a copy in its place: the run halts, and with the right file back the same command finishes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path, far = tmp_path / "ledger", Far()
    far.at[10] = threading.Event()
    seen: list[int] = []

    def exchange() -> None:
        assert far.at[10].wait(30)
        path.rename(tmp_path / "aside")
        path.write_bytes(b"")  # never the real one's bytes: that would drop SQLite's locks
        seen.append(far.calls)

    monkeypatch.setattr("payonce.service.running.this_actor", gone)
    culprit = threading.Thread(target=exchange, daemon=True)
    culprit.start()
    halted = run(f"{store}:{path}", far)
    culprit.join(30)
    assert (halted.exit_code, halted.code) == (3, "ledger_replaced")
    assert far.calls <= seen[0] + 2 * IN_FLIGHT < ITEMS
    path.unlink()
    (tmp_path / "aside").rename(path)
    monkeypatch.setattr("payonce.service.running.this_actor", this_actor)
    done = run(f"{store}:{path}", far)
    assert (done.exit_code, done.counts.committed, set(far.executed.values())) == (0, ITEMS, {1})


def test_a_torn_end_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    """Killed, and the file ends in half a line: the same command sets it aside, says so, and finishes the batch."""
    provider = Provider.start(tmp_path, latency="20ms")
    try:
        job = Job(tmp_path, provider.url, 80, ledger="jsonl:payonce.jsonl", concurrency=8)
        job.env = {"XDG_STATE_HOME": str(tmp_path / "state")}
        job.write()
        process = job.start()
        until_calls(provider, 20)
        process.kill()
        process.communicate()
        with (tmp_path / "payonce.jsonl").open("ab") as file:
            file.write(b'{"$rows":[["save",1,{"begun":[17')
        code, last, err = job.run()
        assert (code, last["items"]["committed"]) == (0, 80), err
        assert "torn end" in err
        assert len(list(tmp_path.glob("payonce.jsonl.torn-*"))) == 1
        assert set(provider.executed().values()) == {1}
    finally:
        provider.close()


def test_a_json_lines_file_that_may_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on file sizes, for real: exit code 3, what was open is pending or in the spool, then finished."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    provider = Provider.start(tmp_path, latency="5ms")
    try:
        job = Job(tmp_path, provider.url, 200, ledger="jsonl:payonce.jsonl", concurrency=8)
        job.write()
        assert job.command("plan", str(tmp_path / "batch.toml"))[0] == 0
        size = (tmp_path / "payonce.jsonl").stat().st_size
        command = f'ulimit -f {size // 1024 + 90}; exec "$@"'
        process = subprocess.Popen(
            ["bash", "-c", command, "bash", *job.start_command()],
            cwd=tmp_path, env=job.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        code, last, err = finish(process, 100)
        assert code == 3, (last, err)
        assert provider.stats()["calls"] < 200
        code, last, err = job.run()
        assert (code, last["items"]["committed"]) == (0, 200), (last, err)
        assert set(provider.executed().values()) == {1}
    finally:
        provider.close()


def test_states_are_what_they_should_be_after_a_halt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing lost, read from the ledger between the two runs: every item has a state, and what was sent is known."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    url, far = f"jsonl:{tmp_path / 'ledger'}", Far()
    with monkeypatch.context() as patched:
        Broken(patched, JsonlTables, "commit", far, os_fault(errno.ENOSPC))
        assert run(url, far).exit_code == 3
    ledger = connect(url, create=False, read_only=True)
    status = ledger.status("lost")
    assert sum(status.count(state) for state in ItemState) == ITEMS
    sent = set(far.executed)
    known = {item.id for item in ledger.items("lost").items if item.state is not ItemState.PLANNED}
    assert sent <= known
    ledger.close()
