"""The table of single answers that others have misread, each through a configured HTTP provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from payonce.core.money import Money
from payonce.core.outcome import AlreadyDone, Executed, NotExecuted, Outcome, Refused, Stop, Unresolved
from tests.unit.providers.httpkit import REFUND, Bench, answer, item, with_call

CASES = Path(__file__).parents[2] / "data" / "cases" / "provider_replies.jsonl"
REPLIES = {case["id"]: case for case in map(json.loads, CASES.read_text(encoding="utf-8").splitlines())}

# What the batch file has to say about its API where the built-in rules are not enough.
RULES: dict[str, list[dict[str, Any]]] = {
    "R01": [{"status": 200, "when": "success == `false`", "outcome": "refused", "message": "errors[0]"}],
    "R07": [{"status": 200, "when": "Ds_Response == '0900'", "outcome": "executed"}],
    "R19": [{"status": 400, "when": "error && contains(error, 'must be less')", "outcome": "already_done"}],
    "R21": [{"status": 402, "outcome": "refused"}],
    "R27": [{"status": 409, "when": "contains(body_text(), 'already been refunded')", "outcome": "already_done"}],
    "R29": [
        {
            "status": 200,
            "when": "status == 'completed' && request_counts.completed == `0`",
            "outcome": "refused",
            "code": "error_file_id",
        }
    ],
}
WANTED: dict[str, type[Outcome]] = {
    "failed": Refused,
    "unknown": Unresolved,
    "pending": Unresolved,
    "succeeded": Executed,
    "retry_same_key": NotExecuted,
    "unknown_stop": Unresolved,
    "look_up": AlreadyDone,
    "stop_batch": Stop,
    "mismatch_alarm": Executed,
}


def classify(case: dict[str, Any], rules: list[dict[str, Any]]) -> Outcome:
    table = {**with_call(reference_template="{id}"), "answers": rules}
    asked = item(Money("1000.00", "GBP"))
    return Bench(table, answer(case["status"], case["body"], case["headers"])).call(asked).outcome


@pytest.mark.parametrize("name", REPLIES)
def test_every_reply_is_classified(name: str) -> None:
    """With the rules its API needs, each answer has the class it must have."""
    case = REPLIES[name]
    found = classify(case, RULES.get(name, []))
    assert isinstance(found, WANTED[case["classify"]]), found


@pytest.mark.parametrize("name", REPLIES)
def test_without_rules_nothing_is_taken_for_a_refusal_or_a_success(name: str) -> None:
    """The built-in rules alone never decide what they cannot know."""
    found = classify(REPLIES[name], [])
    assert not isinstance(found, Refused | AlreadyDone)
    if isinstance(found, Executed):
        assert name == "R25"


def test_a_stored_error_burns_its_key() -> None:
    """R15: the provider replays a 500; asking again under this key cannot help."""
    found = classify(REPLIES["R15"], [])
    assert isinstance(found, Unresolved)
    assert found.burnt


def test_the_lock_is_load_and_uses_up_no_attempt() -> None:
    """R13: 429 without a rate-limit header is still load."""
    found = classify(REPLIES["R13"], [])
    assert isinstance(found, NotExecuted)
    assert (found.code, found.load) == ("rate_limited", True)


def test_another_amount_and_currency_are_reported_as_billed() -> None:
    """R25: asked 1000.00 GBP, the answer says 1000.00 INR; the engine stops on it."""
    found = classify(REPLIES["R25"], [])
    assert isinstance(found, Executed)
    assert found.billed == Money("1000.00", "INR")


def test_an_empty_success_needs_a_rule_even_where_we_name_the_reference() -> None:
    """R03: a reference of our own making never turns a bare 200 into an execution."""
    found = classify(REPLIES["R03"], [])
    assert isinstance(found, Unresolved)
    ruled = classify(REPLIES["R03"], [{"status": 200, "outcome": "executed"}])
    assert ruled == Executed(reference="r-1")


def test_the_tables_are_complete() -> None:
    """Every case is there, with a class that is known."""
    assert len(REPLIES) == 15
    assert {case["classify"] for case in REPLIES.values()} <= set(WANTED)
    assert REFUND["key"]["stores_errors"]
