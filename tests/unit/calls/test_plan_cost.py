"""What a batch of calls may cost, before the first one leaves."""

from __future__ import annotations

import pytest

from payonce.core.model import Limits, NewItem
from payonce.providers.registry import build
from payonce.service import planning_costs
from tests.unit.calls.callkit import Calls

PRICE = """
[provider.price]
currency = "USDC"
asked_model = "{model}"
at_most = {"usage.tokens" = "bytes"}
estimate = {"usage.tokens" = "bytes/4"}
[provider.price.models.m1]
per_unit = {"usage.tokens" = "0.0001"}
[provider.price.models.m0]
per_unit = {"usage.tokens" = "0.0002"}
"""


def test_the_plan_estimates_and_bounds_the_cost(calls: Calls) -> None:
    """From the requests as they would be sent; what the run then bills lies below the bound."""
    calls.call, calls.tables = "", PRICE
    calls.write()
    said = calls("plan", "batch.toml", "--json").json["cost"]
    assert 0 < float(said["estimated"]["USDC"]) < float(said["at_most"]["USDC"])
    assert said["basis"] == "every item's request" and said["unpriced"] == 0
    assert "at most" in calls("plan", "batch.toml").out
    assert not calls.provider.executed()


def test_a_fixed_reservation_bounds_it_too(calls: Calls) -> None:
    """So much for every item; above the budget the plan says so."""
    calls.limits = 'reserve = {USDC = "0.010000"}\nbudget = {USDC = "0.02"}\n'
    calls.write()
    said = calls("plan", "batch.toml", "--json").json
    assert said["cost"]["at_most"] == {"USDC": "0.050000"}
    assert any("the run may stop there" in warning for warning in said["warnings"])


def test_items_without_a_price_are_told(calls: Calls) -> None:
    """How many there are, and why the first."""
    calls.call, calls.tables = "", PRICE.replace("models.m0", "models.other")
    calls.write()
    said = calls("plan", "batch.toml", "--json").json
    assert said["cost"]["unpriced"] == 2 and any("has no price" in warning for warning in said["warnings"])


def test_a_large_input_is_priced_by_its_first_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the report says that it was."""
    monkeypatch.setattr(planning_costs, "_PRICED", 10)
    table = {
        "kind": "http", "base_url": "http://127.0.0.1:1", "call": {"path": "/v1/calls", "json": {"x": "{id}"}, "reference": "id"},
        "price": {"currency": "USDC", "per_call": "0.5", "per_unit": {"n": "1"}, "at_most": {"n": 0}},
    }  # fmt: skip
    provider = build("http", table, operation="call", batch="b", environ={})
    items = (NewItem(f"r{n}", None) for n in range(1000))
    found = planning_costs.cost_of(provider, items, count=1000, limits=Limits(), batch="b")
    assert found is not None and found.at_most == {"USDC": 500_000_000}
    assert found.basis.startswith("the first 10 items")


def test_the_plan_says_that_it_pays_again(calls: Calls) -> None:
    """What holds after a crash includes the batch's own policy, before the first call and when it is sealed."""
    calls.more = 'on_unknown = "pay_again"\npay_again_limit = {USDC = "0.50"}\n'
    calls.limits = 'reserve = {USDC = "0.010000"}\n'
    calls.write()
    for _ in range(2):
        assert "paid for once more, up to 0.500000 USDC" in calls("plan", "batch.toml", "--json").json["guarantee"]
