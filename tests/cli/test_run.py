"""Plan and run on the command line: what is said, what is sealed, what is sent, and how it ends."""

from __future__ import annotations

from tests.cli.conftest import Desk

STATUS = {"batch", "state", "items", "money", "calls", "reason", "started_at", "ended_at"}
PLAN = {"batch", "sealed", "items", "money", "ignored_rows", "problems", "guarantee", "expected_seconds"}


def test_plan_seals_and_sends_nothing(desk: Desk) -> None:
    """The document has the fields of the contract, the ledger the batch, the provider nothing."""
    desk.write()
    said = desk("plan", "batch.toml", "--json")
    assert said.code == 0
    assert set(said.json) >= PLAN
    assert said.json["sealed"] is True
    assert said.json["money"] == {"USD": "50.00"}
    assert desk("status", "refunds", "--json").json["state"] == "sealed"
    assert not (desk.folder / "provider.jsonl").exists() or desk.effects() == 0


def test_a_run_ends_with_counts_that_add_up(desk: Desk) -> None:
    """Exit code 0, one document, every item committed, billed what was asked."""
    desk.write()
    said = desk("run", "batch.toml", "--json")
    assert said.code == 0
    assert set(said.json) >= STATUS
    counts = dict(said.json["items"])
    assert counts.pop("total") == sum(counts.values()) == 5
    assert said.json["money"]["USD"] == {"planned": "50.00", "committed": "50.00", "reserved": "0.00", "budget": None}
    assert desk.effects() == 5


def test_a_finished_batch_makes_no_call(desk: Desk) -> None:
    """The same command again: the same exit code, not one call, look-ups included."""
    desk.write()
    first = desk("run", "batch.toml", "--json").json
    again = desk("run", "batch.toml", "--json")
    assert again.code == 0
    assert again.json["calls"] == first["calls"]


def test_every_problem_is_listed_and_nothing_is_sealed(desk: Desk) -> None:
    """With ``plan --json`` in the plan, with ``run --json`` in the error; exit code 2 both times."""
    desk.write()
    desk.rows(["R1,ch_1,10.00", "R2,ch_2,-3", "R3,ch_3,1.001", "R1,ch_4,10.00"])
    planned = desk("plan", "batch.toml", "--json")
    assert planned.code == 2
    assert planned.json["sealed"] is False
    assert {problem["line"] for problem in planned.json["problems"]} >= {3, 4}
    run = desk("run", "batch.toml", "--json")
    assert run.code == 2
    assert len(run.json["error"]["problems"]) == len(planned.json["problems"])
    assert not list(desk.folder.glob("payonce.db*")), "a plan that fails leaves no ledger behind"


def test_bad_rows_may_be_left_out(desk: Desk) -> None:
    """``--skip-bad-rows`` seals the sound rows; the others are still listed."""
    desk.write()
    desk.rows(["R1,ch_1,10.00", "R2,ch_2,-3"])
    said = desk("plan", "batch.toml", "--skip-bad-rows", "--json")
    assert said.code == 0
    assert said.json["items"] == 1
    assert len(said.json["problems"]) == 1


def test_an_edited_input_is_refused_by_name(desk: Desk) -> None:
    """Changed, removed and added rows since the seal are each named; nothing is sent."""
    desk.write()
    desk("plan", "batch.toml")
    desk.rows(["R1,ch_1,10.00", "R2,ch_2,99.00", "R4,ch_4,10.00", "R5,ch_5,10.00", "R6,ch_6,10.00"])
    said = desk("run", "batch.toml", "--json")
    assert said.code == 2
    found = {(problem["value"], problem["code"]) for problem in said.json["error"]["problems"]}
    assert found == {("R2", "item_changed"), ("R3", "item_removed"), ("R6", "item_added")}
    assert desk("status", "refunds", "--json").json["calls"]["sent"] == 0


def test_the_order_of_rows_is_no_difference(desk: Desk) -> None:
    """The same items in another order are the same batch."""
    desk.write(items=3)
    desk("plan", "batch.toml")
    desk.rows(["R3,ch_3,10.00", "R1,ch_1,10.00", "R2,ch_2,10.00"])
    assert desk("run", "batch.toml", "--json").code == 0


def test_an_input_that_is_gone_is_a_warning(desk: Desk) -> None:
    """At a resume the ledger's own copy of the items is used."""
    desk.write()
    desk("plan", "batch.toml")
    (desk.folder / "refunds.csv").unlink()
    said = desk("run", "batch.toml", "--json")
    assert said.code == 0
    assert said.json["items"]["committed"] == 5
    assert "is gone" in said.err


def test_an_input_that_never_was_is_an_error(desk: Desk) -> None:
    """Before a batch is sealed there must be an input."""
    desk.write()
    (desk.folder / "refunds.csv").unlink()
    assert desk("run", "batch.toml", "--json").code == 2


def test_a_budget_stops_with_exit_code_4(desk: Desk) -> None:
    """Never a cent over; a larger budget and the same command go on."""
    desk.write(limits='budget = {USD = "25.00"}')
    said = desk("run", "batch.toml", "--json")
    assert said.code == 4
    assert said.json["money"]["USD"]["committed"] == "20.00"
    assert said.json["money"]["USD"]["budget"] == "25.00"
    desk.write(limits='budget = {USD = "50.00"}')
    assert desk("run", "batch.toml", "--json").code == 0
    assert desk.effects() == 5


def test_unknown_items_end_with_1_and_are_listed(desk: Desk) -> None:
    """The summary names each unknown item and what to do."""
    desk.write(provider='keys = false\nlookup = false\nscript = {R2 = ["reset_after"]}')
    said = desk("run", "batch.toml")
    assert said.code == 1
    assert "R2" in said.out
    assert "payonce resolve batch.toml ITEM" in said.out
    assert desk.effects() == 5


def test_the_plan_says_which_guarantee_applies(desk: Desk) -> None:
    """One sentence, which follows what the provider offers."""
    desk.write(provider="keys = false\nlookup = false")
    assert desk("plan", "batch.toml", "--json").json["guarantee"].startswith("Neither keys nor look-up")


def test_a_total_above_the_budget_is_said_before(desk: Desk) -> None:
    """The plan warns that the run will stop."""
    desk.write(limits='budget = {USD = "25.00"}')
    assert "above the budget" in desk("plan", "batch.toml").err
