"""A PostgreSQL ledger whose server's disk really fails, or whose server is killed, under two worker processes.

Each time both workers end with exit code 3 and no further call, as the provider's own count shows; when the disk is mended
and the server runs again, the same command finishes, nothing executed twice, although the provider ignores keys.
`PAYONCE_TORTURE=1` tries all of it, by default some.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.disks import Device, device, small
from tests.crash.harness import Job, Provider, finish
from tests.crash.ownserver import OwnServer, serving
from tests.crash.shim import Shim
from tests.crash.test_ledger_faults import until_calls

FULL = bool(os.environ.get("PAYONCE_TORTURE"))
ITEMS, CONCURRENCY, WORKERS = 240, 4, 2
ON_THEIR_WAY = WORKERS * 2 * CONCURRENCY
UNREACHABLE = {"ledger_unreachable"}


@dataclass(frozen=True)
class World:
    """A server, and how its fault comes and goes. ``said``: what its own log must hold then."""

    server: OwnServer
    fail: Callable[[], None]
    mend: Callable[[], None]
    said: str


def restarted(server: OwnServer, mend: Callable[[], None]) -> Callable[[], None]:
    """Mended, and the server started again: what is left of it is killed before."""

    def again() -> None:
        server.kill()
        mend()
        server.start()

    return again


@contextmanager
def full(folder: Path) -> Iterator[World]:
    """The disk of its tables is full: the server refuses what does not fit, and lives."""
    with small("120m") as disk, serving(disk.folder) as server:
        yield World(server, disk.full, disk.mend, "No space left on device")


@contextmanager
def full_log(folder: Path) -> Iterator[World]:
    """The disk of its write-ahead log is full: the server panics."""
    with small("120m") as disk, small("40m") as log, serving(disk.folder, wal=log.folder) as server:

        def fail() -> None:
            log.full()
            server.needs_room()

        yield World(server, fail, restarted(server, log.mend), "PANIC")


@contextmanager
def starved(folder: Path) -> Iterator[World]:
    """The storage under its file system has no room: what it wrote cannot be synced."""
    with device(size="300m", below="120m") as disk, serving(disk.folder) as server:

        def fail() -> None:
            disk.starve()
            server.needs_room()

        yield World(server, fail, restarted(server, disk.mend), "PANIC")


def _device(way: Callable[[Device], None]) -> Callable[[Path], object]:
    @contextmanager
    def made(folder: Path) -> Iterator[World]:
        with device(size="200m", below="160m") as disk, serving(disk.folder) as server:
            yield World(server, lambda: way(disk), restarted(server, disk.mend), "")

    return made


@contextmanager
def failing_fsync(folder: Path) -> Iterator[World]:
    """An fsync of its log fails: it panics, since nobody knows what is on the disk."""
    with small("120m") as disk:
        shim = Shim.built(disk.folder)
        with serving(disk.folder, env=shim.env) as server:
            yield World(server, lambda: shim.fails("sync", errno.EIO, "pg_wal"), restarted(server, shim.mend), "PANIC")


@contextmanager
def killed(folder: Path) -> Iterator[World]:
    """All of its processes at once, by SIGKILL."""
    with small("120m") as disk, serving(disk.folder) as server:
        yield World(server, server.kill, server.start, "")


@contextmanager
def standby(folder: Path) -> Iterator[World]:
    """It comes back as a standby, which only reads, and is made the primary later."""
    with small("120m") as disk, serving(disk.folder) as server:

        def demote() -> None:
            server.stop()
            (server.data / "standby.signal").touch(mode=0o644)
            server.start()

        def promote() -> None:
            assert server.ask("SELECT pg_promote()") == [(True,)]

        yield World(server, demote, promote, "ready to accept read-only connections")


WAYS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "full": (full, {"disk_full"}),
    "full log": (full_log, UNREACHABLE | {"disk_full"}),
    "without storage underneath": (starved, UNREACHABLE | {"disk_full", "ledger_io"}),
    "read-only": (_device(Device.read_only), UNREACHABLE | {"ledger_io"}),
    "power": (_device(Device.lose_power), UNREACHABLE | {"ledger_io"}),
    "failing fsync": (failing_fsync, UNREACHABLE),
    "killed": (killed, UNREACHABLE),
    "standby": (standby, UNREACHABLE | {"ledger_read_only"}),
}


@pytest.mark.parametrize("way", WAYS if FULL else ["full log"])
def test_a_server_that_fails_under_two_workers(way: str, tmp_path: Path) -> None:
    """Exit code 3, no further call, no answer lost, then finished."""
    make, codes = WAYS[way]
    provider = Provider.start(tmp_path, latency="40ms", keys="ignored")
    try:
        with make(tmp_path) as world:  # type: ignore[attr-defined]
            job = Job(tmp_path, provider.url, ITEMS, keys=False, concurrency=CONCURRENCY, max_execution="200ms")
            job.ledger, job.timeout, job.limits = world.server.url(), "1s", {"lease": "3s"}
            job.env = {"XDG_STATE_HOME": str(tmp_path / "state"), "PAYONCE_LEDGER": job.ledger}
            assert job.command("plan", str(job.write()))[0] == 0
            workers = [job.start() for _ in range(WORKERS)]
            until_calls(provider, 60)
            world.fail()
            calls = provider.stats()["calls"]
            for worker in workers:
                code, last, err = finish(worker, 90)
                assert (code, last.get("lost")) == (3, []), (last, err, world.server.said)
                assert last["reason_code"] in codes, last
            assert provider.stats()["calls"] <= calls + ON_THEIR_WAY < ITEMS
            assert world.said in world.server.said
            world.mend()
            code, last, err = job.run(timeout=90)
            executed = provider.executed()
            assert (code, last["items"]["committed"]) == (0, ITEMS), (last, err)
            assert (len(executed), set(executed.values())) == (ITEMS, {1})
            assert job.command("trail", "verify")[0] == 0
            assert not list(tmp_path.rglob("*.spool"))
    finally:
        provider.close()
