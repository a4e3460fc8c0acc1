"""Real processes, really killed, on really full disks: what was acknowledged is there, and everything adds up."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from payonce.core.commands import Landed
from payonce.core.errors import LedgerError
from payonce.core.states import ItemState
from payonce.ledger.actors import this_actor
from payonce.ledger.connect import connect
from payonce.ledger.protocol import Ledger
from tests.unit.ledger.ledgers import BATCH, begin, commit, intent

ITEMS = 3000


def start(url: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.unit.ledger.writer", url, str(ITEMS), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3], env=os.environ)


def acknowledged(output: str) -> tuple[set[int], set[int]]:
    """Items whose intents and whose commits were said to be durable; a torn last line was not."""
    lines = [line.split() for line in output.split("\n")[:-1]]
    return {int(n) for kind, n in lines if kind == "i"}, {int(n) for kind, n in lines if kind == "c"}


def assert_holds(ledger: Ledger, intents: set[int], commits: set[int]) -> None:
    """Nothing acknowledged is missing, nothing is half there."""
    assert ledger.check() == ()
    found = {item.n: item.state for item in ledger.items(BATCH, limit=ITEMS).items}
    assert len(found) == ITEMS
    assert all(found[n] is ItemState.COMMITTED for n in commits)
    assert all(found[n] in (ItemState.PENDING, ItemState.COMMITTED) for n in intents)


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_writer_loses_nothing_it_acknowledged(url: str, seed: int) -> None:
    """kill -9 in the middle of writing; the next process opens, takes over and goes on."""
    process = start(url)
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.01, 0.4))
    process.send_signal(signal.SIGKILL)
    intents, commits = acknowledged(first + process.stdout.read())
    process.wait()
    assert intents, "it was killed while it wrote"
    ledger = connect(url, create=False)
    assert_holds(ledger, intents, commits)
    pending = {item.n for item in ledger.items(BATCH, states=[ItemState.PENDING], limit=ITEMS).items}
    worker = ledger.join(BATCH, actor=this_actor(), lease_us=10**9)
    taken = ledger.take_over(worker, limit=ITEMS)
    assert {found.item.n for found in taken} == pending  # its process is gone: no lease to wait for
    assert set(ledger.write(worker, [commit(found.item.n) for found in taken])) <= {Landed.LANDED}
    assert ledger.check() == ()
    ledger.close()


def test_a_write_that_the_disk_refuses_is_an_error_and_leaves_everything(url: str) -> None:
    """A file that cannot grow: an error with a code, no half transaction, and what was acknowledged stays."""
    process = start(url, str(3 << 20))
    output, _ = process.communicate(timeout=120)
    *lines, last, end = output.split("\n")
    assert end == "" and last in ("error ledger_io", "error disk_full")
    intents, commits = acknowledged("\n".join([*lines, ""]))
    ledger = connect(url, create=False)
    assert_holds(ledger, intents, commits)
    ledger.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own of 4 MB, where mounting is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small file system is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_says_so_and_goes_on_once_there_is_room(small_disk: Path) -> None:
    """``disk_full``, nothing half written; after making room the same ledger opens and writes."""
    (small_disk / "ballast").write_bytes(b"x" * (2 << 20))
    url = f"sqlite:{small_disk / 'payonce.db'}"
    ledger = connect(url, create=True)
    worker = begin(ledger, 500)
    done: list[int] = []

    def fill() -> None:
        for n in range(1, 501):
            ledger.write(worker, [intent(n, size=8000)])
            done.append(n)

    with pytest.raises(LedgerError) as error:
        fill()
    assert error.value.code == "disk_full"
    (small_disk / "ballast").unlink()
    assert ledger.check() == ()
    assert ledger.write(worker, [commit(n) for n in done]) == (Landed.LANDED,) * len(done)
    ledger.close()
    again = connect(url, create=False)
    assert again.status(BATCH).count(ItemState.COMMITTED) == len(done)
    assert again.check() == ()
    again.close()
