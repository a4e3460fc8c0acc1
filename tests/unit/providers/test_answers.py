"""Answer rules, the built-in ones, and the values that are read out of answers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payonce.core.errors import ConfigError
from payonce.core.money import Money
from payonce.core.outcome import AlreadyDone, Executed, NotExecuted, Refused, Stop, Unresolved
from payonce.core.states import Settlement
from payonce.providers import answers_values as values
from payonce.providers.answers_paths import Path, PathError, is_true
from payonce.providers.transport import Answer, Fault
from tests.unit.providers.httpkit import REFUND, TOKEN, Bench, answer, item, outcome, with_call

OK = '{"id":"re_1","amount":1250,"currency":"usd"}'


def ruled(*rules: dict[str, Any], **call: Any) -> dict[str, Any]:
    return {**with_call(**call), "answers": list(rules)}


def test_a_success_with_a_reference_is_executed() -> None:
    """Reference, billed amount, evidence."""
    reply = Bench(REFUND, answer(201, OK, {"Request-Id": "req_7"})).call()
    assert reply.outcome == Executed("re_1", billed=Money("12.50", "USD"))
    assert (reply.sent, reply.status, reply.request_id, reply.replayed) == (True, 201, "req_7", False)
    assert reply.response == OK.encode()
    assert 0 < reply.started_us <= reply.ended_us


@pytest.mark.parametrize("status", range(200, 600))
def test_every_other_status_is_what_the_contract_says(status: int) -> None:
    """No status without a rule is ever a refusal."""
    found = outcome(REFUND, answer(status, b""))
    match status:
        case 401 | 403:
            assert isinstance(found, Stop)
            assert not found.executed
        case 429:
            assert isinstance(found, NotExecuted)
            assert found.load
        case _:
            assert isinstance(found, Unresolved)
            assert not found.burnt


@pytest.mark.parametrize(
    "body", ["", "null", "[]", "{}", '{"id":""}', '{"id":null}', '{"id":true}', '{"id":1.5}', "<html>", '{"id":']
)
def test_a_success_without_a_reference_is_unresolved(body: str) -> None:
    """Also where the body is no JSON at all."""
    assert isinstance(outcome(REFUND, answer(200, body)), Unresolved)


def test_a_truncated_answer_is_unresolved_whatever_it_says() -> None:
    """Its end is not known, so rules are not even asked."""
    cut = Answer(200, (), OK.encode(), truncated=True)
    found = Bench(ruled({"status": 200, "outcome": "refused"}), cut).call()
    assert isinstance(found.outcome, Unresolved)
    assert found.truncated


@pytest.mark.parametrize("status", [409, 425, 500, 503])
def test_retry_after_is_kept_with_doubt(status: int) -> None:
    """The engine waits as the provider asks."""
    found = outcome(REFUND, answer(status, b"", {"Retry-After": "7"}))
    assert isinstance(found, Unresolved)
    assert found.retry_after_us == 7_000_000


def test_a_replayed_success_is_executed_and_marked() -> None:
    """The first answer again."""
    reply = Bench(REFUND, answer(200, OK, {"Idempotent-Replayed": "true"})).call()
    assert isinstance(reply.outcome, Executed)
    assert reply.replayed


def test_rules_are_asked_in_order_and_before_the_built_in_ones() -> None:
    """The first that matches decides."""
    table = ruled(
        {"status": 400, "when": "error.code == 'charge_already_refunded'", "outcome": "already_done"},
        {"status": [400, 402], "outcome": "refused", "code": "error.code", "message": "error.message"},
        {"status": "5xx", "when": "safe", "outcome": "not_executed"},
        {"status": 409, "outcome": "unresolved", "in_progress": True},
        {"status": 401, "when": "error == 'expired'", "outcome": "unresolved", "final": True},
    )
    assert outcome(table, answer(400, '{"error":{"code":"charge_already_refunded"}}')) == AlreadyDone(
        "charge_already_refunded"
    )
    assert outcome(table, answer(402, '{"error":{"code":"declined","message":"No."}}')) == Refused("declined", "No.")
    assert outcome(table, answer(503, '{"safe":true}')) == NotExecuted("http_503")
    assert outcome(table, answer(409, "{}")) == Unresolved("http_409", in_progress=True)
    assert outcome(table, answer(401, '{"error":"expired"}')) == Unresolved("expired", "expired", final=True)
    assert isinstance(outcome(table, answer(401, "{}")), Stop)


def test_a_rule_may_use_status_headers_and_text() -> None:
    """What the body does not say."""
    table = ruled(
        {"when": "http_status() > `399` && header('X-Outcome') == 'none'", "outcome": "not_executed", "load": True},
        {"when": "contains(body_text(), 'duplicate')", "outcome": "already_done"},
    )
    assert isinstance(outcome(table, answer(500, "", {"x-outcome": "none"})), NotExecuted)
    assert isinstance(outcome(table, answer(400, "a duplicate request")), AlreadyDone)
    assert isinstance(outcome(table, answer(500, "")), Unresolved)


def test_a_rule_that_cannot_be_evaluated_lets_nothing_after_it_say_yes() -> None:
    """It might have been the rule that says no."""
    table = ruled({"status": 200, "when": "starts_with(status, 'fail')", "outcome": "refused"})
    found = outcome(table, answer(200, '{"id":"re_1","status":7}'))
    assert isinstance(found, Unresolved)
    assert found.code == "rule_failed"


def test_a_stop_after_5xx_may_have_been_executed() -> None:
    """Unless the rule says that it was not."""
    assert outcome(ruled({"status": 402, "outcome": "stop"}), answer(402)) == Stop("http_402")
    assert outcome(ruled({"status": 500, "outcome": "stop"}), answer(500)) == Stop("http_500", executed=True)
    assert outcome(ruled({"status": 500, "outcome": "stop", "executed": False}), answer(500)) == Stop("http_500")


def test_a_rule_may_say_where_the_reference_is() -> None:
    """A conflict that names what exists."""
    table = ruled({"status": 409, "outcome": "executed", "reference": "error.existing"}, billed=None)
    assert outcome(table, answer(409, '{"error":{"existing":"re_9"}}')) == Executed("re_9")
    assert isinstance(outcome(table, answer(409, "{}")), Unresolved)


def test_an_amount_that_cannot_be_read_exactly_is_never_resent() -> None:
    """It was executed, over something: only a look-up or a person can tell."""
    for amount in ('"12,50"', "12.5", "true", "[]", '"lots"', "1e400", "-1250", "99999999999999999999999"):
        found = outcome(REFUND, answer(200, f'{{"id":"re_1","amount":{amount},"currency":"usd"}}'))
        assert isinstance(found, Unresolved)
        assert (found.code, found.final, found.hint_reference) == ("billed_unreadable", True, "re_1")


def test_an_answer_that_belongs_to_another_call_is_unresolved() -> None:
    """What the answer echoes must be ours."""
    table = with_call(echo={"own_reference": "metadata.ref", "charge_id": "charge"})
    fits = '{"id":"re_1","amount":1250,"currency":"usd","charge":"ch_1","metadata":{"ref":"r-1"}}'
    assert isinstance(outcome(table, answer(200, fits)), Executed)
    assert isinstance(outcome(table, answer(200, OK)), Executed)
    found = outcome(table, answer(200, fits.replace("r-1", "r-2")))
    assert isinstance(found, Unresolved)
    assert (found.code, found.final, found.hint_reference) == ("echo_mismatch", True, "re_1")


def test_status_words_tell_the_settlement() -> None:
    """A failed object is a refusal; a word that is not listed is pending."""
    table = with_call(status="status", status_pending=["pending"], status_succeeded=["ok"], status_failed=["failed"])
    body = '{{"id":"re_1","amount":1250,"currency":"usd","status":"{}"}}'
    for word, settlement in (("pending", "pending"), ("ok", "succeeded"), ("new_word", "pending")):
        found = outcome(table, answer(201, body.format(word)))
        assert isinstance(found, Executed)
        assert found.settlement is Settlement(settlement)
    assert isinstance(outcome(table, answer(201, body.format("failed"))), Refused)


def test_what_is_kept_and_what_is_the_product() -> None:
    """Numbers keep their digits."""
    table = with_call(keep={"tokens": "usage.tokens", "price": "usage.price", "none": "nope"}, output="choices[0]")
    body = '{"id":"c1","usage":{"tokens":7,"price":0.1234567890123456789},"choices":[{"text":"hi","p":0.5}]}'
    found = outcome(table, answer(200, body))
    assert isinstance(found, Executed)
    assert found.kept == {"tokens": 7, "price": "0.1234567890123456789"}
    assert found.output == {"text": "hi", "p": 0.5}


def test_a_paid_call_returns_its_body() -> None:
    """For the operation ``call`` the answer is the product."""
    reply = Bench(REFUND, answer(200, OK), operation="call").call()
    assert isinstance(reply.outcome, Executed)
    assert reply.outcome.output == {"id": "re_1", "amount": 1250, "currency": "usd"}


def test_a_billed_amount_needs_a_currency_before_anything_is_sent() -> None:
    """An item without money, and an answer that tells only a number."""
    table = with_call(json={"x": "{id}"}, billed="cost", billed_currency=None, billed_unit="major")
    with pytest.raises(ConfigError) as caught:
        Bench(table).call(item(money=None))
    assert caught.value.code == "billed_without_currency"


@pytest.mark.parametrize(
    ("fault", "kind", "sent"),
    [
        (Fault("connect_refused", "no", sent=False, load=True), NotExecuted("connect_refused", "no", load=True), False),
        (Fault("not_sent", "held", sent=False), NotExecuted("not_sent", "held"), False),
        (Fault("timeout", "late"), Unresolved("timeout", "late"), True),
    ],
)
def test_faults_become_outcomes(fault: Fault, kind: object, sent: bool) -> None:
    """Not executed only where nothing was sent."""
    reply = Bench(REFUND, fault).call()
    assert (reply.outcome, reply.sent) == (kind, sent)


def test_secrets_are_taken_out_of_messages_and_bodies() -> None:
    """A provider that echoes our credentials does not get them into the ledger."""
    body = f'{{"error":{{"code":"bad","message":"token {TOKEN} is bad"}}}}'
    reply = Bench(REFUND, answer(400, body)).call()
    assert TOKEN not in repr(reply)
    assert "[secret]" in repr(reply)


@pytest.mark.parametrize(
    "rule",
    [
        {"outcome": "refused"},
        {"outcome": "refused", "status": 99},
        {"outcome": "refused", "status": []},
        {"outcome": "refused", "status": "4x"},
        {"outcome": "refused", "when": "a ="},
        {"outcome": "refused", "when": "nope(a)"},
        {"outcome": "paid", "status": 200},
        {"outcome": "refused", "status": 200, "whenn": "a"},
    ],
)
def test_rules_that_make_no_sense_are_refused(rule: dict[str, Any]) -> None:
    """Before anything is sent, and the rule is named."""
    with pytest.raises(ConfigError, match="answers"):
        Bench(ruled(rule))


@given(st.binary(max_size=60), st.integers(100, 599))
def test_no_answer_is_too_odd(body: bytes, status: int) -> None:
    """It never raises; executed only with a reference and a 2xx."""
    found = outcome(REFUND, answer(status, body))
    if isinstance(found, Executed):
        assert 200 <= status < 300
        assert found.reference


# Values


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_minor_units_are_exact(minor: int) -> None:
    """As a number, as text, as a number that was written with a zero fraction."""
    for text in (str(minor), f'"{minor}"', f"{minor}.0"):
        raw = values.parse(text.encode())
        if isinstance(raw, str) and len(raw.lstrip("-")) > 19:
            continue
        assert values.amount(raw, unit="minor", currency="usd") == Money.of_minor(minor, "USD")


@given(st.decimals(min_value=0, max_value=10**12, places=2))
def test_major_units_are_exact(amount: Decimal) -> None:
    """No digit is lost to a float."""
    text = format(amount, "f")
    for body in (text, f'"{text}"'):
        found = values.amount(values.parse(body.encode()), unit="major", currency="EUR")
        assert found == Money(amount, "EUR")


@pytest.mark.parametrize("value", [1.5, True, None, [], {}, "1.5e3", "1,5", "", Decimal("NaN"), Decimal("1e999999")])
def test_what_is_no_exact_amount_is_refused(value: Any) -> None:
    """Nothing is rounded or guessed."""
    for unit in ("minor", "major"):
        with pytest.raises(ValueError):
            values.amount(value, unit=unit, currency="USD")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "us"),
    [
        (1796038358, 1796038358_000000),
        (Decimal("1796038358.25"), 1796038358_250000),
        (1796038358123, 1796038358_123000),
        (1796038358123456, 1796038358_123456),
        ("1796038358", 1796038358_000000),
        ("2026-11-30T11:32:38Z", 1796038358_000000),
        ("2026-11-30T12:32:38+01:00", 1796038358_000000),
        ("2026-11-30T11:32:38", 1796038358_000000),
    ],
)
def test_times(value: Any, us: int) -> None:
    """Seconds, milliseconds or microseconds by size, or ISO 8601."""
    assert values.time_us(value) == us


@pytest.mark.parametrize("value", [True, -5, "soon", 1.5, 10**18, None])
def test_what_is_no_time(value: Any) -> None:
    """Raises."""
    with pytest.raises(ValueError):
        values.time_us(value)


def test_paths_are_exact_about_numbers() -> None:
    """Literals and functions see the digits of the answer."""
    tree = values.parse(b'{"a":0.1,"n":[1,2.5],"s":"1.5","big":9007199254740993}')
    assert is_true(Path("a == `0.1`", place="p").find(tree))
    assert Path("sum(n)", place="p").find(tree) == Decimal("3.5")
    assert Path("to_number(s)", place="p").find(tree) == Decimal("1.5")
    assert Path("to_number(n[1])", place="p").find(tree) == Decimal("2.5")
    assert Path("type(a)", place="p").find(tree) == "number"
    assert Path("abs(n[1])", place="p").find(tree) == Decimal("2.5")
    assert Path("big", place="p").find(tree) == 9007199254740993
    assert Path("a.b.c", place="p").find(tree) is None
    with pytest.raises(PathError):
        Path("length(a)", place="p").find(tree)
