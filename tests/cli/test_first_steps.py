"""A newcomer's first commands, on real processes: init, simulate, run, demo, doctor, providers, ledger accept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.cli.conftest import Desk


def test_init_never_overwrites(desk: Desk) -> None:
    """A batch file may be the record of how money was moved."""
    assert desk("init", "first", "--json").code == 0
    before = (desk.folder / "first" / "batch.toml").read_text()
    said = desk("init", "first", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "file_exists")
    assert (desk.folder / "first" / "batch.toml").read_text() == before


def test_the_first_batch_runs_as_it_is(desk: Desk) -> None:
    """What init writes runs against ``payonce simulate`` without a change but the port."""
    desk("init", ".")
    served = subprocess.Popen(
        [sys.executable, "-m", "payonce", "simulate", "--port", "0", "--json", "--parent-pid", str(os.getpid())],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert served.stdout is not None
        url = json.loads(served.stdout.readline())["url"]
        path = desk.folder / "batch.toml"
        path.write_text(path.read_text().replace("http://127.0.0.1:8765", url))
        said = desk("run", "batch.toml", "--json")
        assert said.code == 0
        assert said.json["items"]["committed"] == 25
        assert desk("doctor", "batch.toml", "--json").code == 0
    finally:
        served.terminate()
        served.wait(10)


@pytest.mark.slow
def test_the_demo_really_kills_and_finds_nothing_twice(desk: Desk) -> None:
    """A child is killed with SIGKILL, the same command ends it, provider and ledger agree."""
    said = desk("demo", "--items", "120", "--kill-at", "50", "--json")
    assert said.code == 0, said
    assert said.json["items"] == said.json["executed"] == said.json["matched"] == 120
    assert said.json["killed_at"] >= 50
    assert said.json["duplicates"] == 0
    assert (desk.folder / "payonce-demo" / "payonce.db").exists()
    key = str(desk.folder / "payonce-demo" / "payonce.db.key.pub")
    checked = desk("trail", "verify-proof", said.json["proof"]["file"], "--key", key, "--json").json
    assert (checked["ok"], checked["item"], checked["state"]) == (True, said.json["proof"]["item"], "committed")


def test_doctor_finds_what_is_wrong(desk: Desk) -> None:
    """A missing credential is found without sending anything; exit code 1 and a next step."""
    desk.write()
    text = (desk.folder / "batch.toml").read_text()
    head, _, _ = text.partition("[provider]")
    provider = (
        '[provider]\nkind = "http"\nbase_url = "https://api.example.com"\nheaders = {Authorization = "Bearer ${NO_SUCH}"}\n'
        'call = {path = "/refunds", json = {}, reference = "id"}\n'
    )
    (desk.folder / "batch.toml").write_text(head + provider)
    said = desk("doctor", "batch.toml", "--json")
    assert said.code == 1
    wrong = [check for check in said.json["checks"] if not check["ok"]]
    assert [check["name"] for check in wrong] == ["provider"]
    assert "NO_SUCH" in wrong[0]["detail"]
    assert wrong[0]["hint"]


def test_providers_print_what_they_promise(desk: Desk) -> None:
    """Every kind with its guarantee; one kind alone by its name."""
    found = desk("providers", "--json").json["providers"]
    assert {"http", "python", "simulator"} <= {declared["kind"] for declared in found}
    assert all(declared["guarantee"] for declared in found)
    assert [declared["kind"] for declared in desk("providers", "simulator", "--json").json["providers"]] == [
        "simulator"
    ]
    assert "guarantee" in desk("providers").out


def test_a_restored_ledger_is_accepted_by_a_person_only(desk: Desk) -> None:
    """An older copy in its place sends nothing until ``ledger accept`` says why it is right."""
    desk.write(items=2)
    desk("plan", "batch.toml")
    backup = desk.folder / "backup.db"
    shutil.copy(desk.folder / "payonce.db", backup)
    desk("run", "batch.toml")
    shutil.copy(backup, desk.folder / "payonce.db")
    refused = desk("run", "batch.toml", "--json")
    assert refused.code != 0
    assert refused.json["error"]["code"] == "ledger_rolled_back"
    assert desk("ledger", "accept", "--json").code == 2
    assert desk("ledger", "accept", "--reason", "restored from the backup", "--json").json["accepted"] is True
    again = desk("run", "batch.toml", "--json")
    assert again.code == 0, again
    assert desk.effects() == 2
