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


@pytest.mark.parametrize(("said", "meant"), [("explain", "show"), ("verify", "trail verify"), ("rnu", "run")])
def test_a_command_by_another_name_is_told_its_own(desk: Desk, said: str, meant: str) -> None:
    """By what it means first, then by its letters, of which those of ``explain`` are nearest to ``plan``."""
    assert f"did you mean {meant!r}?" in desk(said).err


def test_a_batch_that_keeps_no_answers_is_not_told_that_they_were_lost(desk: Desk) -> None:
    """Refunds that went well: the message of ``payonce results`` is true of them too."""
    desk.write()
    assert desk("run", "batch.toml", "--json").code == 0
    record = json.loads(desk("results", "batch.toml", "--out", "-").out.splitlines()[0])
    assert record["code"] == "no_output" and "the batch keeps none" in record["message"]


def test_providers_print_what_they_promise(desk: Desk) -> None:
    """Every kind with its guarantee; one kind alone by its name."""
    found = desk("providers", "--json").json["providers"]
    assert {"http", "python", "simulator"} <= {declared["kind"] for declared in found}
    assert all(declared["guarantee"] for declared in found)
    assert [declared["kind"] for declared in desk("providers", "simulator", "--json").json["providers"]] == [
        "simulator"
    ]
    assert "guarantee" in desk("providers", "stripe").out
    table = desk("providers").out.splitlines()
    assert table[0].split()[:3] == ["KIND", "OPERATION", "KEYS"]
    assert len(table) == 1 + len(found) and max(map(len, table)) < 110


@pytest.mark.parametrize(
    ("provider", "operation", "meant"),
    [
        ('kind = "simulator"\nstate = "p.jsonl"', "refnd", "did you mean 'refund'? operation is one of refund, payout"),
        ('kind = "stripe"', "transfr", "did you mean 'transfer'? operation is one of transfer, refund"),
        ('kind = "paypal"', "invoice", "operation is one of refund, payout"),
        ('kind = "http"\nbase_url = "https://api.example.com"', "payouts", "did you mean 'payout'?"),
    ],
)
def test_an_operation_with_a_slip_is_refused(desk: Desk, provider: str, operation: str, meant: str) -> None:
    """With what this provider can do, the nearest first; before the input is read, and nothing is left behind."""
    desk.write()
    text = (desk.folder / "batch.toml").read_text().replace('operation = "refund"', f'operation = "{operation}"')
    (desk.folder / "batch.toml").write_text(text[: text.index("[provider]")] + f"[provider]\n{provider}\n")
    (desk.folder / "refunds.csv").unlink()
    for command in ("plan", "run"):
        said = desk(command, "batch.toml", "--json")
        assert (said.code, said.json["error"]["code"]) == (2, "unknown_operation")
        assert meant in said.json["error"]["hint"]
    assert [path.name for path in desk.folder.iterdir()] == ["batch.toml"]


def test_an_operation_of_ones_own_is_no_slip(desk: Desk) -> None:
    """Where the user describes the calls, any other name will do."""
    from payonce.providers.registry import check_operation

    for name in ("refund", "recall", "topup", "call", "send_gift_card"):
        check_operation("http", name)
        check_operation("python", name)


def test_a_plan_says_why_it_needs_credentials(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It binds the batch to an account; nothing is left behind."""
    monkeypatch.delenv("STRIPE_API_KEY", raising=False)
    desk.write()
    text = (desk.folder / "batch.toml").read_text()
    (desk.folder / "batch.toml").write_text(text[: text.index("[provider]")] + '[provider]\nkind = "stripe"\n')
    said = desk("plan", "batch.toml", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "missing_variable")
    assert "bound to one account when it is sealed" in said.json["error"]["hint"]
    assert not list(desk.folder.glob("payonce.db*"))


def test_a_short_command_that_fails_leaves_nothing_behind(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, or with a bad row: no batch file and no ledger; a batch file that was there stays."""
    monkeypatch.delenv("STRIPE_API_KEY", raising=False)
    (desk.folder / "charges.csv").write_text("id,charge,amount,currency\nr1,ch_1,1.00,USD\n")
    short = ("refund", "charges.csv", "--provider", "stripe", "--batch", "nov", "--yes")
    said = desk(*short)
    assert said.code == 2 and "STRIPE_API_KEY" in said.err and "removed again" in said.err
    assert [path.name for path in desk.folder.iterdir()] == ["charges.csv"]
    assert desk(*short, "--plan-only").code == 0
    assert desk(*short).code == 2
    assert (desk.folder / "nov.toml").exists()
    with (desk.folder / "charges.csv").open("a") as file:
        file.write("r2,ch_2,-1.00,USD\n")
    sim = ("refund", "charges.csv", "--provider", "simulator", "--set", "state=p.jsonl", "--batch", "dec", "--yes")
    assert desk(*sim).code == 2
    assert not (desk.folder / "dec.toml").exists()


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


def test_a_guessed_id_is_said_where_another_column_could_be_it(desk: Desk) -> None:
    """The column that was taken, and the option that takes another; nothing is said where the id was named or is the only
    one."""
    (desk.folder / "two.csv").write_text("request_id,refund_id,charge,amount,currency\nr1,x1,ch_1,1.00,USD\n")
    (desk.folder / "one.csv").write_text("request_id,charge,amount,currency\nr1,ch_1,1.00,USD\n")
    short = ("--provider", "simulator", "--set", "state=p.jsonl", "--plan-only", "--batch")
    said = desk("refund", "two.csv", *short, "a")
    assert "the id of each item is column 'request_id'; if it is 'refund_id', say --id COLUMN" in said.err
    assert "--id" not in desk("refund", "two.csv", *short, "b", "--id", "refund_id").err
    assert "--id" not in desk("refund", "one.csv", *short, "c").err
