"""What stops a batch stops it before the next call leaves, and what goes wrong inside an operation hangs nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from payonce.core.model import Actor, BatchSpec, Limits, NewItem
from payonce.core.money import Money
from payonce.core.outcome import Executed
from payonce.core.states import ItemState
from payonce.engine.run import RunOutcome, run_batch
from payonce.engine.spool import Spool
from payonce.engine.stop import StopRequest
from payonce.ledger.inline import InlineLedger
from payonce.ledger.memory import MemoryLedger
from payonce.providers.python import PythonProvider
from payonce.providers.python_operation import Call, Operation, operation


def run(operation: Operation, folder: Path, *, concurrency: int, items: int = 30) -> tuple[RunOutcome, MemoryLedger]:
    """A batch through an operation, bounded in time."""
    store = MemoryLedger()
    news = [NewItem(f"r{k}", Money("1.00", "USD")) for k in range(items)]
    store.seal(BatchSpec("b", "refund", "python"), news, seal="x", actor=Actor())

    async def main() -> RunOutcome:
        provider = PythonProvider(operation, operation="refund", batch="b")
        await provider.open()
        try:
            async with asyncio.timeout(30):
                return await run_batch(
                    InlineLedger(store),
                    provider,
                    batch=store.batches("b")[0],
                    limits=Limits(concurrency=concurrency),
                    actor=Actor(),
                    spool=Spool([folder], name="ledger"),
                    ledger_id="ledger",
                    stop=StopRequest(),
                )
        finally:
            await provider.close()

    return asyncio.run(main()), store


@pytest.mark.parametrize("concurrency", [1, 4])
def test_no_call_leaves_after_a_wrong_amount(tmp_path: Path, concurrency: int) -> None:
    """Intents written ahead are given back: only calls that were in flight with the wrong one end after it."""
    begun: list[str] = []
    wrong_seen: list[int] = []

    @operation(key=True, retention="24h")
    async def pay(call: Call) -> Executed:
        begun.append(call.item.id)
        await asyncio.sleep(0.01)
        if call.item.id == "r9":
            wrong_seen.append(len(begun))
            return Executed("re_r9", Money("1.01", "USD"))
        return Executed(f"re_{call.item.id}", call.money)

    outcome, _ = run(pay, tmp_path, concurrency=concurrency)
    assert (outcome.exit_code, outcome.code) == (4, "amount_mismatch")
    assert len(begun) == wrong_seen[0]


@pytest.mark.parametrize("key", [True, False])
def test_an_operation_that_raises_cancelled_error(tmp_path: Path, key: bool) -> None:
    """It may have been executed: resolved by its key, or unknown; the run ends."""
    raised: set[str] = set()

    @operation(key=key, retention="24h" if key else None)
    async def pay(call: Call) -> Executed:
        if call.item.id == "r3" and "r3" not in raised:
            raised.add("r3")
            raise asyncio.CancelledError
        return Executed(f"re_{call.item.id}", call.money)

    outcome, store = run(pay, tmp_path, concurrency=2, items=6)
    assert outcome.exit_code == (0 if key else 1)
    assert store.status("b").count(ItemState.UNKNOWN) == (0 if key else 1)


def test_one_reference_for_two_items_is_a_finding(tmp_path: Path) -> None:
    """Both are committed, since the provider says so; the second opens a finding."""

    @operation(key=True, retention="24h")
    async def pay(call: Call) -> Executed:
        return Executed("re_same", call.money)

    outcome, store = run(pay, tmp_path, concurrency=1, items=3)
    assert outcome.exit_code == 0
    assert [f.kind for f in store.findings("b")] == ["duplicate", "duplicate"]
