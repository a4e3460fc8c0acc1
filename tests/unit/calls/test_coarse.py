"""Totals a day and model: compared as what they are, named coarse, and never taken for proof of a single call."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path

import pytest

from payonce.reconcile.coarse import Key, Result, Sum, compare
from tests.unit.calls.callkit import Calls

MAP = '[statement.coarse]\nday = "date"\nvalue = "model"\namount = "usage"\ncalls = "requests"\ncurrency = {value = "USDC"}\n'


def sums(*rows: tuple[str, str, int, str]) -> dict[Key, Sum]:
    return {Key(day, model, "USDC"): Sum(calls, Decimal(amount)) for day, model, calls, amount in rows}


def test_sums_that_agree_and_a_call_at_midnight() -> None:
    """A day that differs is no finding where the days together agree; a day outside of the report is not covered."""
    ledger = sums(("1", "m", 3, "0.3"), ("2", "m", 2, "0.2"), ("9", "m", 1, "0.1"))
    found = compare(ledger, sums(("1", "m", 2, "0.2"), ("2", "m", 3, "0.3")), tolerance={})
    assert [line.result for line in found.days] == [Result.OTHER_DAY, Result.OTHER_DAY, Result.NOT_COVERED]
    assert [line.result for line in found.totals] == [Result.AGREES] and not found.found


@pytest.mark.parametrize(
    ("statement", "differs"),
    [
        (("1", "m", 3, "0.30"), False),
        (("1", "m", 4, "0.30"), True),
        (("1", "m", 3, "0.31"), True),
        (("1", "m", 3, "0.3001"), False),
        (("1", "n", 3, "0.30"), True),
    ],
)
def test_what_differs(statement: tuple[str, str, int, str], differs: bool) -> None:
    """Amounts beyond the tolerance, counts at all, and a model that only one side has."""
    found = compare(sums(("1", "m", 3, "0.30")), sums(statement), tolerance={"USDC": Decimal("0.001")})
    assert found.found is differs


def test_a_run_against_the_activity_of_its_provider(calls: Calls) -> None:
    """Exact costs, finer than the currency, add up to the provider's own totals; one call more of somebody else's shows."""
    calls.provider.configure(token_price="0.00000037")
    calls.call, calls.items = 'keep = {model = "model"}\n', 12
    calls.tables = '[provider.price]\ncurrency = "USDC"\nper_unit = {"usage.tokens" = "0.00000037"}\n'
    assert calls.run().code == 0
    Path("map.toml").write_text(MAP)
    Path("activity.json").write_bytes(calls.provider.get("/api/v1/activity"))
    asked = ("reconcile", "batch.toml", "--coarse", "--statement", "activity.json", "--map", "map.toml")
    said = calls(*asked, "--json")
    assert said.code == 0, said.out + said.err
    assert said.json["coarse"] is True and {line["result"] for line in said.json["totals"]} == {"agrees"}
    assert sum(line["ledger_calls"] for line in said.json["totals"]) == 12
    assert "coarse" in calls(*asked).out
    activity = json.loads(Path("activity.json").read_text())
    activity["data"][0]["requests"] += 1
    Path("activity.json").write_text(json.dumps(activity))
    assert calls(*asked, "--json").code == 1
    assert calls("findings", "batch.toml", "--json").json["findings"] == []
    assert calls("trail", "verify", "--json").code == 0


def test_a_report_that_cannot_be_read_is_refused(calls: Calls) -> None:
    """Another layout, a cell that is no number, or no table that says what is what: never an empty sum."""
    assert calls.run().code == 0
    Path("report.csv").write_text('date,model,usage,requests\n2026-11-30,m1,"1,234",3\n')
    said = calls("reconcile", "batch.toml", "--coarse", "--statement", "report.csv", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "bad_statement_mapping")
    Path("map.toml").write_text(MAP)
    for text, code in (("1,234", "bad_amount"), ("", "bad_row")):
        Path("report.csv").write_text(f'date,model,usage,requests\n2026-11-30,m1,"{text}",3\n')
        said = calls("reconcile", "batch.toml", "--coarse", "--statement", "report.csv", "--map", "map.toml", "--json")
        assert (said.code, said.json["error"]["code"]) == (2, code)
    Path("report.csv").write_text("day,model,usage\n2026-11-30,m1,1\n")
    said = calls("reconcile", "batch.toml", "--coarse", "--statement", "report.csv", "--map", "map.toml", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "missing_column")


def test_costs_by_a_field(calls: Calls) -> None:
    """By a kept field or a column, in words, as JSON and as a page; exact sums beside billed ones."""
    calls.provider.configure(token_price="0.00000037")
    calls.call, calls.items = 'keep = {model = "model"}\n', 6
    calls.tables = '[provider.price]\ncurrency = "USDC"\nper_unit = {"usage.tokens" = "0.00000037"}\n'
    assert calls.run().code == 0
    found = calls("costs", "batch.toml", "--by", "model", "--html", "costs.html", "--json").json
    assert {(g["value"], g["items"]) for g in found["groups"]} == {("m0", 3), ("m1", 3)}
    assert found["totals"][0]["billed"] == found["cost"]["USDC"]["spent"]
    effects = calls.provider.server.world.effects
    assert Decimal(found["totals"][0]["exact"]) == sum(Decimal(e.detail["exact_cost"]) for e in effects)
    page = Path("costs.html").read_text()
    assert "Cost by model" in page and "m0" in page and "http" not in page.replace("http-equiv", "")
    assert calls("costs", "batch.toml", "--by", "record", "--json").code == 0
    assert "PER ITEM" in calls("costs", "batch.toml").out


def test_the_page_of_a_reconciliation_says_what_the_calls_cost(calls: Calls) -> None:
    """By model, beside the findings."""
    calls.call = 'billed = "cost"\nbilled_unit = "major"\nbilled_currency = "currency"\n'
    assert calls.run().code == 0
    Path("statement.csv").write_bytes(calls.provider.get("/v1/statement.csv"))
    said = calls("reconcile", "batch.toml", "--statement", "statement.csv", "--html", "page.html", "--json")
    assert said.code == 0, said.out
    page = Path("page.html").read_text()
    assert "Cost by model" in page and "m1" in page


def test_days_with_lists_of_results(calls: Calls) -> None:
    """As OpenAI's cost API gives them: the day stands above its results; a page of several is no whole."""
    calls.call = 'billed = "cost"\nbilled_unit = "major"\nbilled_currency = "currency"\n'
    assert calls.run().code == 0
    spent = Decimal(calls.provider.spent()).scaleb(-6)
    midnight = int(time.time()) // 86_400 * 86_400
    half = {
        "object": "organization.costs.result",
        "amount": {"value": float(spent / 2), "currency": "usd"},
        "line_item": None,
    }
    day = {"object": "bucket", "start_time": midnight, "end_time": midnight + 86_400, "results": [half, half]}
    empty = {"object": "bucket", "start_time": midnight - 86_400, "end_time": midnight, "results": []}
    page = {"object": "page", "data": [empty, day], "has_more": False, "next_page": None}
    Path("costs.json").write_text(json.dumps(page))
    table = '[statement.coarse]\nday = "start_time"\ntime_format = "epoch"\namount = "amount.value"\n'
    Path("map.toml").write_text(table + 'currency = {value = "USDC"}\ntolerance = {USDC = "0.000001"}\n')
    asked = ("reconcile", "batch.toml", "--coarse", "--statement", "costs.json", "--map", "map.toml", "--json")
    said = calls(*asked)
    assert said.code == 0, said.out
    assert [line["result"] for line in said.json["totals"]] == ["agrees"] and said.json["statement"]["rows"] == 2
    Path("costs.json").write_text(json.dumps({**page, "has_more": True}))
    said = calls(*asked)
    assert (said.code, said.json["error"]["code"]) == (2, "incomplete")
