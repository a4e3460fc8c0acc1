"""A ledger that fails at any write: no further call, answers in the spool, and the next start loses and doubles nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from payonce.core.commands import Command, Landed
from payonce.core.errors import LedgerError
from payonce.core.model import Actor, BatchSpec, Limits, NewItem, Status, Worker
from payonce.core.money import Money
from payonce.core.outcome import Executed, Execution
from payonce.core.states import BatchState, ItemState
from payonce.engine.run import RunOutcome, run_batch
from payonce.engine.spool import Spool
from payonce.engine.stop import StopRequest
from payonce.ledger.inline import InlineLedger
from payonce.ledger.memory import MemoryLedger
from payonce.providers.python import PythonProvider
from payonce.providers.python_operation import Call, operation

ITEMS = 12
COUNT_FROM = 4  # the first writes are those of joining


class FaultyLedger(InlineLedger):
    """Fails for good at the k-th write, and is read-only from then on."""

    def __init__(self, store: MemoryLedger, *, good: int) -> None:
        super().__init__(store)
        self.good = good

    async def _write(self, worker: Worker, commands: Sequence[Command]) -> tuple[Landed, ...]:
        await asyncio.sleep(0)
        self.good -= 1
        if self.good < 0:
            self.failed = LedgerError("read-only", code="ledger_read_only", hint="make it writable")
            raise self.failed
        return await super()._write(worker, tuple(commands))


class UnreadableEnd(InlineLedger):
    """Takes every write, and cannot be read any more once the batch is finished."""

    async def status(self, batch: str) -> Status:
        found = await super().status(batch)
        if found.batch.state is BatchState.FINISHED:
            raise LedgerError("no connection", code="ledger_unreachable", hint="see that the server runs")
        return found


class Far:
    """A far side that keeps the promises the operation declares; it remembers what it truly did."""

    def __init__(self, *, key: bool, lookup: bool) -> None:
        self.done: Counter[str] = Counter()
        self.by_key: dict[str, Executed] = {}
        self.calls = 0

        def look(call: Call) -> list[Execution]:
            return [Execution(f"re_{call.item.id}", call.money, own_reference=call.item.id)] * self.done[call.item.id]

        @operation(key=key, retention="24h" if key else None, lookup=look if lookup else None, max_execution="0s")
        async def pay(call: Call) -> Executed:
            self.calls += 1
            await asyncio.sleep(0.001)
            if call.key is not None and call.key in self.by_key:
                return self.by_key[call.key]
            self.done[call.item.id] += 1
            answer = Executed(f"re_{call.item.id}", call.money)
            if call.key is not None:
                self.by_key[call.key] = answer
            return answer

        self.operation = pay


def run(store: MemoryLedger, ledger: InlineLedger, far: Far, spool: Path) -> RunOutcome:
    """One run of the batch, as one process would."""

    async def main() -> RunOutcome:
        provider = PythonProvider(far.operation, operation="refund", batch="b")
        await provider.open()
        try:
            return await run_batch(
                ledger,
                provider,
                batch=store.batches("b")[0],
                limits=Limits(concurrency=3),
                actor=Actor(),
                spool=Spool([spool], name="ledger"),
                ledger_id="ledger",
                stop=StopRequest(),
            )
        finally:
            await provider.close()

    return asyncio.run(main())


@pytest.mark.parametrize("good", range(2 * ITEMS))
@pytest.mark.parametrize(("key", "lookup"), [(True, False), (False, True), (False, False)])
def test_a_ledger_fault_at_any_write(tmp_path: Path, good: int, key: bool, lookup: bool) -> None:
    """After the failing write no call begins; the next run decides every item, from the spool where that has it."""
    alive = True
    store = MemoryLedger(is_alive=lambda actor: alive)
    store.seal(
        BatchSpec("b", "refund", "python"),
        [NewItem(f"r{k}", Money("1.00", "USD")) for k in range(ITEMS)],
        seal="x",
        actor=Actor(),
    )
    far = Far(key=key, lookup=lookup)
    halted = run(store, FaultyLedger(store, good=good), far, tmp_path)
    assert halted.exit_code == 3
    assert halted.lost == ()
    assert (halted.status, halted.state) == (
        store.status("b"),
        BatchState.HALTED,
    )  # what is durable, not an old reading
    assert sum(far.done.values()) <= good + 3
    alive = False
    ended = run(store, InlineLedger(store), far, tmp_path)
    status = store.status("b")
    assert max(far.done.values()) == 1
    assert status.batch.state is BatchState.FINISHED
    assert status.count(ItemState.COMMITTED) + status.count(ItemState.UNKNOWN) == ITEMS
    # An answer that was seen is never lost: what stays unknown had its intent written and its call not made or not
    # answered, and only where the far side offers neither keys nor look-up.
    assert ended.exit_code == (1 if status.count(ItemState.UNKNOWN) else 0)
    if key or lookup:
        assert status.count(ItemState.COMMITTED) == ITEMS
    assert sum(far.done.values()) >= status.count(ItemState.COMMITTED)
    assert not list(tmp_path.glob("*.spool"))


def test_an_end_that_cannot_be_read_is_a_ledger_fault(tmp_path: Path) -> None:
    """Everything was written and the last look at the counts fails: exit code 3 with the fault, not 1, which would say that
    items are refused or unknown. The same command says how it ended, without a call."""
    store = MemoryLedger(is_alive=lambda actor: True)
    items = [NewItem(f"r{k}", Money("1.00", "USD")) for k in range(ITEMS)]
    store.seal(BatchSpec("b", "refund", "python"), items, seal="x", actor=Actor())
    far = Far(key=True, lookup=False)
    ended = run(store, UnreadableEnd(store), far, tmp_path)
    assert (ended.exit_code, ended.code, ended.status) == (3, "ledger_unreachable", None)
    assert run(store, InlineLedger(store), far, tmp_path).exit_code == 0
    assert (far.calls, store.status("b").count(ItemState.COMMITTED)) == (ITEMS, ITEMS)
