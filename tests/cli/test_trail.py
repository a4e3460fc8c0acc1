"""The trail's commands as a person gives them: keys, checkpoints of a run, rotation, and what is said of what is missing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from payonce.trail.checkpoint import load
from payonce.trail.keys import load_public
from tests.cli.conftest import Desk


@pytest.fixture
def audited(desk: Desk) -> Desk:
    """A batch whose checkpoints go to a file besides, signed with a key beside the batch file."""
    desk.write(items=6)
    settings = (
        '\n[trail]\nkey = "trail.key"\npublish = ["kept.txt", "-", {command = ["sh", "-c", "cat >> told.txt"]}]\n'
    )
    (desk.folder / "batch.toml").write_text((desk.folder / "batch.toml").read_text() + settings)
    assert desk("plan", "batch.toml").code == 0
    assert desk("trail", "key", "--out", "trail.key").code == 0
    return desk


def sizes(file: Path, key: Path) -> list[int]:
    """How many events each checkpoint of a file covers."""
    return [signed.checkpoint.size for signed in load(file, load_public(str(key))).signed]


def test_the_last_checkpoint_of_a_run_covers_its_comparison_with_the_provider(audited: Desk) -> None:
    """Everywhere it goes: it was the one event that none of the run's own checkpoints covered."""
    said = audited("run", "batch.toml", "--yes", "--json")
    assert said.code == 0 and said.json["reconciliation"]["asked"]
    key = audited.folder / "trail.key.pub"
    events = audited("trail", "verify", "--key", str(key), "--json").json["events"]
    for file in ("kept.txt", "told.txt", "payonce.db.checkpoints"):
        assert sizes(audited.folder / file, key)[-1] == events
    assert len(said.json["checkpoints"]) == len(sizes(audited.folder / "kept.txt", key))
    before = (audited.folder / "kept.txt").read_text()
    assert audited("run", "batch.toml", "--yes").code == 0
    assert (audited.folder / "kept.txt").read_text() == before
    assert audited("run", "batch.toml", "--yes", "--reconcile").code == 0
    assert sizes(audited.folder / "kept.txt", key)[-1] > events


def test_a_key_that_is_not_there_sends_nothing(audited: Desk) -> None:
    """A batch file that names one means it."""
    (audited.folder / "trail.key").unlink()
    said = audited("run", "batch.toml", "--yes")
    assert said.code == 2 and "trail.key" in said.err and audited.effects() == 0


def test_own_checkpoints_without_their_public_key_are_left_out_and_said(audited: Desk) -> None:
    """The key lies elsewhere, and nobody has named it: everything else is checked all the same, and a copy can be made."""
    audited("run", "batch.toml", "--yes")
    said = audited("trail", "verify", "--json")
    assert said.code == 0 and said.json["checkpoints"] == 0
    assert any("no public key" in sentence for sentence in said.json["not_checked"])
    assert audited("trail", "verify", "--checkpoints", "kept.txt").code == 2
    assert audited("ledger", "copy", "sqlite:payonce.db", "sqlite:copy.db").code == 0


def test_a_rotated_key_hands_the_trust_on(audited: Desk) -> None:
    """Old checkpoints verify with the old key or with both; with the new one alone those of the old are left out, and
    said; the checkpoint that both signed is beside the ledger. A stolen key, withdrawn, takes nothing else with it."""
    audited("run", "batch.toml", "--yes")
    made = audited("trail", "key", "--rotate", "--out", "trail.key", "--reason", "stolen", "--json").json
    assert audited("run", "batch.toml", "--yes", "--reconcile").code == 0
    both = (audited.folder / "trail.key.pub").read_text().split()
    (audited.folder / "new.pub").write_text(made["public"] + "\n")
    (audited.folder / "old.pub").write_text(both[0] + "\n")
    assert both == [both[0], made["public"]] and len(made["checkpoint"].split("\u2014")) == 3
    whole = audited("trail", "verify", "--checkpoints", "kept.txt", "--key", "trail.key.pub", "--json").json
    assert whole["ok"] and not whole["not_checked"]
    for key in ("old.pub", "new.pub"):
        said = audited("trail", "verify", "--checkpoints", "kept.txt", "--key", key, "--json").json
        assert said["ok"] and 0 < said["checkpoints"] < whole["checkpoints"]
        assert any("not signed by a key that was given" in sentence for sentence in said["not_checked"])
    assert audited("trail", "verify", "--since", "payonce.db.checkpoints", "--key", "new.pub").code == 0


def test_an_incremental_check_says_how_much_it_looked_at(audited: Desk) -> None:
    """The events behind the checkpoint, not all there are."""
    audited("run", "batch.toml", "--yes")
    assert audited("trail", "checkpoint", "--key", "trail.key", "--out", "mine.txt").code == 0
    assert audited("trail", "erase", "refunds", "R1", "--reason", "asked", "--yes").code == 0
    covered = sizes(audited.folder / "mine.txt", audited.folder / "trail.key.pub")[-1]
    said = audited("trail", "verify", "--since", "mine.txt", "--key", "trail.key.pub")
    assert said.code == 0 and f"1 event after the checkpoint over {covered}" in said.out, said.out


def test_events_that_were_moved_along_are_not_each_a_fault(audited: Desk) -> None:
    """One that was put in is named; those behind, which stand a place too far down, are not listed besides."""
    audited("run", "batch.toml", "--yes")
    database = sqlite3.connect(audited.folder / "payonce.db", isolation_level=None)
    for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        database.execute(f"DROP TRIGGER {name}")
    database.execute("UPDATE events SET seq = -seq WHERE seq >= 6")
    database.execute("UPDATE events SET seq = 1 - seq WHERE seq < 0")
    database.execute("INSERT INTO events SELECT 6, place, body, mark FROM events WHERE seq = 3")
    database.close()
    codes = [fault["code"] for fault in audited("trail", "verify", "--key", "trail.key.pub", "--json").json["faults"]]
    assert "inserted" in codes and "reordered" not in codes
