"""What a plan says and holds up: overlaps with other batches, amendments, problems as a file, checks at the provider."""

from __future__ import annotations

import csv
import json

import pytest

from payonce.ledger.connect import connect
from tests.cli.conftest import Desk


def other(desk: Desk, batch: str, rows: list[str], *, extra: str = "") -> str:
    """One more batch file in the folder, with an input of its own."""
    text = (desk.folder / "batch.toml").read_text().replace('"refunds"', f'"{batch}"')
    text = text.replace("refunds.csv", f"{batch}.csv")
    (desk.folder / f"{batch}.toml").write_text(text + extra)
    (desk.folder / f"{batch}.csv").write_text("\n".join(["request,charge,amount", *rows]) + "\n")
    return f"{batch}.toml"


def test_a_target_of_another_batch_is_held(desk: Desk) -> None:
    """``plan`` and ``run`` list the items with the other batch, item, state and amount; nothing is sealed, exit code 2."""
    desk.write(items=3)
    assert desk("run", "batch.toml").code == 0
    second = other(desk, "second", ["S1,ch_9,5.00", "S2,ch_2,5.00"])
    planned = desk("plan", second, "--json")
    assert (planned.code, planned.json["sealed"]) == (2, False)
    assert planned.json["overlaps"] == {
        "count": 1,
        "allowed": None,
        "batches": ["refunds"],
        "items": [
            {
                "item": "S2",
                "line": 3,
                "target": "ch_2",
                "batch": "refunds",
                "other_item": "R2",
                "state": "committed",
                "amount": "10.00",
                "currency": "USD",
            }
        ],
    }
    run = desk("run", second, "--json")
    assert (run.code, run.json["error"]["code"]) == (2, "overlap")
    assert [problem["value"] for problem in run.json["error"]["problems"]] == ["ch_2"]
    said = desk("plan", second)
    assert "item S2: item R2 of batch refunds (committed, 10.00 USD) acts on ch_2 too" in said.err
    assert [batch["batch"] for batch in desk("status", "--json").json["batches"]] == ["refunds"]
    assert desk.effects() == 3


def test_a_person_allows_an_overlap_with_a_reason(desk: Desk) -> None:
    """``--allow-overlap --reason``: sealed, with an event that says how many and why; the trail still verifies."""
    desk.write(items=3)
    desk("plan", "batch.toml")
    second = other(desk, "second", ["S1,ch_1,5.00", "S2,ch_2,5.00"])
    assert desk("run", second, "--allow-overlap", "--json").json["error"]["code"] == "no_reason"
    assert desk("run", second, "--reason", "x", "--json").json["error"]["code"] == "usage"
    said = desk("run", second, "--allow-overlap", "--reason", "second partial refund", "--json")
    assert said.code == 0, said
    ledger = connect("sqlite:payonce.db", create=False, read_only=True)
    bodies = [json.loads(event.body) for event in ledger.events("second")]
    ledger.close()
    (allowed,) = [body for body in bodies if body["type"] == "overlap_allowed"]
    assert (allowed["items"], allowed["batches"], allowed["reason"]) == (2, ["refunds"], "second partial refund")
    assert desk("trail", "verify").code == 0


@pytest.mark.parametrize("how", ["refused", "account"])
def test_what_acted_on_nothing_holds_nobody(desk: Desk, how: str) -> None:
    """Refused items acted on nothing; another account's targets are other targets."""
    refused = 'script = {R1 = ["refuse"]}'
    desk.write(items=1, provider='account = "first"\n' + (refused if how == "refused" else ""))
    desk("run", "batch.toml")
    second = other(desk, "second", ["S1,ch_1,5.00"])
    if how == "account":
        path = desk.folder / second
        path.write_text(path.read_text().replace('account = "first"', 'account = "second"'))
    assert desk("plan", second, "--json").json["overlaps"]["count"] == 0


def test_new_rows_are_added_by_an_amendment_only(desk: Desk) -> None:
    """Without ``--amend`` they are listed and nothing happens; with it they are added, and the run goes on with them."""
    desk.write(items=2)
    assert desk("run", "batch.toml").code == 0
    desk.rows(["R3,ch_3,7.00", "R1,ch_1,10.00", "R2,ch_2,10.00", "R4,ch_4,1.00"])
    refused = desk("plan", "batch.toml", "--json")
    assert refused.code == 2
    assert {problem["value"] for problem in refused.json["error"]["problems"]} == {"R3", "R4"}
    assert "--amend" in refused.json["error"]["hint"]
    amended = desk("plan", "batch.toml", "--amend", "--json")
    assert amended.code == 0, amended
    assert (amended.json["added"], amended.json["added_money"]) == (2, {"USD": "8.00"})
    assert (amended.json["items"], amended.json["left"], amended.json["money"]) == (4, 2, {"USD": "28.00"})
    again = desk("plan", "batch.toml", "--amend", "--json")
    assert (again.code, again.json["added"]) == (0, 0)
    said = desk("run", "batch.toml", "--json")
    assert said.code == 0, said
    assert said.json["items"]["committed"] == 4
    assert desk.effects() == 4
    assert desk("trail", "verify").code == 0


def test_an_amendment_never_changes_or_removes(desk: Desk) -> None:
    """An input that also differs in what was sealed is refused whole, the items and fields named."""
    desk.write(items=2)
    desk("plan", "batch.toml")
    desk.rows(["R1,ch_1,11.00", "R3,ch_3,7.00"])
    said = desk("plan", "batch.toml", "--amend", "--json")
    assert said.code == 2
    found = {(problem["value"], problem["code"]) for problem in said.json["error"]["problems"]}
    assert found == {("R1", "item_changed"), ("R2", "item_removed"), ("R3", "item_added")}
    assert "10.00 USD" in said.out and "11.00 USD" in said.out
    assert desk("status", "refunds", "--json").json["items"]["total"] == 2


def test_added_items_are_compared_with_other_batches_too(desk: Desk) -> None:
    """An amendment overlaps like a new batch, and its own batch does not count."""
    desk.write(items=2)
    desk("plan", "batch.toml")
    desk("plan", other(desk, "second", ["S1,ch_7,5.00"]))
    desk.rows(["R1,ch_1,10.00", "R2,ch_2,10.00", "R3,ch_7,1.00", "R4,ch_1,2.00"])
    held = desk("plan", "batch.toml", "--amend", "--json")
    assert (held.code, held.json["sealed"], held.json["overlaps"]["count"]) == (2, False, 1)
    said = desk("plan", "batch.toml", "--amend", "--allow-overlap", "--reason", "agreed", "--json")
    assert (said.code, said.json["added"]) == (0, 2)


def test_an_amendment_keeps_the_account(desk: Desk) -> None:
    """A batch is bound to one account; what is added to it is too."""
    desk.write(items=1, provider='account = "first"')
    desk("plan", "batch.toml")
    desk.write(items=2, provider='account = "second"')
    assert desk("plan", "batch.toml", "--amend", "--json").json["error"]["code"] == "other_account"


def test_a_plan_names_the_largest_and_the_smallest(desk: Desk) -> None:
    """With their ids, also when the batch is planned again from the ledger alone."""
    desk.write(items=1)
    desk.rows(["R1,ch_1,10.00", "R2,ch_1,99.50", "R3,ch_3,0.01"])
    for _ in range(2):
        said = desk("plan", "batch.toml", "--json").json
        assert said["largest"] == {"USD": {"item": "R2", "amount": "99.50"}}
        assert said["smallest"] == {"USD": {"item": "R3", "amount": "0.01"}}
    assert "largest 99.50 (R2), smallest 0.01 (R3)" in desk("plan", "batch.toml").out


def test_all_problems_go_to_a_file(desk: Desk) -> None:
    """The screen shows twenty, of every kind one at least, and a count; the file has all of them, in order."""
    desk.write(items=1)
    desk.rows([*(f"R{n},ch_{n},-3" for n in range(100)), "X,ch_x,1.001"])
    said = desk("plan", "batch.toml", "--problems", "problems.csv")
    assert said.code == 2
    assert "101 problems" in said.err and "and 81 more" in said.err
    assert "refunds.csv:102 amount" in said.err
    with (desk.folder / "problems.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["line"]) for row in rows] == list(range(2, 103))
    assert desk("plan", "batch.toml", "--problems", "problems.jsonl", "--json").json["problem_count"] == 101
    lines = [json.loads(line) for line in (desk.folder / "problems.jsonl").read_text().splitlines()]
    assert [line["value"] for line in lines] == [row["value"] for row in rows]


@pytest.mark.parametrize(
    ("name", "code"),
    [("refunds.csv", "file_exists"), ("p.txt", "unknown_format"), ("no/p.csv", "file_unwritable"), ("p.csv", None)],
)
def test_a_problems_file_replaces_only_its_like(desk: Desk, name: str, code: str | None) -> None:
    """A slip of the keyboard costs nobody an input."""
    desk.write()
    before = (desk.folder / "refunds.csv").read_bytes()
    said = desk("plan", "batch.toml", "--problems", name, "--json")
    assert (said.json.get("error") or {}).get("code") == code
    assert (desk.folder / "refunds.csv").read_bytes() == before
    if code is None:
        assert desk("plan", "batch.toml", "--problems", name).code == 0


def test_control_totals_must_agree(desk: Desk) -> None:
    """[expect] that does not fit is a problem of the input; nothing is sealed."""
    desk.write(items=2)
    path = desk.folder / "batch.toml"
    text = path.read_text()
    path.write_text(text + '\n[expect]\nitems = 3\ntotal = {USD = "20.00"}\n')
    said = desk("plan", "batch.toml", "--json")
    assert (said.code, [problem["code"] for problem in said.json["problems"]]) == (2, ["expected_items"])
    path.write_text(text + '\n[expect]\nitems = 2\ntotal = {USD = "20.00"}\n')
    assert desk("plan", "batch.toml", "--json").code == 0
