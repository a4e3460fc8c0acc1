"""A check done in shares sees what the whole check sees, wherever the shares are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from payonce.core.commands import Change
from payonce.core.states import ItemEvent
from payonce.ledger.connect import connect_trail
from payonce.trail import quick as quick_module
from payonce.trail.quick import quick
from payonce.trail.share import split, work
from tests.unit.trail.trailkit import Books, commit, intent, reworded

ITEMS = 700
CUTS = ((1.0,), (0.42, 0.58), (0.9, 0.1), (0.3, 0.3, 0.4))


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    """Two batches with some of everything, over more than two chunks of events."""
    made = Books(tmp_path)
    for batch in ("refunds", "more"):
        made.run(ITEMS, batch=batch)
    yield made
    made.close()


def agrees(
    books: Books, cuts: tuple[float, ...], monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int] = (300, 1024, 2500)
) -> bool:
    """Whether all is well by shares cut so, the second and later in processes of their own."""
    monkeypatch.setattr(quick_module, "_TWO", cuts)
    monkeypatch.setattr(quick_module, "_LARGE", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    reads = connect_trail(books.url)
    with reads.snapshot():
        found = quick(reads, reads.batches(), url=books.url, sizes=sizes)
    reads.close()
    assert found is None or sorted(found.scanned.roots)[: len(sizes)] == list(sizes)
    return found is not None


@pytest.mark.parametrize("cuts", CUTS)
def test_a_sound_ledger_agrees(books: Books, cuts: tuple[float, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick way is taken, however the shares are cut."""
    assert agrees(books, cuts, monkeypatch)


@pytest.mark.parametrize("cuts", CUTS)
def test_shares_are_everything_once(books: Books, cuts: tuple[float, ...]) -> None:
    """Each event is hashed by one share and each item compared by one."""
    reads = connect_trail(books.url)
    rows, size = reads.batches(), reads.head().size
    done = [work(reads, rows, share, lambda *_: None) for share in split(rows, size=size, parts=cuts)]
    reads.close()
    assert all(part.good for part in done)
    assert sum(256 * len(part.blocks) + len(part.rest) for part in done) == size
    assert sum(sum(part.items.values()) for part in done) == 2 * ITEMS


def test_calls_that_never_left_are_no_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch takes them off its count, and the replay does the same, quickly and thoroughly."""
    books = Books(tmp_path)
    books.seal(2)
    worker = books.start()
    books.write(worker, [intent(1), intent(2)])
    refused = {"sent": False, "lookup": {"sent": True}}
    books.write(worker, [Change(1, ItemEvent.NOT_EXECUTED, code="refused_connection", data=refused), commit(2)])
    assert books.ledger.status("refunds").calls_sent == 1
    assert agrees(books, (1.0,), monkeypatch, sizes=[])
    books.tamper("UPDATE tallies SET items = items + 1 WHERE state = 2")
    assert [fault.message for fault in books.verify().faults] == [
        "the tallies of batch refunds are not those of its items"
    ]


def test_an_empty_code_is_a_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no item has a code, one that is made empty is seen as well: the ledger writes none such."""
    books = Books(tmp_path)
    books.run(2)
    assert agrees(books, (1.0,), monkeypatch, sizes=[])
    books.tamper("UPDATE items SET code = '' WHERE place & 4294967295 = 1")
    assert not agrees(books, (1.0,), monkeypatch, sizes=[])


@pytest.mark.parametrize(
    "change",
    [
        reworded("intent", "Intent", where="seq = 20"),
        reworded("seq", "Seq", where="seq = (SELECT max(seq) FROM events)"),
        "UPDATE events SET body = body || char(10) || body WHERE seq = 30",
        "UPDATE events SET place = place + 1 WHERE seq = 40",
        "UPDATE events SET place = NULL WHERE seq = 40",
        "UPDATE events SET place = -5 WHERE seq = 2000",
        "DELETE FROM events WHERE seq = 1500",
        "UPDATE items SET reference = 'other' WHERE place % 1000 = 5 AND state = 2",
        "UPDATE items SET billed_minor = billed_minor + 1 WHERE place = (SELECT max(place) FROM items WHERE state = 2)",
        "UPDATE items SET state = 0 WHERE place = (SELECT max(place) FROM items)",
        "DELETE FROM items WHERE place = (SELECT max(place) FROM items)",
        "DELETE FROM item_ids WHERE batch = 2 AND n = 650",
        "UPDATE outputs SET kept = replace(kept, '1.5', '2.5') WHERE place = (SELECT max(place) FROM outputs)",
        "UPDATE tallies SET items = items + 1 WHERE batch = 2 AND state = 2",
        "UPDATE batches SET sent = sent + 1 WHERE number = 2",
        "UPDATE nodes SET hash = zeroblob(32) WHERE level = 8 AND idx = 3",
    ],
)
def test_no_share_overlooks_a_change(books: Books, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was changed, and in whichever share, the quick way does not agree."""
    books.tamper(change)
    assert not agrees(books, (0.42, 0.58), monkeypatch)
