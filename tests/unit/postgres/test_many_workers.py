"""Several workers on one ledger in PostgreSQL: nothing twice, nobody waits for one that stands still, one clock."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psycopg
import pytest

import payonce
from payonce.core.commands import BatchCommand, Control, Landed
from payonce.core.errors import LedgerConflict, LedgerError
from payonce.core.model import SECOND_US, Actor
from payonce.core.states import BatchState, ItemState
from payonce.ledger import group
from payonce.ledger.actors import this_actor
from payonce.ledger.connect import connect
from payonce.ledger.postgres import PostgresLedger
from payonce.ledger.postgres_address import parse
from payonce.ledger.postgres_open import open_link
from tests.pgproxy import Cut, relayed
from tests.postgres import Server, empty_ledger
from tests.unit.ledger.ledgers import BATCH, OPS, begin, commit, intent

ITEMS, WORKERS = 240, 3


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks and spools in the test's own folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def url(postgres: Server) -> str:
    """An empty ledger."""
    return postgres.url(empty_ledger(postgres))


def test_each_item_is_intended_once(url: str) -> None:
    """Each worker has connections of its own, as processes on many hosts do; hand-outs overlap when sweeps start over."""
    first = connect(url, create=True)
    begin(first, ITEMS)
    landed: list[list[int]] = [[] for _ in range(WORKERS)]
    failures: list[BaseException] = []

    def work(mine: list[int]) -> None:
        ledger = connect(url, create=False)
        try:
            worker = ledger.join(BATCH, actor=this_actor(), lease_us=3600 * SECOND_US)
            empty = 0
            while empty < 2:
                items = ledger.planned(worker, limit=7)
                empty = 0 if items else empty + 1
                answers = ledger.write(worker, [intent(item.n) for item in items])
                got = [item.n for item, answer in zip(items, answers, strict=True) if answer is Landed.LANDED]
                mine += got
                assert set(ledger.write(worker, [commit(n) for n in got])) <= {Landed.LANDED}
        except BaseException as error:
            failures.append(error)
        finally:
            ledger.close()

    threads = [threading.Thread(target=work, args=(mine,)) for mine in landed]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(n for mine in landed for n in mine) == list(range(1, ITEMS + 1))
    assert first.status(BATCH).count(ItemState.COMMITTED) == ITEMS
    assert first.check() == ()
    first.close()


def test_what_another_process_wrote_is_seen_in_the_next_transaction(url: str) -> None:
    """What a store remembers between its transactions is dropped as soon as anyone else has written."""
    here = connect(url, create=True)
    mine = begin(here, 3)
    there = connect(url, create=False)
    theirs = there.join(BATCH, actor=this_actor(), lease_us=3600 * SECOND_US)
    assert [item.n for item in here.planned(mine, limit=3)] == [1, 2, 3]
    assert there.write(theirs, [intent(1)]) == (Landed.LANDED,)
    assert here.write(mine, [intent(1), intent(2)]) == (Landed.STALE, Landed.LANDED)
    assert there.write(theirs, [intent(2), commit(1)]) == (Landed.STALE, Landed.LANDED)
    there.control(BATCH, Control(BatchCommand.PAUSE, reason="look"), actor=OPS)
    assert here.write(mine, [intent(3), commit(2)]) == (Landed.NOT_RUNNING, Landed.LANDED)
    assert here.renew(mine, lease_us=SECOND_US).state is BatchState.PAUSED
    assert here.check() == ()
    there.close()
    here.close()


def test_leases_are_on_the_servers_clock(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose clock is hours wrong neither keeps its lease longer nor takes a living worker for dead."""
    ledger = connect(url, create=True)
    elsewhere = Actor(user="w", host="elsewhere", pid=7)
    first = begin(ledger, 3)
    monkeypatch.setattr(time, "time_ns", lambda: 4_000_000_000 * 1_000_000_000)
    far = ledger.join(BATCH, actor=elsewhere, lease_us=30 * SECOND_US)
    assert ledger.write(far, [intent(1)]) == (Landed.LANDED,)
    assert ledger.take_over(first, limit=10) == ()
    with psycopg.connect(url.partition("&schema")[0]) as database:
        now = database.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
    assert now is not None and abs(far.now_us / SECOND_US - float(now[0])) < 60
    assert ledger.status(BATCH).live_workers == 2
    ledger.close()


def test_a_worker_that_stands_still_in_a_transaction_holds_nobody_up(url: str) -> None:
    """The server ends its session, the others go on, and what it began is not there."""
    ledger = PostgresLedger(url, create=True)
    worker = begin(ledger, 3)
    frozen = PostgresLedger(url)
    assert frozen._writer is not None
    frozen._writer.ask("SELECT set_config('idle_in_transaction_session_timeout', '300ms', false)")
    with pytest.raises(LedgerError) as error:  # noqa: PT012 - the other one writes in the middle
        with frozen.group():
            frozen.write(worker, [intent(1)])
            assert ledger.write(worker, [intent(2)]) == (Landed.LANDED,)  # waits until the other one is cut off
    assert error.value.code == "ledger_unreachable"
    assert ledger.status(BATCH).count(ItemState.PENDING) == 1
    assert ledger.check() == ()
    frozen.close()
    ledger.close()


def test_a_lock_that_is_held_too_long_is_told(url: str) -> None:
    """By a person's open transaction, for example; nothing was written, and afterwards the same ledger goes on."""
    ledger = PostgresLedger(url, create=True)
    worker = begin(ledger, 3)
    assert ledger._writer is not None
    ledger._writer.ask("SELECT set_config('lock_timeout', '200ms', false)")
    with psycopg.connect(url.partition("&schema")[0]) as database:
        database.execute(f"LOCK TABLE {url.rpartition('=')[2]}.head")
        with pytest.raises(LedgerError) as error:
            ledger.write(worker, [intent(1)])
    assert error.value.code == "ledger_locked"
    assert ledger.write(worker, [intent(1)]) == (Landed.LANDED,)
    ledger.close()


def test_rows_that_a_person_holds_are_left_for_the_next_sweep(url: str) -> None:
    """Handing out waits for nobody's transaction."""
    ledger = connect(url, create=True)
    worker = begin(ledger, 3)
    schema = url.rpartition("=")[2]
    with psycopg.connect(url.partition("&schema")[0]) as database:
        database.execute(f"SELECT 1 FROM {schema}.items WHERE id = 'item-2' FOR UPDATE")
        assert [item.n for item in ledger.planned(worker, limit=9)] == [1, 3]
    assert ledger.planned(worker, limit=9) == ()
    assert [item.n for item in ledger.planned(worker, limit=9)] == [1, 2, 3]
    ledger.close()


def test_a_deadlock_with_somebody_else_is_repeated_and_then_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole group that the server took back is done again as it was, three times in all."""
    ledger = PostgresLedger(url, create=True)
    worker = begin(ledger, 3)
    jobs = [group._Job(None, "group", worker=worker, commands=(intent(n),)) for n in (1, 2)]  # type: ignore[arg-type]
    left = [2]
    commit_once = ledger._postgres.commit

    def victim() -> None:
        if left[0]:
            left[0] -= 1
            ledger._writer.ask("DO $$ BEGIN RAISE 'x' USING ERRCODE = 'deadlock_detected'; END $$")  # type: ignore[union-attr]
        commit_once()

    monkeypatch.setattr(ledger._postgres, "commit", victim)
    group._persist(ledger, jobs)
    assert [job.result for job in jobs] == [(Landed.LANDED,)] * 2 and left == [0]
    left[0] = 3
    with pytest.raises(LedgerConflict):
        group._persist(ledger, [group._Job(None, "group", worker=worker, commands=(intent(3),))])  # type: ignore[arg-type]
    assert ledger.status(BATCH).count(ItemState.PENDING) == 2
    ledger.close()


def test_a_single_call_outlives_a_lost_connection(postgres: Server) -> None:
    """`once` opens the ledger again in the same process; what was lost in between is resolved by its key."""
    with relayed(postgres) as proxy:
        url = proxy.url(empty_ledger(postgres))
        keys = []
        with pytest.raises(LedgerError):  # noqa: PT012 - what the block does is the point
            with payonce.once(url, batch="b", item="i", money=payonce.Money("1.00", "USD"), key=True) as call:
                keys.append(call.key)
                proxy.loses("COMMIT", Cut.BEFORE)
                call.executed("tr_1")
        proxy.mend()
        with payonce.once(url, batch="b", item="i", money=payonce.Money("1.00", "USD"), key=True) as call:
            keys.append(call.key)
            call.executed("tr_1")
        assert keys[0] == keys[1] and keys[0]
        with payonce.once(url, batch="b", item="i", money=payonce.Money("1.00", "USD"), key=True) as call:
            assert (call.done, call.reference) == (True, "tr_1")


def test_of_several_errors_the_first_is_told(url: str) -> None:
    """Statements behind a failed one only say that they were not executed; the connection goes on."""
    connect(url, create=True).close()
    link = open_link(parse(url), writing=True)
    deadlock = "DO $$ BEGIN RAISE 'x' USING ERRCODE = 'deadlock_detected'; END $$"
    for k in range(40):
        link.ask("BEGIN")
        for _ in range(k % 4):
            link.later("SELECT pg_sleep(0.001)")
        with pytest.raises(LedgerConflict):
            link.ask_all((deadlock, ()), *([("SELECT 1", ())] * (k % 7)))
        link.roll_back()
        assert link.ask("SELECT 1") == [(1,)]
    link.close()
