"""A ledger's file on disks that really fail under a running process: full, without storage underneath, read-only, broken,
without power; system calls that fail; the file itself locked against writing, or another one put in its place.

Each time the provider's own count shows that no further call was made, the run ends with exit code 3, no answer is lost,
and the same command finishes the batch later with no item executed twice. The provider ignores keys, so that a second call
would be a second execution. `PAYONCE_TORTURE=1` tries every fault on every store, by default some of them.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.crash.disks import Device, device, small
from tests.crash.harness import Job, Provider, finish
from tests.crash.shim import Shim
from tests.crash.test_ledger_faults import until_calls

FULL = bool(os.environ.get("PAYONCE_TORTURE"))
ITEMS, CONCURRENCY = 200, 8
# Calls whose intents were durable when the fault came may still go out: those in flight and those that are next.
ON_THEIR_WAY = 2 * CONCURRENCY
FILES = {"sqlite": "payonce.db", "jsonl": "payonce.jsonl"}


@dataclass(frozen=True)
class Place:
    """A folder for a ledger, and how its disk fails and is mended."""

    folder: Path
    fail: Callable[[], None]
    mend: Callable[[], None]
    env: dict[str, str]


@contextmanager
def full(folder: Path, name: str) -> Iterator[Place]:
    """No room on the disk, and none anywhere else: it is the only one."""
    with small("24m") as disk:
        yield Place(disk.folder, disk.full, disk.mend, {"XDG_STATE_HOME": str(disk.folder), "TMPDIR": str(disk.folder)})


def _device(way: Callable[[Device], None]) -> Callable[[Path, str], Any]:
    @contextmanager
    def made(folder: Path, name: str) -> Iterator[Place]:
        with device() as disk:
            yield Place(disk.folder, lambda: way(disk), disk.mend, {})

    return made


def _shim(call: str, error: int) -> Callable[[Path, str], Any]:
    @contextmanager
    def made(folder: Path, name: str) -> Iterator[Place]:
        shim = Shim.built(folder)
        yield Place(folder, lambda: shim.fails(call, error, name), shim.mend, shim.env)

    return made


@contextmanager
def immutable(folder: Path, name: str) -> Iterator[Place]:
    """The files may not be changed any more, not even by root, nor through what is open already."""
    with device() as disk:
        files = [str(disk.folder / name), str(disk.folder / f"{name}-wal")][: 2 if name.endswith(".db") else 1]
        yield Place(disk.folder, lambda: _chattr("+i", *files), lambda: _chattr("-i", *files), {})


def _chattr(change: str, *files: str) -> None:
    subprocess.run(["chattr", change, *files], check=True)


IO = {"ledger_io"}
WAYS: dict[str, tuple[Callable[[Path, str], Any], set[str]]] = {
    "full": (full, {"disk_full"}),
    "without storage underneath": (_device(Device.starve), {"disk_full", *IO}),
    "read-only": (_device(Device.read_only), {"ledger_read_only", *IO}),
    "broken": (_device(Device.io_error), IO),
    "immutable": (immutable, {"ledger_read_only", *IO}),
    "failing fsync": (_shim("sync", errno.EIO), IO),
    "failing write": (_shim("write", errno.EIO), IO),
    "no room for a write": (_shim("write", errno.ENOSPC), {"disk_full"}),
}
SOME = [("jsonl", "full"), ("sqlite", "failing fsync")]
CASES = [(store, way) for store in FILES for way in WAYS] if FULL else SOME


def job_on(place: Path, store: str, provider: Provider, folder: Path, **more: Any) -> Job:
    """A batch whose ledger is in that place, and whose spool may go elsewhere."""
    job = Job(folder, provider.url, ITEMS, keys=False, concurrency=CONCURRENCY, max_execution="200ms", timeout="1s")
    job.ledger = f"{store}:{place / FILES[store]}"
    job.env = {"XDG_STATE_HOME": str(folder / "state")}
    job.limits = {"lease": "3s"}
    job.write()
    return job


def started(folder: Path) -> Provider:
    """A provider that ignores keys."""
    return Provider.start(folder, latency="50ms", keys="ignored")


def finishes(job: Job, provider: Provider) -> None:
    """The same command does the rest, and everything was executed once."""
    code, last, err = job.run(timeout=60)
    executed = provider.executed()
    assert code == 0, (last, err)
    assert last["items"]["committed"] == ITEMS
    assert (len(executed), set(executed.values())) == (ITEMS, {1})
    assert job.command("trail", "verify", "--ledger", job.ledger)[0] == 0
    for folder in (job.folder, Path(job.ledger.partition(":")[2]).parent):
        assert not list(folder.rglob("*.spool")), "every answer was taken in"


@pytest.mark.parametrize(("store", "way"), CASES)
def test_a_disk_that_fails_under_a_run(store: str, way: str, tmp_path: Path) -> None:
    """Exit code 3 with the fault's own code, no further call, no answer lost, and then finished."""
    make, codes = WAYS[way]
    provider = started(tmp_path)
    try:
        with make(tmp_path, FILES[store]) as place:
            job = job_on(place.folder, store, provider, tmp_path)
            process = job.start(**place.env)
            until_calls(provider, 40)
            place.fail()
            calls = provider.stats()["calls"]
            code, last, err = finish(process, 60)
            assert (code, last.get("lost")) == (3, []), (last, err)
            assert last["reason_code"] in codes, last
            assert provider.stats()["calls"] <= calls + ON_THEIR_WAY < ITEMS
            place.mend()
            finishes(job, provider)
    finally:
        provider.close()


@pytest.mark.skipif(not FULL, reason="takes some seconds: PAYONCE_TORTURE=1")
def test_an_index_that_may_not_be_written_is_a_kill(tmp_path: Path) -> None:
    """SQLite maps its shared index into memory: where the file system refuses that one file, the kernel ends the process
    (SIGBUS), before SQLite could say anything. It is a kill like any other: nothing is lost, nothing executed twice."""
    provider = started(tmp_path)
    try:
        with device() as disk:
            job = job_on(disk.folder, "sqlite", provider, tmp_path)
            process = job.start()
            until_calls(provider, 40)
            _chattr("+i", str(disk.folder / "payonce.db-shm"))
            process.communicate(timeout=60)
            assert process.returncode == -signal.SIGBUS
            _chattr("-i", str(disk.folder / "payonce.db-shm"))
            finishes(job, provider)
    finally:
        provider.close()


@pytest.mark.parametrize("store", FILES if FULL else ["sqlite"])
def test_the_power_goes(store: str, tmp_path: Path) -> None:
    """The disk keeps what was synced and nothing else, the ledger's marks and the spool included: an intent that was not
    durable before its call would be a second execution, since the provider ignores keys."""
    provider = started(tmp_path)
    try:
        with device() as disk:
            job = job_on(disk.folder, store, provider, tmp_path)
            job.env = {"XDG_STATE_HOME": str(disk.folder / "state")}
            cuts = 3 if FULL else 1
            for k in range(cuts):
                process = job.start()
                until_calls(provider, (k + 1) * ITEMS // (cuts + 1))
                process.send_signal(signal.SIGSTOP)  # it does not see its disk go
                disk.lose_power()
                process.kill()
                process.communicate(timeout=30)
                disk.mend()
            assert sum(provider.executed().values()) < ITEMS
            finishes(job, provider)
    finally:
        provider.close()


@pytest.mark.skipif(not FULL, reason="takes some seconds: PAYONCE_TORTURE=1")
def test_each_fsync_of_a_run_is_the_first_that_fails(tmp_path: Path) -> None:
    """From making the ledger to leaving it; for each store and kind of call: tests.crash.each_write."""
    Shim.built(tmp_path)  # skips where there is no compiler
    command = [sys.executable, "-m", "tests.crash.each_write", "jsonl", "sync", "EIO"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 wrong" in done.stdout
