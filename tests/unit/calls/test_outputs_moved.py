"""Large outputs and the place of their ledger: they go along to another file, and hold up a copy that would lose them."""

from __future__ import annotations

from pathlib import Path

import pytest

from payonce.core.errors import LedgerError, UsageError
from payonce.ledger.connect import connect
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
