"""Several processes on one batch: how the end of one of them is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

from payonce.core.model import Actor, BatchSpec, Limits, NewItem
from payonce.core.money import Money
from payonce.core.outcome import Executed
from payonce.core.states import BatchState
from payonce.engine.run import RunOutcome, run_batch
from payonce.engine.spool import Spool
from payonce.engine.stop import StopRequest
from payonce.ledger.inline import InlineLedger
from payonce.ledger.memory import MemoryLedger
from payonce.providers.python import PythonProvider
from payonce.providers.python_operation import Call, operation


@operation(key=True)
async def pay(call: Call) -> Executed:
    """Executes after a while."""
    await asyncio.sleep(0.02)
    return Executed(f"re_{call.item.id}", call.money)


async def work(store: MemoryLedger, pid: int, stop: StopRequest, folder: Path) -> RunOutcome:
    """One process's run."""
    provider = PythonProvider(pay, operation="refund", batch="b")
    await provider.open()
    try:
        return await run_batch(
            InlineLedger(store),
            provider,
            batch=store.batches("b")[0],
            limits=Limits(concurrency=2),
            actor=Actor(pid=pid),
            spool=Spool([folder], name=f"ledger-{pid}"),
            ledger_id="ledger",
            stop=stop,
        )
    finally:
        await provider.close()


def test_a_signal_to_one_of_two_leaves_the_batch_running(tmp_path: Path) -> None:
    """The first one does not know yet that another has joined; the batch it leaves is running, neither halted nor
    interrupted, and the other finishes it."""
    store = MemoryLedger(is_alive=lambda actor: True)
    items = [NewItem(f"r{k}", Money("1.00", "USD")) for k in range(40)]
    store.seal(BatchSpec("b", "refund", "python"), items, seal="x", actor=Actor())

    async def main() -> tuple[RunOutcome, RunOutcome]:
        stop = StopRequest()
        first = asyncio.create_task(work(store, 1, stop, tmp_path))
        await asyncio.sleep(0.03)
        second = asyncio.create_task(work(store, 2, StopRequest(), tmp_path))
        await asyncio.sleep(0.03)
        stop.signal()
        return await first, await second

    first, second = asyncio.run(main())
    assert (first.exit_code, first.state) == (75, BatchState.RUNNING)
    assert (second.exit_code, second.state) == (0, BatchState.FINISHED)
