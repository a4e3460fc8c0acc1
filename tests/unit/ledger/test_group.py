"""The group writer: one transaction for all that waits, one failure for all that wait."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from payonce.core.commands import BatchCommand, Control, Landed
from payonce.core.errors import LedgerError, UsageError
from payonce.core.states import ItemEvent
from payonce.ledger.connect import connect
from payonce.ledger.group import AsyncLedger
from payonce.ledger.inline import InlineLedger
from payonce.ledger.log import Log
from payonce.ledger.memory import MemoryLedger
from tests.unit.ledger.ledgers import BATCH, OPS, begin, commit, intent


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Another program holds the write lock: whatever is written meanwhile waits."""
    connection = sqlite3.connect(url.removeprefix("sqlite:"), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


class Breaking(MemoryLedger):
    """Breaks at the end of a transaction once it is told to, as a full disk would."""

    broken = False

    @contextmanager
    def _transaction(self) -> Iterator[Log]:
        with super()._transaction() as log:
            nested = self._broken_here
            self._broken_here = True
            try:
                yield log
            finally:
                self._broken_here = nested
            if self.broken and not nested:
                raise LedgerError("the disk is full", code="disk_full", hint="make room")

    _broken_here = False


def test_everything_that_waits_is_one_transaction(url: str) -> None:
    """256 writes that wait behind a busy disk become durable with one commit, and so with one fsync."""
    store = connect(url, create=True)
    worker = begin(store, 256)
    statements: list[str] = []
    store._sqlite._db.set_trace_callback(statements.append)  # type: ignore[attr-defined]

    async def run() -> list[Landed]:
        ledger = AsyncLedger(store)
        with locked(url):
            first = asyncio.create_task(ledger.write(worker, intent(1)))
            await asyncio.sleep(0.05)  # the writer has taken it and waits for the lock
            rest = [asyncio.create_task(ledger.write(worker, intent(n))) for n in range(2, 257)]
            await asyncio.sleep(0)
            assert ledger.groups == 0
        landed = await asyncio.gather(first, *rest)
        assert ledger.groups == 2
        await ledger.close()
        return landed

    assert set(asyncio.run(run())) == {Landed.LANDED}
    assert statements.count("COMMIT") == 2


def test_commands_are_applied_in_the_order_they_were_given(url: str) -> None:
    """Also between a single write, a write of many and another verb in one group."""
    store = connect(url, create=True)
    worker = begin(store, 3)

    async def run() -> tuple[object, ...]:
        ledger = AsyncLedger(store)
        with locked(url):
            tasks = [
                asyncio.create_task(ledger.write(worker, commit(1))),
                asyncio.create_task(ledger.write_many(worker, [intent(1), commit(1)])),
                asyncio.create_task(ledger.control(BATCH, Control(BatchCommand.PAUSE), actor=OPS)),
                asyncio.create_task(ledger.write(worker, intent(2))),
                asyncio.create_task(ledger.planned(worker, limit=5)),
            ]
            await asyncio.sleep(0.05)
        answers = await asyncio.gather(*tasks)
        await ledger.close()
        return tuple(answers)

    first, many, batch, after, planned = asyncio.run(run())
    assert (first, many, after) == (Landed.STALE, (Landed.LANDED, Landed.LANDED), Landed.NOT_RUNNING)
    assert batch.state.value == "paused"  # type: ignore[attr-defined]
    assert [item.n for item in planned] == [2, 3]  # type: ignore[attr-defined]


def test_a_refused_verb_concerns_its_caller_alone(url: str) -> None:
    """A UsageError in a group leaves the other verbs of the group standing."""
    store = connect(url, create=True)
    worker = begin(store, 2)

    async def run() -> list[object]:
        ledger = AsyncLedger(store)
        with locked(url):
            tasks = [
                asyncio.create_task(ledger.write(worker, intent(1))),
                asyncio.create_task(ledger.control(BATCH, Control(BatchCommand.RESUME), actor=OPS)),
                asyncio.create_task(ledger.write(worker, intent(2))),
            ]
            await asyncio.sleep(0.05)
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert ledger.failed is None
        await ledger.close()
        return list(answers)

    first, refused, second = asyncio.run(run())
    assert (first, second) == (Landed.LANDED, Landed.LANDED)
    assert isinstance(refused, UsageError)


def test_a_group_that_cannot_be_written_fails_all_its_waiters_and_every_later_write() -> None:
    """Nothing of it is there, each waiter gets the error, and the writer stays failed with the same cause."""
    store = Breaking()
    worker = begin(store, 4)
    store.broken = True

    async def run() -> None:
        ledger = AsyncLedger(store)
        writes = [ledger.write(worker, intent(n)) for n in (1, 2, 3)]
        for error in await asyncio.gather(*writes, return_exceptions=True):
            assert isinstance(error, LedgerError) and error.code == "disk_full" and error.hint == "make room"
        store.broken = False
        with pytest.raises(LedgerError, match="the disk is full"):
            await ledger.write(worker, intent(4))
        with pytest.raises(LedgerError, match="the disk is full"):
            await ledger.renew(worker, lease_us=1)
        assert ledger.failed is not None and ledger.failed.code == "disk_full"
        assert (await ledger.status(BATCH)).count(store.item(BATCH, "item-1").state) == 4  # type: ignore[union-attr]
        await ledger.close()

    asyncio.run(run())
    assert store.check() == ()


def test_a_fault_of_our_own_halts_the_writer_too() -> None:
    """An assertion inside a transaction is no reason to go on: it fails like a disk, under a code of its own."""
    store = MemoryLedger()
    worker = begin(store, 2)

    async def run() -> None:
        ledger = AsyncLedger(store)
        await ledger.write(worker, intent(1))
        other_bytes = intent(1, size=11)
        resend = type(other_bytes)(
            1, ItemEvent.RESEND, 0, 0, other_bytes.key, other_bytes.request, send_by_us=0, deadline_us=0
        )
        with pytest.raises(LedgerError) as error:
            await ledger.write(worker, resend)
        assert error.value.code == "ledger_bug"
        with pytest.raises(LedgerError):
            await ledger.write(worker, intent(2))
        await ledger.close()

    asyncio.run(run())
    assert store.check() == ()


def test_a_cancelled_caller_does_not_hold_up_the_others(url: str) -> None:
    """Its command may be written all the same; whoever waits beside it is answered."""
    store = connect(url, create=True)
    worker = begin(store, 2)

    async def run() -> None:
        ledger = AsyncLedger(store)
        with locked(url):
            gone = asyncio.create_task(ledger.write(worker, intent(1)))
            stays = asyncio.create_task(ledger.write(worker, intent(2)))
            await asyncio.sleep(0.05)
            gone.cancel()
            await asyncio.sleep(0)
        assert await stays is Landed.LANDED
        assert len(await ledger.open_intents(BATCH, [1, 2])) == 2
        await ledger.close()

    asyncio.run(run())


def test_reading_does_not_wait_for_writing(url: str) -> None:
    """A status is answered while a write waits for the disk."""
    store = connect(url, create=True)
    worker = begin(store, 2)

    async def run() -> None:
        ledger = AsyncLedger(store)
        with locked(url):
            write = asyncio.create_task(ledger.write(worker, intent(1)))
            status = await asyncio.wait_for(ledger.status(BATCH), 5)
            assert not write.done()
            assert status.calls_sent == 0
        await write
        assert (await ledger.status(BATCH)).calls_sent == 1
        await ledger.close()

    asyncio.run(run())


def test_the_queue_is_bounded(url: str) -> None:
    """Whoever finds no room waits for it; nothing is lost."""
    store = connect(url, create=True)
    worker = begin(store, 20)

    async def run() -> None:
        ledger = AsyncLedger(store, room=4)
        with locked(url):
            tasks = [asyncio.create_task(ledger.write(worker, intent(n))) for n in range(1, 21)]
            await asyncio.sleep(0.05)
            assert ledger.waiting == 4
        assert set(await asyncio.gather(*tasks)) == {Landed.LANDED}
        await ledger.close()

    asyncio.run(run())


def test_closing_writes_what_waits(url: str) -> None:
    """What was asked before the close is durable after it."""
    store = connect(url, create=True)
    worker = begin(store, 5)

    async def run() -> None:
        ledger = AsyncLedger(store)
        tasks = [asyncio.create_task(ledger.write(worker, intent(n))) for n in range(1, 6)]
        await asyncio.sleep(0)
        await ledger.close()
        assert set(await asyncio.gather(*tasks)) == {Landed.LANDED}

    asyncio.run(run())
    with_again = connect(url, create=False)
    assert with_again.status(BATCH).calls_sent == 5
    with_again.close()


def test_the_inline_ledger_fails_the_same_way() -> None:
    """Without a thread: refusals concern their caller, a fault is for good, reading goes on."""
    store = Breaking()
    worker = begin(store, 2)

    async def run() -> None:
        ledger = InlineLedger(store)
        assert await ledger.write(worker, intent(1)) is Landed.LANDED
        with pytest.raises(UsageError):
            await ledger.control(BATCH, Control(BatchCommand.RESUME), actor=OPS)
        store.broken = True
        with pytest.raises(LedgerError, match="the disk is full"):
            await ledger.write_many(worker, [intent(2)])
        store.broken = False
        with pytest.raises(LedgerError, match="the disk is full"):
            await ledger.write(worker, commit(1))
        assert (await ledger.status(BATCH)).calls_sent == 1
        await ledger.close()

    asyncio.run(run())
