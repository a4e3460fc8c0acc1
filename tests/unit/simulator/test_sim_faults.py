"""What each fault does to a call, and when it is met."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from payonce.providers.simulator import Abort, Answer, Close, ConfigError, Silence, parse
from tests.unit.simulator.simfar import T0, Far, answered, code_of


@pytest.mark.parametrize(
    ("fault", "plan", "executed"),
    [
        ("unreachable", Abort, 0),
        ("reset_before", Abort, 0),
        ("close_before", Close, 0),
        ("hang", Silence, 0),
        ("reset_after", Abort, 1),
        ("close_after", Close, 1),
        ("silent_after", Silence, 1),
        ("cut_after", Answer, 1),
        ("garbage", Answer, 1),
        ("huge:1000", Answer, 1),
    ],
)
def test_delivery_faults(fault: str, plan: type, executed: int) -> None:
    """Whether a call without a proper answer was executed is what its kind says."""
    far = Far(script={"r1": [fault]})
    assert isinstance(far.refund(), plan)
    assert len(far.executed()) == executed


def test_only_an_unreachable_provider_proves_that_nothing_was_sent() -> None:
    """A reset may come after bytes were sent; a refused connection cannot."""
    far = Far(script={"r1": ["unreachable", "reset_before"]})
    plans = far.refund(), far.refund()
    assert [plan.sent for plan in plans if isinstance(plan, Abort)] == [False, True]


def test_a_late_execution_happens_though_nobody_asks_again() -> None:
    """The connection is reset at once, the money moves later, at the time it was due."""
    far = Far(script={"r1": ["late_execution:2s"]})
    assert isinstance(far.refund(key="k"), Abort)
    assert far.executed() == []
    assert code_of(far.refund(key="k")) == (409, "idempotency_key_in_use")
    far.pass_ms(9_000)
    assert far.executed() == [("r1", 1250)]
    assert far.world.effects[0].executed_at == T0 + 2_000_000
    assert answered(far.refund(key="k"))[2] == {"Idempotent-Replayed": "true"}


def test_accepted_executes_later() -> None:
    """202 now and on a repeat, the execution after its time."""
    far = Far(script={"r1": ["accepted_202:1s"]})
    assert answered(far.refund(key="k"))[:2] == (202, {"status": "processing"})
    far.pass_ms(1_000)
    assert answered(far.refund(key="k"))[:2] == (202, {"status": "processing"})
    assert far.executed() == [("r1", 1250)]


@pytest.mark.parametrize(("shape", "status", "body"), [("empty", 204, b""), ("unknown", 200, {"result": "done"})])
def test_an_odd_success_executes(shape: str, status: int, body: object) -> None:
    """A success in a shape that nobody knows is still an execution."""
    far = Far(script={"r1": [f"odd_success:{shape}"]})
    assert answered(far.refund())[:2] == (status, body)
    assert len(far.executed()) == 1


def test_another_amount_is_executed_and_answered() -> None:
    """The answer and the books agree on the wrong amount."""
    far = Far(script={"r1": ["other_amount:3"]})
    assert answered(far.refund())[1]["amount"] == 1253
    assert far.executed() == [("r1", 1253)]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("already_refunded", (400, "charge_already_refunded")),
        ("refuse:charge_disputed", (400, "charge_disputed")),
        ("refuse:card_declined", (402, "card_declined")),
        ({"kind": "refuse", "status": 422, "code": "x"}, (422, "x")),
        ("lock_timeout", (429, "lock_timeout")),
        ("stop_401", (401, "api_key_invalid")),
        ("error_500_before", (500, "internal_error")),
    ],
)
def test_refusals(fault: Any, expected: tuple[int, str]) -> None:
    """Each refusal has its status and code, and executes nothing."""
    far = Far(script={"r1": [fault]})
    assert code_of(far.refund()) == expected
    assert far.executed() == []


def test_retry_after_as_seconds_as_a_date_or_not_at_all() -> None:
    """The HTTP date is the world's time plus the wait, rounded up to a second."""
    limited = {"kind": "rate_limited", "retry_after": "120s"}
    far = Far(script={"r1": [{**limited, "retry_as": name} for name in ("seconds", "date", "none")] + ["rate_limited"]})
    seconds, date, none, plain = (answered(far.refund())[2] for _ in range(4))
    assert (seconds, none, plain) == ({"Retry-After": "120"}, {}, {})
    assert parsedate_to_datetime(date["Retry-After"]).timestamp() == T0 // 1_000_000 + 120


def test_a_rate_limit_is_hard() -> None:
    """Never more than n in any one second, across the second's boundary too; refused calls do not count."""
    far = Far(rate_limit={"per_second": 25, "retry_after": "seconds"})
    far.pass_ms(900)
    statuses = [answered(far.refund(f"r{n}"))[0] for n in range(40)]
    assert (statuses.count(200), statuses.count(429)) == (25, 15)
    far.pass_ms(999)
    status, _, headers = answered(far.refund("late"))
    assert (status, headers) == (429, {"Retry-After": "1"})
    far.pass_ms(1)
    assert answered(far.refund("late"))[0] == 200
    assert far.world.stats.rate_limited == 16


def test_a_storm_has_a_start_and_an_end() -> None:
    """Every call in its time is refused, none before or after."""
    far = Far(faults=[{"kind": "rate_limited", "start": "1s", "length": "2s"}])
    seen = []
    for n in range(4):
        seen.append(answered(far.refund(f"r{n}"))[0])
        far.pass_ms(1_000)
    assert seen == [200, 429, 429, 200]


def test_faults_by_item_by_count_and_by_turn() -> None:
    """items, first and nth each choose the calls they name."""
    far = Far(faults=[{"kind": "refuse", "items": ["a"]}, {"kind": "hang", "first": 2}, {"kind": "garbage", "nth": 2}])
    kinds = [type(far.refund(ref)).__name__ for ref in ("b", "c", "d", "a")]
    assert kinds == ["Silence", "Silence", "Answer", "Answer"]
    assert code_of(far.refund("a")) == (400, "refused")
    assert answered(far.refund("d"))[1].startswith(b"<html>")


def test_chance_follows_the_seed_not_the_order() -> None:
    """An item's fate is the same whatever comes before it, and its share is about what was asked."""

    def fates(names: list[str]) -> dict[str, bool]:
        far = Far(probability={"reset_after": 0.3})
        return {name: isinstance(far.refund(name), Abort) for name in names}

    names = [f"r{n}" for n in range(400)]
    assert fates(names) == fates(names[::-1])
    assert 80 < sum(fates(names).values()) < 160


def test_lookups_meet_faults_of_their_own() -> None:
    """`on = "reads"` touches look-ups only."""
    far = Far(faults=[{"kind": "error_500_before", "on": "reads", "first": 1}])
    assert answered(far.refund())[0] == 200
    assert far.get("/v1/refunds") == 500
    assert len(far.get("/v1/refunds")["data"]) == 1


@pytest.mark.parametrize(
    ("behaviours", "says"),
    [
        ({"key_retenton": "1s"}, "did you mean 'key_retention'"),
        ({"keys": "maybe"}, "keys: 'maybe' is not one of honoured, ignored"),
        ({"latency": 20}, "latency: 20 is not a duration"),
        ({"latency": "0.0000001s"}, "is not a duration"),
        ({"latency": "1.s"}, "is not a duration"),
        ({"latency": {"min": "2s", "max": "1s"}}, "min is above max"),
        ({"script": {"r1": ["silent"]}}, r"script.r1\[0\]: unknown fault 'silent'"),
        ({"faults": [{"kind": "hang", "chance": 1}]}, r"faults\[0\]: unknown setting 'chance'"),
        ({"probability": {"hang": 2}}, "probability.hang: 2 is not a probability"),
        ({"lookup": "false"}, "lookup: 'false' is neither true nor false"),
        ({"charges": {"ch_1": {"amount": 1.5}}}, "charges.ch_1.amount: 1.5"),
        ({"rate_limit": "fast"}, "rate_limit: 'fast'"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(behaviours: dict[str, object], says: str) -> None:
    """Nothing unknown is ignored; the message names the place."""
    with pytest.raises(ConfigError, match=says):
        parse(behaviours)


def test_a_fraction_of_a_second_is_a_duration() -> None:
    """Exactly, in whole microseconds."""
    from payonce.providers.simulator.values import duration_us

    assert duration_us("0.4s", where="x") == 400_000
    assert duration_us("1.000001s", where="x") == 1_000_001
    assert duration_us("0.5 ms", where="x") == 500
    assert duration_us("24h", where="x") == 86_400_000_000
