"""Guarded calls of one process that share a ledger: threads, tasks, forked children, a connection that is lost."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import payonce
from payonce.ledger.connect import connect
from payonce.ledger.sqlite import SqliteLedger
from payonce.service.single import Once
from payonce.service.single_desk import Desk, desk_of
from payonce.service.single_entry import Entry

TEN = payonce.Money("10.00", "USD")


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """A new ledger's address."""
    return f"sqlite:{tmp_path / 'payonce.db'}"


def guard(ledger: str, item: str = "inv-1", *, key: bool = True) -> Once:
    """A guarded call."""
    return payonce.once(ledger, batch="payouts", item=item, money=TEN, key=key)


def events(ledger: str, item: str) -> list[str]:
    """The types of an item's events."""
    store = connect(ledger, create=False, read_only=True)
    try:
        assert store.check() == ()
        return [json.loads(event.body)["type"] for event in store.events("payouts", item=item)]
    finally:
        store.close()


def test_threads_and_tasks_together(ledger: str) -> None:
    """Four threads and thirty tasks at the same sixty items: each is paid once, whoever comes second finds it done."""
    paid: Counter[str] = Counter()

    def threaded(name: str) -> None:
        try:
            with guard(ledger, name, key=False) as call:
                if not call.done:
                    paid[name] += 1
                    call.executed(f"tr_{name}")
        except payonce.ItemBusy:
            pass

    async def task(name: str) -> None:
        try:
            async with guard(ledger, name, key=False) as call:
                if not call.done:
                    paid[name] += 1
                    await asyncio.sleep(0)
                    call.executed(f"tr_{name}")
        except payonce.ItemBusy:
            pass

    async def main() -> None:
        names = [f"i{k}" for k in range(60)]
        with ThreadPoolExecutor(4) as pool:
            threads = [asyncio.wrap_future(pool.submit(threaded, name)) for name in names]
            await asyncio.gather(*threads, *(task(name) for name in names[::2]))

    asyncio.run(main())
    assert paid == Counter({f"i{k}": 1 for k in range(60)})
    assert events(ledger, "i0") == ["intent", "commit"]


def test_two_threads_at_one_guard(ledger: str) -> None:
    """One object entered by two threads at once: the second is told that it is busy, the first ends as if alone."""
    shared, inside, go_on = guard(ledger, key=False), threading.Event(), threading.Event()

    def first() -> None:
        with shared as call:
            inside.set()
            assert go_on.wait(10)
            call.executed("tr_1")

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(10)
    with pytest.raises(payonce.ItemBusy), shared:
        pytest.fail("both were in the body")
    go_on.set()
    thread.join()
    assert events(ledger, "inv-1") == ["intent", "commit"]


def test_a_loop_never_waits_for_the_ledger(ledger: str) -> None:
    """While a thread has it, a task that wants it waits and the others go on."""

    async def main() -> int:
        has_it, let_go = threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: desk_of(ledger).call(lambda desk: (has_it.set(), let_go.wait(10))))
        thread.start()
        await asyncio.to_thread(has_it.wait, 10)
        entering = asyncio.create_task(guard(ledger).__aenter__())
        for _ in range(100):
            await asyncio.sleep(0)
        assert not entering.done()
        let_go.set()
        (await entering).executed("tr_1")
        thread.join()
        return 1

    assert asyncio.run(main()) == 1


def test_a_guard_in_the_middle_of_another(ledger: str) -> None:
    """As a signal's handler or a destructor could make one: refused at once, where waiting would be for ever."""
    with pytest.raises(payonce.ItemBusy):
        desk_of(ledger).call(lambda desk: guard(ledger).__enter__())
    with guard(ledger) as call:
        call.executed("tr_1")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_comes_out_of_the_body(ledger: str) -> None:
    """Forked inside the body and ended by an exception, it writes nothing: the call is its parent's."""
    child = -1
    try:
        with guard(ledger, key=False) as call:
            child = os.fork()
            if child == 0:
                raise SystemExit(3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
            call.executed("tr_1")
    except SystemExit as end:
        os._exit(int(str(end)) if child == 0 else 9)
    assert events(ledger, "inv-1") == ["intent", "commit"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_while_a_thread_has_the_ledger(ledger: str) -> None:
    """The child does not wait for a thread that does not live in it."""
    with guard(ledger, "warm") as call:
        call.executed("tr_warm")
    has_it, let_go = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: desk_of(ledger).call(lambda desk: (has_it.set(), let_go.wait(30))))
    thread.start()
    assert has_it.wait(10)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with guard(ledger) as call:
                call.executed("tr_1")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    let_go.set()
    thread.join()
    with guard(ledger) as call:
        assert (call.done, call.reference) == (True, "tr_1")


def test_a_connection_lost_in_the_body(ledger: str) -> None:
    """The result cannot be written, and the caller is told; the next entry opens the ledger again, under the same key."""
    with pytest.raises(payonce.LedgerError), guard(ledger) as call:  # noqa: PT012
        first = call.key
        store = desk_of(ledger).store
        assert isinstance(store, SqliteLedger)
        store._close_connections()
        call.executed("tr_1")
    with guard(ledger) as call:
        assert not call.done and call.key == first
        call.executed("tr_1")
    assert events(ledger, "inv-1") == ["intent", "resend", "commit"]


def test_a_result_that_comes_too_late(ledger: str) -> None:
    """Another process took the item over meanwhile: the body's result is not written, and that is never silent."""
    other = Desk(ledger)
    with pytest.raises(payonce.ItemUnknown, match="tr_1"), guard(ledger, key=False) as call:  # noqa: PT012
        worker = desk_of(ledger)._workers["payouts"]
        other.call(lambda desk: desk.store.leave(worker))
        with pytest.raises(payonce.ItemUnknown):
            other.call(Entry(guard(ledger, key=False)._guarded).open)
        call.executed("tr_1")
    with pytest.raises(payonce.ItemBusy), guard(ledger, "inv-2"):
        pytest.fail("entered by a worker that was declared dead")
    with guard(ledger, "inv-2") as call:  # by a new one
        call.executed("tr_2")
    assert events(ledger, "inv-1") == ["intent", "takeover", "undecided"]
    assert events(ledger, "inv-2") == ["intent", "commit"]
