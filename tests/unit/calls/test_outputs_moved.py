"""Large outputs and the place of their ledger: they go along to another file, hold up a copy that would lose them, and what
a crash left of them is taken away."""

from __future__ import annotations

from pathlib import Path

import pytest

from payonce.core.commands import Change
from payonce.core.errors import LedgerError, UsageError
from payonce.core.states import ItemEvent
from payonce.ledger.connect import connect
from payonce.ledger.outputs import OutputFiles
from tests.postgres import Server
from tests.unit.calls.callkit import Calls

LARGE = 400_000


@pytest.fixture
def large(calls: Calls) -> Calls:
    """Two finished calls with answers too large for the ledger."""
    calls.body = '{model = "m", user = "{id}", size = ' + str(LARGE) + "}"
    calls.items = 2
    assert calls.run().code == 0
    return calls


def test_a_server_has_no_place_for_them(large: Calls, postgres: Server) -> None:
    """Refused before anything is copied: no schema is made there, and the ledger here goes on."""
    target = postgres.url("large_outputs")
    said = large("ledger", "copy", "sqlite:payonce.db", target, "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "outputs_beside")
    assert "2 large outputs of this ledger" in said.json["error"]["message"]
    with pytest.raises((LedgerError, UsageError)):
        connect(target, create=False)
    assert large("run", "batch.toml").code == 0
    assert len(large.results()) == 2


def test_to_another_file_they_go_along(large: Calls) -> None:
    """Whole, without what a crash left of one that was being written."""
    (Path("payonce.db.outputs") / "ab").mkdir(exist_ok=True)
    (Path("payonce.db.outputs") / "ab" / ".abcd.1234").write_bytes(b"half")
    before = large.results()
    assert large("ledger", "copy", "sqlite:payonce.db", "sqlite:new.db", "--json").code == 0
    assert [r["output"] for r in large.results("--ledger", "sqlite:new.db")] == [r["output"] for r in before]
    assert not list(Path("new.db.outputs").rglob(".*"))


def test_a_ledger_without_any_goes_to_a_server(calls: Calls, postgres: Server) -> None:
    """Small answers are in the ledger itself; a folder that nothing refers to holds up nothing."""
    assert calls.run().code == 0
    (Path("payonce.db.outputs") / "ab").mkdir(parents=True)
    (Path("payonce.db.outputs") / "ab" / ("ab" * 32)).write_bytes(b"of nobody")
    target = postgres.url("small_outputs")
    assert calls("ledger", "copy", "sqlite:payonce.db", target, "--json").code == 0
    assert len(calls.results("--ledger", target)) == 5


def left_by_a_crash() -> list[Path]:
    """A whole file that no commit names, and one that was being written."""
    folder = Path("payonce.db.outputs") / "ab"
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / ("ab" * 32), folder / f".{'ab' * 32}.1234"]
    for file in files:
        file.write_bytes(b"of nobody")
    return files


def test_what_a_crash_left_is_taken_away(large: Calls) -> None:
    """doctor says so, a dry run lists it, and every committed output stays readable."""
    files = left_by_a_crash()
    doctor = {check["name"]: check for check in large("doctor", "batch.toml", "--json").json["checks"]}
    assert doctor["outputs"]["ok"] and "nothing refers to 2 files: payonce ledger tidy" in doctor["outputs"]["detail"]
    listed = large("ledger", "tidy", "--dry-run", "--json").json
    assert [Path(name).name for name in listed["files"]] == sorted(file.name for file in files)
    assert (listed["bytes"], listed["removed"], files[0].exists()) == (18, False, True)
    assert large("ledger", "tidy", "--json").json["removed"] is True
    assert not any(file.exists() for file in files)
    assert len(large.results()) == 2
    assert large("ledger", "tidy", "--json").json["files"] == []


def test_nothing_is_taken_away_while_a_process_writes(large: Calls) -> None:
    """A file is durable before the commit that names it: in between it looks like one that was left."""
    files = left_by_a_crash()
    writing = OutputFiles(Path("payonce.db.outputs").absolute(), inline_bytes=1)
    change = writing.set_aside(Change(1, ItemEvent.COMMIT, reference="x", output=b"on its way"))
    said = large("ledger", "tidy", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "ledger_busy")
    assert files[0].exists() and change.kept is not None
    assert writing.read(change.kept) == b"on its way"
    writing.close()
    assert large("ledger", "tidy", "--json").code == 0
