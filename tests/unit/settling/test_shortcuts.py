"""The short commands: columns found by name, a batch file that is never overwritten, no credential in it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from payonce.cli.main import invoke
from payonce.core.errors import PayonceError
from payonce.service import batchfile
from payonce.service.shortcuts import Columns, Shortcut, write


def short(folder: Path, header: str, *, operation: str = "refund", name: str = "in.csv", **more: Any) -> Path:
    """Writes an input with this first line, and its batch file."""
    (folder / name).write_text(header + "\n")
    return write(Shortcut(operation, folder / name, "stripe", "nov", **more), folder=folder)[0]


@pytest.mark.parametrize(
    ("operation", "header", "item"),
    [
        ("refund", "charge_id,amount,currency", {"id": "charge_id", "amount": "amount", "currency": "currency"}),
        (
            "refund",
            "id;Charge;amount_cents;Currency",
            {"id": "id", "target": "Charge", "amount_minor": "amount_cents", "currency": "Currency"},
        ),
        (
            "payout",
            "request\tdestination\tamount\tcurrency",
            {"id": "request", "target": "destination", "amount": "amount", "currency": "currency"},
        ),
        (
            "invoice",
            '{"invoice_id": "a", "customer": "cus_1", "amount": "1", "currency": "EUR"}',
            {"id": "invoice_id", "target": "customer", "amount": "amount", "currency": "currency"},
        ),
    ],
)
def test_columns_are_found_by_their_names(tmp_path: Path, operation: str, header: str, item: dict[str, str]) -> None:
    """Whatever their case and the file's delimiter; the file can be loaded like any other."""
    name = "in.jsonl" if header.startswith("{") else "in.csv"
    path = short(tmp_path, header, operation=operation, name=name)
    raw = tomllib.loads(path.read_text())
    assert raw["item"] == item
    assert (raw["batch"]["input"], raw["provider"]) == (name, {"kind": "stripe"})
    assert batchfile.load(path).operation == operation


def test_what_is_said_comes_before_what_is_found(tmp_path: Path) -> None:
    """Columns by option, one currency for all rows, further settings of the provider."""
    columns = Columns(id="nr", target="ch", amount="betrag", fixed_currency="eur")
    path = short(tmp_path, "nr,ch,betrag,amount", columns=columns, provider={"stripe_account": "acct_1"}, rate="20/s")
    raw = tomllib.loads(path.read_text())
    assert raw["item"] == {"id": "nr", "target": "ch", "amount": "betrag", "currency": {"value": "EUR"}}
    assert raw["provider"]["stripe_account"] == "acct_1" and raw["limits"]["rate"] == "20/s"


@pytest.mark.parametrize(
    ("header", "more", "code"),
    [
        ("a,b,c", {}, "column_unclear"),
        ("charge,amount", {}, "column_unclear"),
        ("charge,amount,currency", {"provider": {"api_key": "sk_live_literal"}}, "literal_secret"),
        ("charge,amount,currency", {"columns": Columns(fixed_currency="XXY")}, "unknown_currency"),
    ],
)
def test_what_cannot_be_told_is_asked_for(tmp_path: Path, header: str, more: dict[str, Any], code: str) -> None:
    """Nothing is written then."""
    with pytest.raises(PayonceError) as caught:
        short(tmp_path, header, **more)
    assert caught.value.code == code
    assert not (tmp_path / "nov.toml").exists()


def test_the_same_again_goes_on_and_another_is_refused(tmp_path: Path) -> None:
    """A crash is resumed with the same short command; a different one never replaces the file."""
    first = short(tmp_path, "charge,amount,currency")
    assert short(tmp_path, "charge,amount,currency") == first
    with pytest.raises(PayonceError, match="batch_file_exists"):
        short(tmp_path, "charge,amount,currency", rate="1/s")
    for name in ("../x", "", ".hidden", "a/b"):
        with pytest.raises(PayonceError, match="bad_batch_name"):
            write(Shortcut("refund", tmp_path / "in.csv", "stripe", name), folder=tmp_path)


def test_the_command_plans_runs_and_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """payonce refund, from a bare file to a finished batch, on the built-in provider."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "charges.csv").write_text("charge,amount,currency\nch_1,1.50,USD\nch_2,2.50,USD\n")
    command = ["refund", "charges.csv", "--provider", "simulator", "--batch", "nov-refunds"]
    command += ["--set", "state=books.jsonl", "--yes", "--quiet"]
    assert invoke(command) == 0
    assert (tmp_path / "nov-refunds.toml").is_file()
    assert invoke(command) == 0
    assert invoke(["run", "nov-refunds.toml", "--yes", "--quiet"]) == 0
