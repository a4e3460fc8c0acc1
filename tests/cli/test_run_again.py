"""A batch that is over ends with the same code however often it is run, until a person has dealt with its findings."""

from __future__ import annotations

import json

import pytest

import payonce
from payonce.core.model import Finding
from payonce.core.states import BatchState
from payonce.engine.run import RunOutcome
from payonce.service.open_findings import DIFFERS, WRONG_MONEY, with_findings
from tests.cli.conftest import Desk


def deal_with(desk: Desk, step: str) -> None:
    """Acknowledges or resolves whatever is open."""
    for found in desk("findings", "refunds", "--json").json["findings"]:
        if found["state"] == "open":
            assert desk("findings", "refunds", step, str(found["id"]), "--reason", "asked them").code == 0


def test_another_billed_amount_is_4_until_it_is_dealt_with(desk: Desk) -> None:
    """At the first end, when the resumed batch is finished, and when it is run again; then 0. In words and in JSON."""
    desk.write(items=3, limits="", provider='script = {R2 = ["other_amount"]}')
    assert desk("run", "batch.toml").code == 4
    assert desk("resume", "refunds", "--reason", "the provider corrects it").code == 0
    ended = desk("run", "batch.toml", "--json")
    assert (ended.code, ended.json["state"], ended.json["reason_code"]) == (4, "finished", "amount_mismatch")
    calls = ended.json["calls"]
    again = desk("run", "batch.toml", "--json")
    assert (again.code, again.json["exit_code"], again.json["calls"]) == (4, 4, calls)
    said = desk("run", "batch.toml").out
    assert "another amount or currency was billed: 1 finding open" in said and "payonce findings batch.toml" in said
    deal_with(desk, "--acknowledge")
    assert desk("run", "batch.toml").code == 0


def test_what_the_provider_showed_is_1_until_it_is_dealt_with(desk: Desk) -> None:
    """One execution too many, found by the run that ended the batch: the same command says so again, without asking."""
    desk.write(items=3)
    assert desk("run", "batch.toml", "--no-reconcile").code == 0
    books = desk.folder / "provider.jsonl"
    first = next(line for line in map(json.loads, books.read_text().splitlines()) if "effect" in line)
    again = {"effect": first["effect"] | {"id": "re_again", "key": None}}
    books.write_text(books.read_text() + json.dumps(again) + "\n")
    assert desk("run", "batch.toml", "--reconcile").code == 1
    assert desk("run", "batch.toml").code == 1
    deal_with(desk, "--resolve")
    assert desk("run", "batch.toml").code == 0


@pytest.mark.parametrize(
    "kind", sorted(WRONG_MONEY | DIFFERS | {"already_done", "paid_again", "half_done", "status_mismatch"})
)
def test_each_class_has_its_code(kind: str) -> None:
    """Wrong money is 4, a provider that shows something else is 1; what the items say already adds nothing."""
    outcome = RunOutcome(0, BatchState.FINISHED, code=None, reason=None, status=None)
    found = Finding(kind, "R1", {}, id=7)
    expected = 4 if kind in WRONG_MONEY else 1 if kind in DIFFERS else 0
    assert with_findings(outcome, [found]).exit_code == expected
    assert with_findings(outcome, [found, Finding(kind, "R1", {"of": 7, "state": "resolved"}, id=8)]).exit_code == 0


def test_a_run_that_ended_early_keeps_its_own_code() -> None:
    """An interrupted or halted run says how to go on, whatever was found before."""
    for code, state in ((75, BatchState.INTERRUPTED), (3, BatchState.HALTED), (1, BatchState.STOPPED)):
        outcome = RunOutcome(code, state, code="x", reason="why", status=None)
        assert with_findings(outcome, [Finding("amount_mismatch", "R1", id=1)]) is outcome


def test_python_says_the_same(desk: Desk) -> None:
    """``payonce.run`` ends a batch with the code of the command line."""
    money = payonce.Money("10.00", "USD")

    @payonce.operation(key=True, retention="24h")
    def pay(call: payonce.Call) -> payonce.Executed:
        return payonce.Executed(f"re-{call.item.id}", payonce.Money("9.00", "USD"))

    assert payonce.run("py", [("a", money)], pay).exit_code == 4
    assert desk("resume", "py", "--reason", "looked").code == 0
    assert [payonce.run("py", [("a", money)], pay).exit_code for _ in range(2)] == [4, 4]
