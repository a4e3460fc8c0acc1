"""What stays unknown: held by default; paid for once more only where the batch says so, within its limit, counted and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.calls.callkit import LOOKUP, Calls

AGAIN = 'on_unknown = "pay_again"\npay_again_limit = {USDC = "0.025"}\n'
RESERVE = 'reserve = {USDC = "0.010000"}\n'
LOST = {"r2": ["reset_after"], "r4": ["silent_after"]}


def test_by_default_nothing_is_sent_again(calls: Calls) -> None:
    """Neither keys nor look-up: what was lost is unknown, and executed at most once."""
    calls.provider.configure(script=LOST)
    calls.more, calls.timeout = 'on_unknown = "hold"', "500ms"
    said = calls.run()
    assert said.code == 1 and said.json["items"]["unknown"] == 2
    assert max(calls.provider.executed().values()) == 1


def test_paying_again_is_counted_and_shown(calls: Calls) -> None:
    """The item is committed, what it may have cost twice is a finding, and the status says so."""
    calls.provider.configure(script=LOST)
    calls.more, calls.limits, calls.timeout = AGAIN, RESERVE, "500ms"
    said = calls.run()
    assert (said.code, said.json["items"]["committed"]) == (0, 5), said.err
    assert calls.provider.executed() == {"r1": 1, "r2": 2, "r3": 1, "r4": 2, "r5": 1}
    cost = calls("status", "batch.toml", "--json").json["cost"]["USDC"]
    assert (cost["paid_again"], cost["paid_again_amount"], cost["pay_again_limit"]) == (2, "0.020000", "0.025000")
    found = calls("findings", "batch.toml", "--json").json["findings"]
    assert sorted((f["class"], f["item"]) for f in found) == [("paid_again", "r2"), ("paid_again", "r4")]
    types = [e["type"] for e in calls("show", "batch.toml", "r2", "--json").json["events"]]
    assert types == ["intent", "unresolved", "pay_again", "finding", "intent", "commit"]
    assert "paid for again" in calls("status", "batch.toml").out


def test_the_statement_shows_what_was_paid_twice(calls: Calls) -> None:
    """The second execution under the same reference is a duplicate, and the books balance with it."""
    calls.provider.configure(script={"r2": ["reset_after"]})
    calls.more, calls.limits = AGAIN, RESERVE
    assert calls.run().code == 0
    Path("statement.csv").write_bytes(calls.provider.get("/v1/statement.csv"))
    said = calls("reconcile", "batch.toml", "--statement", "statement.csv", "--json")
    assert said.code == 1 and said.json["classes"]["duplicate"] == 1 and said.json["classes"]["matched"] == 5
    assert said.json["balance"]["USDC"]["difference"] == said.json["balance"]["USDC"]["explained"] != "0.000000"


def test_the_limit_holds(calls: Calls) -> None:
    """Two at 0.01 each fit into 0.025, the third stays unknown and says why."""
    calls.provider.configure(faults=[{"kind": "reset_after", "nth": 1}])
    calls.more, calls.limits = AGAIN, RESERVE
    said = calls.run()
    assert (said.code, said.json["items"]["committed"], said.json["items"]["unknown"]) == (1, 2, 3)
    assert all("paying again" in r["message"] for r in calls.results() if r["state"] == "unknown")
    assert sum(calls.provider.executed().values()) == 7


def test_an_item_is_paid_again_no_more_often_than_it_may_be_tried(calls: Calls) -> None:
    """The attempts bound it as well as the limit: then it is unknown."""
    calls.provider.configure(faults=["reset_after"])
    calls.items, calls.more = 1, AGAIN.replace("0.025", "9.00")
    calls.limits = RESERVE + "attempts = 3\n"
    said = calls.run()
    assert (said.code, said.json["items"]["unknown"]) == (1, 1)
    assert calls.provider.executed() == {"r1": 3}


def test_with_a_look_up_only_what_it_cannot_tell_is_paid_again(calls: Calls) -> None:
    """What the usage log shows is committed as it is, at no further cost."""
    calls.provider.configure(script=LOST)
    calls.more, calls.limits, calls.tables, calls.timeout = AGAIN, RESERVE, LOOKUP, "500ms"
    said = calls.run()
    assert said.code == 0 and said.json["cost"]["USDC"]["paid_again"] == 0
    assert max(calls.provider.executed().values()) == 1


@pytest.mark.parametrize("operation", ["refund", "payout", "invoice", "transfer"])
def test_it_is_refused_for_money(calls: Calls, operation: str) -> None:
    """Before anything is read: paying a person twice is no price to pay."""
    calls.more, calls.limits = AGAIN, RESERVE
    calls.write()
    file = calls.folder / "batch.toml"
    file.write_text(file.read_text().replace('operation = "call"', f'operation = "{operation}"'))
    said = calls("run", "batch.toml", "--json")
    assert said.code == 2 and "pay_again_refused" in {p["code"] for p in said.json["error"]["problems"]}
    assert not calls.provider.executed()


def test_a_usage_log_that_lags_is_waited_for(calls: Calls) -> None:
    """Absence proves nothing before the log's lag is over: the lost call is found in it, and not sent again."""
    calls.provider.configure(script={"r3": ["reset_after"]}, lookup_lag="600ms")
    calls.tables = LOOKUP + 'lag = "800ms"\n'
    said = calls.run()
    assert (said.code, said.json["items"]["committed"]) == (0, 5), said.err
    assert max(calls.provider.executed().values()) == 1
    assert calls.results()[2]["output"]["output"].startswith("answer ")


def test_the_trail_and_the_ledger_check_out(calls: Calls) -> None:
    """Paying again leaves a trail that verifies, and counts that add up."""
    calls.provider.configure(script={"r2": ["reset_after"], "r4": ["cut_after"]})
    calls.more, calls.limits = AGAIN, RESERVE
    assert calls.run().code == 0
    said = calls("trail", "verify", "--json")
    assert said.code == 0 and said.json["ok"], said.out
    said = calls("doctor", "batch.toml", "--json")
    assert not [check for check in said.json["checks"] if check["name"] == "ledger" and not check["ok"]], said.out
