"""Several processes on one ledger at the same time: nothing is intended twice, and everything adds up."""

from __future__ import annotations

import threading
from pathlib import Path

from payonce.core.commands import Change, Landed
from payonce.core.model import SECOND_US
from payonce.core.states import ItemEvent, ItemState
from payonce.ledger.actors import this_actor
from payonce.ledger.connect import connect
from tests.unit.ledger.ledgers import BATCH, begin, commit, intent

ITEMS, WORKERS = 300, 3


def test_each_item_is_intended_once(url: str) -> None:
    """Each worker has connections of its own, as processes do; hand-outs overlap when sweeps start over."""
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


def test_what_another_process_wrote_is_seen_in_the_next_transaction(url: str, tmp_path: Path) -> None:
    """What a store remembers between its transactions is dropped as soon as anyone else has written."""
    here = connect(url, create=True)
    mine = begin(here, 3)
    there = connect(url, create=False)
    theirs = there.join(BATCH, actor=this_actor(), lease_us=3600 * SECOND_US)
    assert [item.n for item in here.planned(mine, limit=3)] == [1, 2, 3]
    assert there.write(theirs, [intent(1)]) == (Landed.LANDED,)
    assert here.write(mine, [intent(1), intent(2)]) == (Landed.STALE, Landed.LANDED)
    assert there.write(theirs, [intent(2), commit(1)]) == (Landed.STALE, Landed.LANDED)
    assert here.write(mine, [Change(2, ItemEvent.REFUSE), commit(1)]) == (Landed.LANDED, Landed.STALE)
    assert here.check() == ()
    there.close()
    here.close()
