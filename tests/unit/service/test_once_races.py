"""Guarded calls that meet at one item: two processes at a new one, a cancelled task and the one that follows it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import payonce
from payonce.core.model import NewItem
from payonce.core.states import ItemState
from payonce.service.single import Once
from payonce.service.single_call import OnceCall
from payonce.service.single_desk import Desk, desk_of
from payonce.service.single_entry import Entry


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """A new ledger's address."""
    return f"sqlite:{tmp_path / 'payonce.db'}"


def guard(ledger: str, item: str = "inv-1", *, key: bool = True) -> Once:
    """A guarded call."""
    return payonce.once(ledger, batch="payouts", item=item, money=payonce.Money("10.00", "USD"), key=key)


def overtaken(monkeypatch: pytest.MonkeyPatch, desk: Desk, quicker: Callable[[], object]) -> None:
    """Lets somebody else be quicker, once, just before this process's own transaction begins."""
    begin = Entry._first
    runs: list[object] = []

    def first(self: Entry, here: Desk, new: NewItem) -> OnceCall:
        if here is desk and not runs:
            runs.append(None)
            quicker()
        return begin(self, here, new)

    monkeypatch.setattr(Entry, "_first", first)


def test_two_processes_at_a_new_item(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower one is told that it is busy; when the other is done, it is told that it is done."""
    other, late = Desk(ledger), guard(ledger)
    first = Entry(guard(ledger)._guarded)
    overtaken(monkeypatch, desk_of(ledger), lambda: other.call(first.open))
    with pytest.raises(payonce.ItemBusy), late:
        pytest.fail("the body was entered twice")

    def done() -> None:
        entry = Entry(guard(ledger, "inv-2")._guarded)
        call = other.call(entry.open)
        assert isinstance(call, OnceCall)
        call.executed("tr_2")
        entry.entered()
        other.call(lambda desk: entry.record(desk, fault=None))

    overtaken(monkeypatch, desk_of(ledger), done)
    with guard(ledger, "inv-2") as call:
        assert (call.done, call.reference) == (True, "tr_2")


def test_a_cancelled_task_is_followed_at_once(ledger: str) -> None:
    """Nobody waited for its end: the next one waits the moment that its record takes."""

    async def main() -> None:
        inside = asyncio.Event()

        async def pay() -> None:
            async with guard(ledger):
                inside.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(pay())
        await inside.wait()
        task.cancel()
        async with guard(ledger) as call:
            assert not call.done
            call.executed("tr_1")
        assert task.cancelled()

    asyncio.run(main())


def test_cancelled_on_the_way_in(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grant is given back: the body was never entered, so even without a key nothing is in doubt."""

    async def main() -> None:
        desk, hold = desk_of(ledger), threading.Event()
        with guard(ledger, "warm") as call:
            call.executed("tr_0")
        began, first = threading.Event(), Entry._first

        def slow(entry: Entry, desk: Desk, new: NewItem) -> OnceCall:
            began.set()
            hold.wait(10)
            return first(entry, desk, new)

        monkeypatch.setattr(Entry, "_first", slow)
        task = asyncio.create_task(guard(ledger, key=False).__aenter__())
        await asyncio.to_thread(began.wait, 10)
        task.cancel()
        hold.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        found = await desk.call_async(lambda d: d.item("payouts", "inv-1"))
        assert found is not None and found.state in (ItemState.PENDING, ItemState.PLANNED)
        async with guard(ledger, key=False) as call:
            assert not call.done
            call.executed("tr_1")

    asyncio.run(main())
