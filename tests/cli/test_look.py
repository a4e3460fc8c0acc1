"""Looking: status, items, show, results. Shapes, filters and paging as the contract says."""

from __future__ import annotations

import csv
import json

import pytest

from payonce.cli.history import header
from tests.cli.conftest import Desk

ITEM = {
    "item", "target", "amount", "currency", "state", "settlement", "reference", "billed", "attempts", "generation",
    "code", "message", "updated_at",
}  # fmt: skip


@pytest.fixture
def done(desk: Desk) -> Desk:
    """A batch of four, one of them refused."""
    desk.write(items=4, provider='script = {R3 = ["refuse:charge_disputed"]}')
    assert desk("run", "batch.toml", "--json").code == 1
    return desk


def test_items_are_one_object_a_line_in_input_order(done: Desk) -> None:
    """Every line has the fields of the contract."""
    said = done("items", "refunds", "--json")
    assert said.code == 0
    assert [line["item"] for line in said.lines] == ["R1", "R2", "R3", "R4"]
    assert all(set(line) >= ITEM for line in said.lines)
    assert said.lines[0]["amount"] == said.lines[0]["billed"] == "10.00"
    assert said.lines[2]["state"] == "refused"
    assert said.lines[2]["code"] == "charge_disputed"


def test_items_can_be_filtered_and_paged(done: Desk) -> None:
    """By state, by code, so many, after a place."""
    assert [line["item"] for line in done("items", "refunds", "--state", "refused", "--json").lines] == ["R3"]
    assert [line["item"] for line in done("items", "refunds", "--code", "charge_disputed", "--json").lines] == ["R3"]
    page = done("items", "refunds", "--limit", "2", "--json").lines
    assert [line["item"] for line in page] == ["R1", "R2"]
    rest = done("items", "refunds", "--after", str(page[-1]["n"]), "--json").lines
    assert [line["item"] for line in rest] == ["R3", "R4"]


def test_show_has_the_whole_history(done: Desk) -> None:
    """The item and its events in sequence; the intent is before its commit."""
    said = done("show", "refunds", "R1", "--json")
    assert said.json["item"]["state"] == "committed"
    types = [event["type"] for event in said.json["events"]]
    assert types.index("intent") < types.index("commit")
    assert "intent" in done("show", "refunds", "R1").out


def test_ids_are_compared_exactly(done: Desk) -> None:
    """Another case is another item."""
    said = done("show", "refunds", "r1", "--json")
    assert said.code == 2
    assert said.json["error"]["code"] == "unknown_item"


def test_status_of_all_batches(done: Desk) -> None:
    """Newest first, each in the shape of a status."""
    found = done("status", "--json").json["batches"]
    assert [batch["batch"] for batch in found] == ["refunds"]
    assert "refunds" in done("status").out


def test_a_batch_may_be_named_by_its_file(done: Desk) -> None:
    """The batch file names the batch and its ledger."""
    assert done("status", "batch.toml", "--json").json["batch"] == "refunds"


def test_a_misspelt_batch_gets_the_nearest_name(done: Desk) -> None:
    """The hint says which one may be meant."""
    said = done("status", "refund", "--json")
    assert said.code == 2
    assert "refunds" in said.json["error"]["hint"]


def test_results_are_complete_and_in_order(done: Desk) -> None:
    """One record an item, those without an output with their state and reason."""
    assert done("results", "refunds", "--out", "out.jsonl", "--json").json["items"] == 4
    records = [json.loads(line) for line in (done.folder / "out.jsonl").read_text().splitlines()]
    assert [record["item"] for record in records] == ["R1", "R2", "R3", "R4"]
    assert records[2]["output"] is None
    assert records[2]["code"] == "charge_disputed"
    assert done("results", "refunds", "--out", "out.csv").code == 0
    with (done.folder / "out.csv").open(newline="") as file:
        assert [row["state"] for row in csv.DictReader(file)] == ["committed", "committed", "refused", "committed"]


def test_results_never_replace_a_file_unasked(done: Desk) -> None:
    """A second time only with ``--force``."""
    (done.folder / "out.jsonl").write_text("mine")
    assert done("results", "refunds", "--out", "out.jsonl").code == 2
    assert (done.folder / "out.jsonl").read_text() == "mine"
    assert done("results", "refunds", "--out", "out.jsonl", "--force").code == 0


def test_looking_needs_a_ledger(desk: Desk) -> None:
    """Where there is none, none is made."""
    said = desk("status", "--json")
    assert said.code in (2, 3)
    assert not list(desk.folder.glob("payonce.db*"))


def test_show_is_short_and_says_what_comes_next(desk: Desk) -> None:
    """A line an event, no event's JSON; for what a person has to decide, when it left, and the next command."""
    desk.write(items=2, provider='keys = false\nlookup = false\nscript = {R2 = ["reset_after"]}')
    desk("run", "batch.toml", "--json")
    found = desk("show", "refunds", "R2", "--json").json
    assert found["item"]["state"] == "unknown"
    assert found["intent"]["sent"] <= found["intent"]["send_by"]
    assert found["next"].startswith("find out at the provider, then payonce resolve refunds R2 ")
    said = desk("show", "refunds", "R2").out
    assert "{" not in said
    assert len(max(said.splitlines(), key=len)) < 200
    lines = [line.split() for line in said.splitlines()]
    names = [line[0] for line in lines if line][:8]
    assert [name for name in ("amount", "key", "sent", "next") if name in names] == ["amount", "sent", "next"]
    events = [line for line in lines if line and line[0].isdigit()]
    assert len(events) == len(found["events"])
    done = desk("show", "refunds", "R1", "--json").json
    assert (done["intent"], done["next"]) == (None, None)


LOOKING = [
    ["status"], ["status", "batch.toml"], ["items", "batch.toml"], ["show", "batch.toml", "R1"], ["plan", "batch.toml"],
    ["run", "batch.toml"], ["pause", "batch.toml"], ["results", "batch.toml", "--out", "o.jsonl"],
    ["trail", "verify"], ["trail", "key"], ["trail", "checkpoint"], ["trail", "prove", "batch.toml", "R1"],
    ["trail", "erase", "batch.toml", "--reason", "x", "--yes"],
]  # fmt: skip


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_every_command_says_that_a_ledger_was_lost(done: Desk, command: list[str]) -> None:
    """One code and one exit code, and no new ledger, which would know of nothing that was paid."""
    for path in done.folder.glob("payonce.db*"):
        if not path.name.endswith(".head"):
            path.unlink()
    said = done(*command, "--json")
    assert (said.code, said.json["error"]["code"]) == (3, "ledger_lost"), said
    assert not (done.folder / "payonce.db").exists()


@pytest.mark.parametrize(
    "command", [["show", "nothere.toml", "R1"], ["status", "nothere.toml"], ["items", "nothere.toml"]]
)
def test_a_batch_file_that_is_not_there_is_said(desk: Desk, command: list[str]) -> None:
    """As ``plan`` says it, and not that a ledger lacks a batch of that name."""
    said, planned = desk(*command, "--json"), desk("plan", "nothere.toml", "--json")
    assert said.code == planned.code == 2
    assert said.json["error"] == planned.json["error"]
    assert "nothere.toml" in said.json["error"]["message"]


def test_show_says_what_a_call_cost() -> None:
    """A paid call asks for no amount; what was billed has a line of its own."""
    facts = {"item": "r1", "amount": None, "billed": "0.0042", "billed_currency": "USDC", "target": "r1", "reference": "g",
             "settlement": "none", "attempts": 1, "generation": 0, "code": None}  # fmt: skip
    assert ("cost", "0.0042 USDC") in list(header({"item": facts, "intent": None, "next": None, "events": []}))
