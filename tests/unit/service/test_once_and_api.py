"""The Python API on a real SQLite ledger: whole batches, and one guarded call inside someone else's job."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import payonce
from payonce import Money
from payonce.service.single import Once

TEN = Money("10.00", "USD")


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """A new ledger's address."""
    return f"sqlite:{tmp_path / 'payonce.db'}"


def guard(ledger: str, item: str = "inv-1", *, money: Money = TEN, key: bool = True) -> Once:
    """A guarded call."""
    return payonce.once(ledger, batch="payouts", item=item, money=money, key=key)


def test_an_executed_item_is_not_entered_again(ledger: str) -> None:
    """The second time `done` is true and the reference is there."""
    with guard(ledger) as call:
        assert not call.done
        assert call.key
        call.executed("tr_1")
    with guard(ledger) as call:
        assert (call.done, call.reference) == (True, "tr_1")


def test_with_a_key_the_body_is_entered_again_under_the_same_key(ledger: str) -> None:
    """What a body that raised has done is not known: the same key decides it."""

    async def main() -> list[str | None]:
        keys: list[str | None] = []
        with pytest.raises(ConnectionError):  # noqa: PT012 - what the block does is the point
            async with guard(ledger) as call:
                keys.append(call.key)
                raise ConnectionError("the answer was lost")
        async with guard(ledger) as call:
            keys.append(call.key)
            call.executed("tr_1")
        return keys

    first, second = asyncio.run(main())
    assert first == second


def test_without_a_promise_it_is_never_entered_again(ledger: str) -> None:
    """It may have been executed: a person has to resolve it."""
    with pytest.raises(ConnectionError), guard(ledger, key=False):
        raise ConnectionError("the answer was lost")
    with pytest.raises(payonce.ItemUnknown), guard(ledger, key=False):
        pytest.fail("the body was entered again")


def test_an_item_never_changes(ledger: str) -> None:
    """Another amount under the same item is refused before anything is done."""
    with guard(ledger) as call:
        call.executed("tr_1")
    with pytest.raises(payonce.SealedError), guard(ledger, money=Money("11.00", "USD")):
        pytest.fail("the body was entered")


def test_two_tasks_never_have_one_item(ledger: str) -> None:
    """The second one is told that it is busy."""

    async def main() -> None:
        async with guard(ledger) as call:
            with pytest.raises(payonce.ItemBusy):
                async with guard(ledger):
                    pytest.fail("both were in the body")
            call.executed("tr_1")

    asyncio.run(main())


def test_a_body_that_reports_nothing_is_an_error(ledger: str) -> None:
    """It counts as may have been executed, and the caller is told."""
    with pytest.raises(payonce.UsageError, match="no outcome"), guard(ledger):
        pass


def test_a_refused_item_says_so(ledger: str) -> None:
    """A definite no is kept; the body is not entered again by itself."""
    with guard(ledger) as call:
        call.report(payonce.Refused("no_such_account"))
    with pytest.raises(payonce.ItemRefused, match="no_such_account"), guard(ledger):
        pytest.fail("the body was entered again")


def test_a_batch_from_python_is_paid_once(ledger: str) -> None:
    """Run twice, inside a running loop and outside: each item is executed once; other items are refused."""
    done: list[str] = []

    @payonce.operation(key=True, retention="24h")
    def pay(call: payonce.Call) -> payonce.Executed:
        done.append(call.item.id)
        return payonce.Executed(f"re_{call.item.id}", call.money)

    items = [{"id": f"r{k}", "amount": "1.00", "currency": "USD"} for k in range(20)]
    result = payonce.run("b", items, pay, ledger=ledger, concurrency=4)
    assert (result.exit_code, result.counts.committed, result.counts.total) == (0, 20, 20)

    async def inside() -> payonce.Result:
        first = await payonce.run_async("b", items, pay, ledger=ledger)
        return first if first.exit_code else payonce.run("b", items, pay, ledger=ledger)

    assert asyncio.run(inside()).counts.committed == 20
    assert sorted(done) == sorted(f"r{k}" for k in range(20))
    assert [item.reference for item in result.items("committed")][:1] == ["re_r0"]
    with pytest.raises(payonce.SealedError):
        payonce.run("b", items[:-1], pay, ledger=ledger)


def test_every_bad_item_is_named(ledger: str) -> None:
    """All problems together; nothing is sealed."""
    bad = [
        {"id": "a", "amount": 1.5, "currency": "USD"},
        {"id": "b", "amount": "1.005", "currency": "USD"},
        {"amount": "1"},
    ]
    with pytest.raises(payonce.InputError) as caught:
        payonce.run("b", bad, lambda call: None, ledger=ledger)
    assert [p.line for p in caught.value.problems] == [1, 2, 3]
    assert "item 1: " in str(caught.value) and "item 3: " in str(caught.value)
    with pytest.raises(payonce.InputError) as many:
        payonce.run("b", bad * 4, lambda call: None, ledger=ledger)
    assert "item 3: " in str(many.value) and "item 4: " not in str(many.value)


def test_a_misspelt_setting_is_named_with_the_nearest(ledger: str) -> None:
    """Nothing is sealed for a setting that ``run`` does not have."""
    with pytest.raises(payonce.UsageError) as caught:
        payonce.run("b", [], lambda call: None, ledger=ledger, budjet=payonce.Money("1.00", "USD"))
    assert caught.value.code == "unknown_setting"
    assert "'budjet'" in caught.value.message and "'budget'" in caught.value.hint
