"""The idempotency layer of the simulated provider."""

from __future__ import annotations

import pytest

from payonce.providers.simulator import Abort, Answer, Close, Silence, Wait
from tests.unit.simulator.simfar import Far, answered, code_of, waited


def test_a_repeated_key_replays_the_same_bytes_and_executes_once() -> None:
    """The second call under a key gets the first answer, marked as replayed."""
    far = Far()
    first, again = far.refund(key="k"), far.refund(key="k")
    assert answered(first)[:2] == answered(again)[:2]
    assert answered(again)[2] == {"Idempotent-Replayed": "true"}
    assert far.executed() == [("r1", 1250)]


def test_ignored_keys_execute_again() -> None:
    """A provider that ignores keys executes every call, and its statement shows none."""
    far = Far(keys="ignored")
    far.refund(key="k")
    far.refund(key="k")
    assert len(far.executed()) == 2
    assert {row["idempotency_key"] for row in far.get("/v1/statement.json")["data"]} == {""}


def test_a_forgotten_key_executes_again() -> None:
    """The window runs from the first arrival, and repeats do not extend it."""
    far = Far(key_retention="1s")
    far.refund(key="k")
    far.pass_ms(999)
    far.refund(key="k")
    assert len(far.executed()) == 1
    far.pass_ms(1)
    far.refund(key="k")
    assert len(far.executed()) == 2


def test_another_body_or_path_under_a_key_is_an_error() -> None:
    """400 idempotency_error, and nothing is executed."""
    far = Far()
    far.refund(key="k")
    for plan in (
        far.refund(key="k", amount=1251),
        far.post("/v1/payouts", key="k", amount=1, currency="usd"),
    ):
        status, body, _ = answered(plan)
        assert (status, body["error"]["type"]) == (400, "idempotency_error")
    assert len(far.executed()) == 1


def test_keys_are_apart_for_each_account() -> None:
    """Test and live accounts do not share keys, effects or statements."""
    far = Far(api_keys={"a": {"account": "acct_a", "livemode": True}, "b": {"account": "acct_b"}})
    assert answered(far.post(key="k", token="a", charge="ch_1", amount=5))[0] == 200
    assert answered(far.post(key="k", token="b", charge="ch_1", amount=5))[0] == 200
    assert far.get("/v1/account", token="a") == {"id": "acct_a", "object": "account", "livemode": True}
    assert len(far.get("/v1/refunds", token="a")["data"]) == 1
    assert code_of(far.post(token="c", charge="ch_1", amount=5)) == (401, "api_key_invalid")


def test_a_long_key_is_cut_silently() -> None:
    """Two keys that differ only behind the cut are one key to the provider."""
    far = Far(key_max_length=8)
    far.refund(key="12345678-a")
    assert answered(far.refund(key="12345678-b"))[2] == {"Idempotent-Replayed": "true"}
    assert far.world.effects[0].key == "12345678"


def test_a_key_whose_first_call_still_runs_is_in_use() -> None:
    """409 until the slow execution is done, then the replay."""
    far = Far(script={"r1": ["slow:8s"]})
    first = far.refund(key="k")
    for _ in range(2):
        far.pass_ms(2_000)
        assert code_of(far.refund(key="k")) == (409, "idempotency_key_in_use")
    far.pass_ms(5_000)
    assert answered(far.refund(key="k"))[2] == {"Idempotent-Replayed": "true"}
    assert answered(far.world.resume(first.ticket))[0] == 200
    assert far.executed() == [("r1", 1250)]


def test_a_key_is_in_use_during_the_latency() -> None:
    """The answer counts from when it is given, though the execution is at the start."""
    far = Far(latency="20ms")
    first = far.refund(key="k")
    assert isinstance(first, Answer)
    assert first.after_us == 20_000
    assert code_of(far.refund(key="k")) == (409, "idempotency_key_in_use")


@pytest.mark.parametrize("fault", ["error_500_before", "error_500_after", "refuse:card_declined", "refuse:any"])
def test_a_stored_error_is_replayed(fault: str) -> None:
    """500, 402 and a coded 400 are remembered: the key is burnt."""
    far = Far(script={"r1": [fault]})
    first, again = answered(far.refund(key="k")), answered(far.refund(key="k"))
    assert first[0] in (400, 402, 500)
    assert again == (first[0], first[1], {"Idempotent-Replayed": "true"})
    assert len(far.executed()) == (1 if fault.endswith("after") else 0)


@pytest.mark.parametrize("fault", ["stop_401", "rate_limited", "lock_timeout", "reset_before", "hang"])
def test_what_is_met_before_the_key_is_not_stored(fault: str) -> None:
    """The same key executes afterwards."""
    far = Far(script={"r1": [fault]})
    far.refund(key="k")
    assert far.executed() == []
    assert answered(far.refund(key="k"))[2] == {}
    assert far.executed() == [("r1", 1250)]


def test_validation_errors_are_not_stored() -> None:
    """An invalid amount and an unknown charge leave the key free."""
    far = Far(auto_create_charges=False, charges={"ch_r1": {"amount": 5000}})
    assert code_of(far.refund(key="k", amount="12.50")) == (400, "parameter_invalid_integer")
    assert code_of(far.refund(key="k", charge="ch_no")) == (404, "resource_missing")
    assert answered(far.refund(key="k"))[0] == 200


def test_without_stored_errors_the_execution_is_still_remembered() -> None:
    """A 500 after the execution is followed by the true answer, not by a second execution."""
    far = Far(stores_errors=False, script={"r1": ["error_500_after"], "r2": ["error_500_before"]})
    assert answered(far.refund(key="k"))[0] == 500
    assert answered(far.refund(key="k"))[1]["id"] == far.world.effects[0].id
    assert answered(far.refund("r2", key="k2"))[0] == 500
    assert answered(far.refund("r2", key="k2"))[0] == 200
    assert far.executed() == [("r1", 1250), ("r2", 1250)]


def test_errors_may_free_the_key() -> None:
    """A provider that keeps only 2xx executes again after its own 500: the trap of such providers."""
    far = Far(stores_errors=False, errors_free_key=True, script={"r1": ["error_500_after"]})
    far.refund(key="k")
    far.refund(key="k")
    assert len(far.executed()) == 2


@pytest.mark.parametrize(
    ("fault", "plan"),
    [("silent_after", Silence), ("reset_after", Abort), ("close_after", Close), ("cut_after", Answer)],
)
def test_a_lost_answer_is_replayed(fault: str, plan: type) -> None:
    """Executed, the answer lost, replayed under the key; a replayed answer can be lost as well."""
    far = Far(script={"r1": [fault, fault, "replay"]})
    assert isinstance(far.refund(key="k"), plan)
    assert isinstance(far.refund(key="k"), plan)
    assert answered(far.refund(key="k"))[2] == {"Idempotent-Replayed": "true"}
    assert far.executed() == [("r1", 1250)]


def test_the_answer_of_a_slow_call_waits() -> None:
    """A slow call executes when it is due, not when it arrives, and asking early waits on."""
    far = Far(script={"r1": ["slow:50ms"]})
    plan = far.refund(key="k")
    assert isinstance(plan, Wait)
    assert far.executed() == []
    assert far.world.resume(plan.ticket) == plan
    assert answered(waited(plan, far))[0] == 200
    assert far.world.effects[0].executed_at == plan.until_us
