"""A ledger moves to another store: the same events, root, rows and checkpoints there, closed here; or nothing happened."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payonce.cli.main import invoke
from payonce.core.commands import Landed
from payonce.core.errors import LedgerError, LedgerPlaceError, UsageError
from payonce.ledger.actors import this_actor
from payonce.ledger.connect import accept_place, connect, connect_trail
from payonce.ledger.copy_targets import Origin, build
from payonce.ledger.copying import Source, copy_ledger
from payonce.ledger.store_reads import StoreLedger
from payonce.service.copying import copy_to
from payonce.service.trailing import Against, Places, make_checkpoint, verify_trail
from payonce.service.trailing_keys import make
from payonce.testing.ledger_random import Step, histories, play
from payonce.testing.ledger_world import World
from tests.conformance.test_jsonl_ledger import JsonlFactory
from tests.postgres import Server
from tests.unit.ledger.ledgers import BATCH, OPS, begin, commit, intent

STORES = ("sqlite", "jsonl", "postgresql")
Address = Callable[..., str]


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    """The address of a ledger of a kind that does not exist yet; the same for the same name."""

    def of(scheme: str, name: str = "here") -> str:
        if scheme == "postgresql":
            server: Server = request.getfixturevalue("postgres")
            return server.url(f"copy_{name}_{tmp_path.name[-40:].lower().replace('-', '_')}")
        return f"{scheme}:{tmp_path / name}.{scheme}"

    return of


def used(url: str) -> None:
    """Two batches: one with an item of each kind, worked on by two workers that left; outputs, payloads, a finding."""
    ledger = connect(url, create=True)
    worker = begin(ledger, 7)
    for n in range(1, 6):
        assert ledger.write(worker, [intent(n)]) == (Landed.LANDED,)
    assert ledger.write(worker, [commit(1), commit(2)]) == (Landed.LANDED,) * 2
    ledger.leave(worker)
    ledger.leave(begin(ledger, 3, batch="ids: ü ''\u2028"))
    ledger.close()


def shown(ledger: StoreLedger) -> list[Any]:
    """Everything a ledger shows."""
    batches = ledger.batches()
    return [
        ledger.info().root,
        batches,
        ledger.events(limit=10_000),
        *(replace(ledger.status(b.spec.id), live_workers=0) for b in batches),
        *(ledger.items(b.spec.id) for b in batches),
        *(ledger.outputs(b.spec.id) for b in batches),
        *(ledger.findings(b.spec.id) for b in batches),
    ]


def look(url: str) -> list[Any]:
    ledger = connect(url, create=False, read_only=True)
    try:
        assert ledger.check() == ()
        return shown(ledger)
    finally:
        ledger.close()


@pytest.mark.parametrize(
    ("here", "there"), [("sqlite", "jsonl"), ("jsonl", "sqlite"), ("sqlite", "postgresql"), ("postgresql", "jsonl")]
)
def test_everything_arrives(address: Address, here: str, there: str) -> None:
    """Events byte for byte, states, open intents, money; the signed checkpoints hold there; the next run goes on."""
    source, target = address(here), address(there, "there")
    used(source)
    make(source, out=None, rotate=False, reason=None)
    Places.of(source).checkpoints.write_text(str(make_checkpoint(source, key=None).note))
    before = look(source)
    done = copy_to(source, target)
    assert (done["batches"], done["items"], done["checkpoints"]) == (2, 10, 1)
    assert look(target) == before == look(source)
    found = verify_trail(target, Against())
    assert (found.ok, found.checkpoints) == (True, 1)
    ledger = connect(target, create=False)
    worker = ledger.join(BATCH, actor=this_actor(), lease_us=60_000_000)
    assert [held.item.n for held in ledger.take_over(worker, limit=10)] == [3, 4, 5]
    assert worker.fence == 3  # higher than any before
    assert ledger.write(worker, [commit(3)]) == (Landed.LANDED,)
    assert ledger.check() == ()
    ledger.close()


@pytest.mark.parametrize("here", STORES)
def test_what_stayed_behind_is_closed(address: Address, here: str) -> None:
    """From the copy on the source can only be read, also by a process that had opened it before; a person can say
    otherwise, with a reason."""
    source, target = address(here), address("sqlite", "there")
    used(source)
    early = connect(source, create=False) if here != "jsonl" else None
    copy_to(source, target)
    with pytest.raises(LedgerPlaceError) as error:
        connect(source, create=False)
    assert error.value.code == "ledger_moved_away"
    assert target in error.value.message
    if early is not None:
        with pytest.raises(LedgerError) as late:
            early.join(BATCH, actor=OPS, lease_us=1_000_000)
        assert late.value.code == "ledger_moved_away"
        early.close()
    with pytest.raises(LedgerPlaceError) as again:
        copy_to(source, address("jsonl", "third"))
    assert again.value.code == "ledger_moved_away"
    accept_place(source, actor=OPS, reason="the other one was a mistake")
    connect(source, create=False).close()


def test_the_same_command_again_is_no_error(address: Address) -> None:
    """Where the copy is there already, it says so once more and changes nothing."""
    source, target = address("sqlite"), address("jsonl", "there")
    used(source)
    first = copy_to(source, target)
    assert copy_to(source, target) == {**first}


def test_nothing_is_copied_while_a_worker_lives(address: Address) -> None:
    """The ledger stays open for it."""
    source, target = address("sqlite"), address("jsonl", "there")
    ledger = connect(source, create=True)
    worker = begin(ledger, 3)
    with pytest.raises(UsageError) as error:
        copy_to(source, target)
    assert error.value.code == "ledger_busy"
    assert ledger.write(worker, [intent(1)]) == (Landed.LANDED,)
    spool = Path(source.partition(":")[2]).parent / f"{ledger.info().id}.0.spool"
    spool.write_bytes(b"{}")  # a living worker's: it is busy, nothing waits
    with pytest.raises(UsageError) as error:
        copy_to(source, target)
    assert error.value.code == "ledger_busy"
    ledger.close()
    assert not Path(target.partition(":")[2]).exists()


@pytest.mark.parametrize("there", STORES)
def test_a_place_that_is_taken_is_refused(address: Address, there: str) -> None:
    """Another ledger, or anything else, is never written over; the source goes on."""
    source, target = address("sqlite"), address(there, "there")
    used(source)
    used(target)
    before = look(target)
    with pytest.raises(UsageError) as error:
        copy_to(source, target)
    assert error.value.code == "target_exists"
    assert look(target) == before
    connect(source, create=False).close()


def test_answers_that_wait_in_a_spool_come_first(address: Address, tmp_path: Path) -> None:
    """The ledger does not hold them yet."""
    source = address("sqlite")
    used(source)
    ledger = connect(source, create=False, read_only=True)
    (tmp_path / f"{ledger.info().id}.0.spool").write_bytes(b"{}")
    ledger.close()
    with pytest.raises(UsageError) as error:
        copy_to(source, address("jsonl", "there"))
    assert error.value.code == "answers_wait"
    connect(source, create=False).close()  # it goes on here


def test_space_that_a_killed_run_had_set_aside_is_no_answer(address: Address, tmp_path: Path) -> None:
    """A spool of nothing but zeros holds nothing that a copy would lose."""
    source = address("sqlite")
    used(source)
    with closing(connect(source, create=False, read_only=True)) as ledger:
        (tmp_path / f"{ledger.info().id}.0.spool").write_bytes(b"\0" * 4096)
    assert copy_to(source, address("jsonl", "there"))["batches"] == 2


@pytest.mark.parametrize("there", STORES)
def test_a_copy_that_fails_leaves_everything_as_it_was(
    address: Address, there: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An error half-way: no ledger at the new place, the old one goes on, and the same command works later."""
    source, target = address("sqlite"), address(there, "there")
    used(source)
    before = look(source)

    def broken(source: Source, target: Any) -> None:
        copy_ledger(source, target)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("payonce.ledger.store_copy.copy_ledger", broken)
        with pytest.raises((LedgerError, OSError)):
            copy_to(source, target)
    assert not list(tmp_path.glob("there*"))
    connect(source, create=False).close()
    assert look(source) == before
    copy_to(source, target)
    assert look(target) == before


_KILLED = """
import os, signal, sys
import payonce.ledger.copy_targets as targets, payonce.ledger.sqlite_open as files, payonce.service.copying as copying
real = files.give_name
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
def name_and_die(part, path):
    real(part, path)
    if ".new-" not in path.name: die()
match sys.argv[3]:
    case "filled": copying._verify = die
    case "beside": copying._take_along = die
    case "named": files.give_name = name_and_die
copying.copy_to(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize(("when", "there"), [("filled", "sqlite"), ("beside", "jsonl"), ("named", "sqlite")])
def test_a_copy_that_is_killed_is_made_by_the_same_command(address: Address, there: str, when: str) -> None:
    """At no instant can both be written, and the same command brings it to its end."""
    source, target = address("jsonl" if there == "sqlite" else "sqlite"), address(there, "there")
    used(source)
    events = connect_events(source)
    code = [sys.executable, "-c", _KILLED, source, target, when]
    assert subprocess.run(code, check=False, timeout=60).returncode == -signal.SIGKILL
    with pytest.raises(LedgerPlaceError):
        connect(source, create=False)
    done = copy_to(source, target)
    assert connect_events(target)[: len(events)] == events
    assert done["batches"] == 2
    connect(target, create=False).close()


def connect_events(url: str) -> list[bytes]:
    ledger = connect(url, create=False, read_only=True)
    try:
        return [event.body for event in ledger.events(limit=10_000)]
    finally:
        ledger.close()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories, targets=st.booleans())
def test_any_history_arrives(tmp_path: Path, history: list[Step], targets: bool) -> None:
    """Whatever careless programs and operators did to a ledger: from one store into another and back it shows the same."""
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    world = World(JsonlFactory(folder))
    play(world, history, targets=targets)
    first, second, third = (
        f"{kind}:{folder / name}" for kind, name in (("jsonl", "payonce.jsonl"), ("sqlite", "b"), ("jsonl", "c"))
    )
    try:
        before = shown(world.ledger)
        for store, here, there in ((world.ledger, first, second), (None, second, third)):
            source = store or connect(here, create=False, read_only=False, marks=folder / "marks")
            origin = Origin("0" * 32, there.partition(":")[2], "2026-11-30T00:00:00Z")
            with closing(connect_trail(here)) as trail:
                source.hand_over(
                    lambda fill, there=there, origin=origin: build(there, origin, fill=fill, look=lambda _: None),
                    trail=trail,
                )
            if store is None:
                source.close()
            assert look(there) == before
    finally:
        world.close()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """For people and for programs, with paths relative to the working directory; what is not there is a mistake of who
    typed it (exit code 2), what has moved away refuses to be run (exit code 3)."""
    monkeypatch.chdir(tmp_path)
    used(f"sqlite:{tmp_path / 'here.db'}")
    assert invoke(["ledger", "copy", "sqlite:here.db", "jsonl:there.jsonl", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["to"], told["batches"], told["items"]) == (f"jsonl:{tmp_path / 'there.jsonl'}", 2, 10)
    assert invoke(["ledger", "copy", "jsonl:there.jsonl", "sqlite:third.db"]) == 0
    assert f"use sqlite:{tmp_path / 'third.db'} from now on" in " ".join(capsys.readouterr().out.split())
    assert invoke(["ledger", "copy", "jsonl:none.jsonl", "sqlite:fourth.db"]) == 2
    assert invoke(["pause", BATCH, "--reason", "x", "--ledger", "jsonl:there.jsonl"]) == 3
