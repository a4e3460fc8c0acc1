"""What a call costs by a table of prices: every digit kept until the call's total, rounded as declared, never guessed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest

from payonce.core.errors import ConfigError
from payonce.core.model import Item, Request
from payonce.core.money import Money
from payonce.providers import answers_values as values
from payonce.providers.http_price import NoPrice, Price
from payonce.providers.settings import CallTable
from payonce.providers.settings_price import PriceTable
from payonce.providers.templates import Context, Names
from payonce.providers.transport import Answer

TOKENS = {"usage.prompt_tokens": "0.00000015", "usage.completion_tokens": "0.0000006"}
NAMES = Names({})


def price(**table: Any) -> Price:
    return Price(PriceTable(**{"currency": "USDC", **table}), names=NAMES)


def context(**fields: Any) -> Context:
    return Context(Item(1, "r1", "r1", None, fields), None, "b")


def cost(priced: Price, answer: Any, **fields: Any) -> tuple[str, dict[str, str]]:
    body = orjson.dumps(answer)
    found = priced.of_answer(values.parse(body), Answer(200, (), body), context(**fields))
    return found.money.text, found.kept


def test_units_are_summed_exactly_and_rounded_once() -> None:
    """7 x 0.15 + 3 x 0.6 millionths are 2.85: rounded to 3, and the exact cost goes with the commit."""
    usage = {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    assert cost(price(per_unit=TOKENS), usage) == ("0.000003", {"$cost": "0.00000285"})
    assert cost(price(per_unit=TOKENS, rounding="down"), usage)[0] == "0.000002"
    assert cost(price(per_unit=TOKENS, rounding="up", per_call="0.000001"), usage)[0] == "0.000004"
    assert cost(price(per_unit=TOKENS), {"usage": {"prompt_tokens": 20, "completion_tokens": 0}}) == ("0.000003", {})


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [("half_even", "0.000002"), ("half_up", "0.000003"), ("up", "0.000003"), ("down", "0.000002")],
)
def test_a_half_is_rounded_as_declared(rounding: str, expected: str) -> None:
    """2.5 millionths under each rounding there is."""
    assert cost(price(official="price", rounding=rounding), {"price": "0.0000025"})[0] == expected


def test_an_official_price_times_a_multiplier() -> None:
    """The multiplier is a decimal, fixed or a column of the input; nothing passes through a float."""
    assert cost(price(official="official", multiplier="1.1"), {"official": "0.000003"}) == (
        "0.000003",
        {"$cost": "0.0000033"},
    )
    assert cost(price(official="official", multiplier="{share}"), {"official": 3}, share="0.35")[0] == "1.050000"
    with pytest.raises(NoPrice, match="multiplier"):
        cost(price(official="official", multiplier="{share}"), {"official": 3}, share="much")


def test_a_models_own_prices_and_those_of_all() -> None:
    """The answer's model counts, else the one asked for; what a model does not state is as for all."""
    priced = price(
        per_call="0.000001",
        per_unit={"n": "0.000002"},
        model="model",
        asked_model="{model}",
        models={"big": {"per_unit": {"n": "0.00001"}}, "flat": {"per_call": "0.5", "per_unit": {}}},
    )
    assert cost(priced, {"n": 1, "model": "big"}, model="x")[0] == "0.000011"
    assert cost(priced, {"n": 1, "model": "big-2026-01-01"}, model="big")[0] == "0.000011"
    assert cost(priced, {"n": 1, "model": "flat"}, model="x")[0] == "0.500000"
    assert cost(priced, {"n": 1}, model="other")[0] == "0.000003"


def test_a_model_without_a_price_is_refused_before_anything_is_sent() -> None:
    """Its cost could not be kept within a budget."""
    priced = price(asked_model="{model}", models={"big": {"per_call": "1"}})
    priced.check(context(model="big"))
    with pytest.raises(ConfigError) as fault:
        priced.check(context(model="small"))
    assert fault.value.code == "no_price"


@pytest.mark.parametrize("answer", [{}, {"usage": {"prompt_tokens": 1}}, {"usage": {"prompt_tokens": -1, "completion_tokens": 1}}, {"usage": {"prompt_tokens": "many", "completion_tokens": 1}}, {"usage": {"prompt_tokens": True, "completion_tokens": 1}}])  # fmt: skip
def test_a_count_that_is_not_there_is_not_nothing(answer: Any) -> None:
    """A missing, negative or unreadable count is an error, never zero."""
    with pytest.raises(NoPrice):
        cost(price(per_unit=TOKENS), answer)


def test_what_a_request_can_cost_at_most() -> None:
    """Bytes of the request bound what goes in, a column what comes out; the bound is rounded up."""
    priced = price(
        per_call="0.000001",
        per_unit=TOKENS,
        at_most={"usage.prompt_tokens": "bytes/4", "usage.completion_tokens": "{limit}"},
        multiplier="2",
    )
    request = Request("POST", "/", b"x" * 9)
    assert priced.at_most(request, context(limit=10)) == Money("0.000015", "USDC")  # (1 + 3 x 0.15 + 10 x 0.6) x 2
    with pytest.raises(ConfigError):
        priced.at_most(request, context(limit="a lot"))
    assert price(per_unit=TOKENS).at_most(request, context()) is None


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"currency": None, "per_call": "1"}, "no currency"),
        ({"currency": "XXX", "per_call": "1"}, "currency"),
        ({}, "states no price"),
        ({"per_call": "1e-6"}, "per_call"),
        ({"per_unit": {"n": "-1"}}, "per_unit.n"),
        ({"per_call": "1", "multiplier": "x1.1"}, "multiplier"),
        ({"models": {"m": {"per_call": "1"}}}, "which model"),
        ({"asked_model": "m", "models": {"m": {"per_cal": "1"}}}, "per_cal"),
        ({"per_unit": {"n": "1"}, "at_most": {"m": 1}}, "how many of 'n'"),
        ({"per_unit": {"n": "1"}, "at_most": {"n": 1, "m": 1}}, "'m'"),
        ({"per_unit": {"n": "1"}, "at_most": {"n": "plenty"}}, "at_most.n"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(table: dict[str, Any], says: str) -> None:
    """Each with its setting named."""
    with pytest.raises(ConfigError) as fault:
        price(**table)
    assert says in fault.value.message


def test_a_billed_amount_may_be_finer_than_its_currency_only_where_a_rounding_is_declared() -> None:
    """Else it is unreadable: nothing is rounded that nobody said is rounded. A header may tell it too."""
    from payonce.core.outcome import Executed
    from payonce.providers.answers_executed import ExecutionReader, Unsure

    body = b'{"id": "gen-1", "usage": {"cost": 0.00000345}}'
    answer = Answer(200, ((b"X-Cost", b"0.000012"),), body)
    table: dict[str, Any] = {"path": "/", "reference": "id", "billed": "usage.cost", "billed_unit": "major", "billed_currency": "'USDC'"}  # fmt: skip

    def read(**more: Any) -> Executed:
        reader = ExecutionReader(CallTable(**{**table, **more}), names=NAMES, returns_output=True)
        found = reader.executed(values.parse(body), answer, context=context(), reference=None, ruled=False)
        assert isinstance(found, Executed)
        return found

    with pytest.raises(Unsure, match="decimals"):
        read()
    rounded = read(billed_rounding="half_even")
    assert rounded.billed == Money("0.000003", "USDC") and rounded.kept == {"$cost": "0.00000345"}
    assert read(billed="header('X-Cost')").billed == Money("0.000012", "USDC")
    assert Decimal(str(rounded.output["usage"]["cost"])) == Decimal("0.00000345")
