"""What a plan says of the rows of an input: that they add up, and how one that was edited differs from what was sealed."""

from __future__ import annotations

import csv

from tests.cli.conftest import Desk


def test_rows_add_up_in_what_a_plan_says(desk: Desk) -> None:
    """Rows in = items + ignored + refused, in the document and on the screen, with and without bad rows left out."""
    desk.write(items=0)
    desk.rows(["R1,ch_1,10.00", "R2,ch_2,x", "", "R3,,10.00", "R4,ch_4,5.00", ",,"])
    said = desk("plan", "batch.toml", "--json")
    assert said.code == 2
    for document in (said.json, desk("plan", "batch.toml", "--json", "--skip-bad-rows").json):
        assert [document[name] for name in ("rows", "items", "ignored_count", "refused_rows")] == [6, 2, 2, 2]
        assert [row["line"] for row in document["ignored_rows"]] == [4, 7]


def test_the_screen_says_how_many_rows_were_left_out(desk: Desk) -> None:
    """Who reads only the sums sees that they are not of all rows."""
    desk.write(items=0)
    desk.rows(["R1,ch_1,10.00", "R2,ch_2,x"])
    said = desk("plan", "batch.toml")
    assert said.code == 2 and "1 problem in the input of batch refunds: 1 of 2 rows" in said.err
    said = desk("plan", "batch.toml", "--skip-bad-rows")
    assert said.code == 0 and "2 = 1 items + 0 ignored + 1 refused" in said.out


def test_problems_that_are_in_a_file_are_not_offered_again(desk: Desk) -> None:
    """The screen names the file instead of the option."""
    desk.write(items=0)
    desk.rows([f"R{number},ch_{number},x" for number in range(30)])
    assert "--problems FILE writes all" in desk("plan", "batch.toml").err
    said = desk("plan", "batch.toml", "--problems", "problems.csv")
    assert "--problems FILE" not in said.err and "problems.csv" in said.err


def test_all_differences_go_into_the_file_of_problems(desk: Desk) -> None:
    """The screen shows the first of each sort; the file has every changed, removed and added item."""
    desk.write(items=60)
    assert desk("plan", "batch.toml").code == 0
    edited = [f"R{number},ch_{number},{11 if number < 31 else 10}.00" for number in range(1, 36)]
    desk.rows([*edited, *(f"N{number},ch_{number},1.00" for number in range(30))])
    said = desk("plan", "batch.toml", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "input_changed")
    assert "30 changed, 25 removed, 30 added" in said.json["error"]["message"]
    assert "--problems FILE" in said.json["error"]["hint"]
    for command in (["plan"], ["plan", "--amend"], ["run"]):
        said = desk(*command, "batch.toml", "--problems", "differences.csv")
        assert said.code == 2
        with (desk.folder / "differences.csv").open(newline="") as file:
            found = [row["code"] for row in csv.DictReader(file)]
        assert [found.count(code) for code in ("item_changed", "item_removed", "item_added")] == [30, 25, 30]
        (desk.folder / "differences.csv").unlink()


def test_an_id_that_only_looks_the_same_is_spelt_out(desk: Desk) -> None:
    """A composed letter became a decomposed one: on a screen the removed and the added id are equal."""
    desk.write(items=0)
    desk.rows(["caf\u00e9,ch_1,10.00"])
    assert desk("plan", "batch.toml").code == 0
    desk.rows(["cafe\u0301,ch_1,10.00"])
    problems = desk("plan", "batch.toml", "--json").json["error"]["problems"]
    assert problems[-1]["code"] == "item_added"
    assert r"'cafe\u0301'" in problems[-1]["message"] and r"'caf\xe9'" in problems[-1]["message"]


def test_a_field_that_was_emptied_is_called_empty(desk: Desk) -> None:
    """Nothing between two words would read like a slip of the pen."""
    desk.write(items=0)
    (desk.folder / "refunds.csv").write_text("request,charge,amount,memo\nR1,ch_1,10.00,x\n")
    assert desk("plan", "batch.toml").code == 0
    (desk.folder / "refunds.csv").write_text("request,charge,amount,memo\nR1,ch_1,10.00,\n")
    assert "memo was x when it was sealed and is empty now" in desk("plan", "batch.toml").err
