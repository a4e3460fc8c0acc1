"""The cost of a batch of calls: known only afterwards, reserved before, kept within the budget, reported where it was not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.calls.callkit import BILLED, LOOKUP, Calls

PRICE = """
[provider.price]
currency = "USDC"
per_unit = {"usage.tokens" = "0.00000015"}
"""


def committed(said: Any) -> int:
    """What the ledger has as billed, in millionths."""
    return int(said.json["money"]["USDC"]["committed"].replace(".", ""))


HEADER = BILLED.replace('"cost"', "\"header('X-Cost')\"")


@pytest.mark.parametrize(
    "call", ["", BILLED, HEADER], ids=["by the table of prices", "as the answer says", "as a header says"]
)
def test_the_ledgers_total_is_what_the_provider_billed(calls: Calls, call: str) -> None:
    """To the millionth, whether the cost is computed or told; lost answers are found in the usage log, which tells it."""
    calls.provider.configure(token_price="0.00000015", probability={"reset_after": 0.3})
    calls.items, calls.call, calls.tables = 20, call, PRICE + LOOKUP
    said = calls.run()
    assert said.code == 0, said.out + said.err
    assert committed(said) == calls.provider.spent()
    assert set(calls.provider.executed().values()) == {1}
    found = calls.results()
    assert all(record["output"]["output"].startswith("answer ") for record in found)


def test_a_budget_is_never_exceeded_and_stops_the_batch(calls: Calls) -> None:
    """Each call reserves the most it can cost; what is left over goes back, and the run ends with exit 4."""
    calls.items, calls.limits = 12, 'budget = {USDC = "0.0022"}\nreserve = {USDC = "0.0005"}\n'
    calls.provider.configure(token_price="0.00001")
    said = calls.run()
    assert (said.code, said.json["reason_code"]) == (4, "budget")
    assert 0 < calls.provider.spent() <= 2200
    assert said.json["items"]["planned"] > 0 and said.json["findings_open"] == said.json["cost"]["USDC"]["over_reserve"]


def test_what_cost_more_than_its_reservation_is_reported(calls: Calls) -> None:
    """As a finding on the item, with both amounts; within the budget the batch goes on."""
    calls.limits, calls.items = 'budget = {USDC = "1.00"}\nreserve = {USDC = "0.000001"}\n', 2
    said = calls.run()
    assert said.code == 0 and said.json["cost"]["USDC"]["over_reserve"] == 2
    findings = calls("findings", "batch.toml", "--json").json["findings"]
    assert [f["class"] for f in findings] == ["over_reserve", "over_reserve"]


def test_a_reservation_is_computed_from_the_request(calls: Calls) -> None:
    """It stands in the intent: the body's bytes for what goes in, a number for what may come out."""
    calls.call, calls.items = "", 1
    calls.tables = PRICE.replace("usage.tokens", "usage.tokens") + 'at_most = {"usage.tokens" = "bytes"}\n'
    calls.limits = 'budget = {USDC = "1.00"}\n'
    assert calls.run().code == 0
    intent = calls("show", "batch.toml", "r1", "--json").json["events"][0]
    assert intent["type"] == "intent" and intent["reserve"]["currency"] == "USDC"
    assert intent["reserve"]["amount"] > "0.000005"


def test_an_item_whose_model_has_no_price_is_not_sent(calls: Calls) -> None:
    """Refused with its own code, the others go."""
    calls.call = ""
    calls.tables = '[provider.price]\ncurrency = "USDC"\nasked_model = "{model}"\n[provider.price.models.m1]\nper_call = "0.000100"\n'
    said = calls.run()
    assert said.code == 1 and said.json["items"]["refused"] == 2
    assert [r["code"] for r in calls.results() if r["state"] == "refused"] == ["no_price", "no_price"]
    assert set(calls.provider.executed()) == {"r1", "r3", "r5"}


@pytest.mark.parametrize(
    ("limits", "more", "code"),
    [
        ('budget = {USDC = "1.00"}', "", "no_reserve"),
        ("", 'on_unknown = "pay_again"', "pay_again_refused"),
        ("", 'on_unknown = "pay_again"\npay_again_limit = {USDC = "1.00"}', "no_reserve"),
        ('reserve = {USDC = "0.01"}', 'on_unknown = "pay_again"\npay_again_limit = {USDC = 1}', "bad_setting"),
        ('reserve = {USDC = "0.01"}', 'on_unknown = "ask"', "bad_setting"),
    ],
)
def test_settings_that_could_not_be_kept_are_refused(calls: Calls, limits: str, more: str, code: str) -> None:
    """Before anything is read or sent, each with its own code."""
    calls.limits, calls.more = limits, more
    said = calls.run()
    assert said.code == 2 and code in {p["code"] for p in said.json["error"]["problems"]}
    assert not calls.provider.executed()
