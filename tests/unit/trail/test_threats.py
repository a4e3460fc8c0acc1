"""Each thing that somebody with the ledger's file can do to it, done, and what the check of the trail says of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from payonce.trail.checkpoint import Checkpoint, Signed, origin_of, sign
from payonce.trail.faults import Fault
from payonce.trail.keys import new_key
from payonce.trail.verify import root_at
from tests.unit.trail.trailkit import ACTOR, Books, new_item, rehash, reworded

ITEMS = 330
KEY = new_key("test")


@pytest.fixture
def books(tmp_path: Path) -> Books:
    """A ledger of some hundred items and about 850 events: three complete blocks and a rest."""
    books = Books(tmp_path)
    books.run(ITEMS)
    return books


def checkpoint(books: Books, size: int | None = None) -> Signed:
    """The trail as it is now, or was at a size, signed."""
    reads = books.reads()
    try:
        wanted = reads.head().size if size is None else size
        return sign(Checkpoint(origin_of(reads.ledger_id()), wanted, root_at(reads, wanted)), [KEY])
    finally:
        reads.close()


def named(faults: list[Fault], code: str) -> list[tuple[int | None, int | None]]:
    """First and last event of the faults of one code."""
    return [(f.seq, f.last if f.last is not None else f.seq) for f in faults if f.code == code]


def seq_of(books: Books, n: int, kind: str) -> int:
    """The number of an item's first event of a kind."""
    for event in books.ledger.events("refunds", item=f"it-{n}"):
        if orjson.loads(event.body)["type"] == kind:
            return event.seq
    raise AssertionError(f"item {n} has no {kind}")


def test_a_sound_ledger_has_no_faults(books: Books) -> None:
    """Everything is explained: states, money, limits, findings, seal and outputs."""
    found = books.verify(checkpoints=[checkpoint(books, size) for size in (1, 255, 256, 257, 512, 700)])
    assert (found.faults, found.limits, found.items, found.checkpoints) == ([], [], ITEMS, 6)


@pytest.mark.parametrize("place", [3, 256, 257, 600, 800])
def test_a_changed_event_is_named(books: Books, place: int) -> None:
    """Text changed in a block or in the rest: the very event."""
    books.tamper(reworded('"at":"2', '"at":"1', where=f"seq = {place}"))
    assert named(books.verify().faults, "changed") == [(place, place)]


def test_a_changed_event_with_its_mark_leaves_its_block(books: Books) -> None:
    """Whoever changes the mark too is found, but only as one of 256."""
    books.close()
    books.tamper(reworded('"at":"2', '"at":"1', where="seq = 300"), "UPDATE events SET mark = 5 WHERE seq = 300")
    assert named(books.verify().faults, "changed") == [(300, 300)]
    _fit_mark(books.path, 300)
    assert named(books.verify().faults, "changed_block") == [(257, 512)]


def _fit_mark(path: Path, seq: int) -> None:
    import sqlite3

    from payonce.core.events import leaf_hash
    from payonce.ledger.merkle import mark_of

    db = sqlite3.connect(path, isolation_level=None)
    (body,) = db.execute("SELECT event FROM trail WHERE seq = ?", (seq,)).fetchone()
    db.execute("UPDATE events SET mark = ? WHERE seq = ?", (mark_of(leaf_hash(body.encode())), seq))
    db.close()


@pytest.mark.parametrize(("first", "last"), [(1, 1), (5, 5), (256, 258), (400, 400), (790, 792)])
def test_removed_events_are_named(books: Books, first: int, last: int) -> None:
    """Rows gone from anywhere."""
    books.tamper(f"DELETE FROM events WHERE seq BETWEEN {first} AND {last}")
    assert named(books.verify().faults, "removed") == [(first, last)]


def test_a_removed_tail_is_named(books: Books) -> None:
    """The last events are gone: the head knows."""
    size = books.ledger.info().events
    books.tamper(f"DELETE FROM events WHERE seq > {size - 3}")
    assert named(books.verify().faults, "removed") == [(size - 2, size)]


@pytest.mark.parametrize("place", [5, 256, 700])
def test_removed_events_are_named_though_the_others_moved_up(books: Books, place: int) -> None:
    """The numbers were closed up behind the hole."""
    books.tamper(
        f"DELETE FROM events WHERE seq = {place}",
        f"UPDATE events SET seq = -seq WHERE seq > {place}",
        "UPDATE events SET seq = -seq - 1 WHERE seq < 0",
    )
    assert named(books.verify().faults, "removed") == [(place, place)]


@pytest.mark.parametrize("place", [5, 256, 700])
def test_an_inserted_event_is_named(books: Books, place: int) -> None:
    """A row put in between, the others moved down."""
    books.tamper(
        f"UPDATE events SET seq = -seq WHERE seq >= {place}",
        "UPDATE events SET seq = -seq + 1 WHERE seq < 0",
        f"INSERT INTO events (seq, place, body) SELECT {place}, place, body FROM events WHERE seq = {place} + 1",
    )
    assert named(books.verify().faults, "inserted") == [(place, place)]


def test_an_appended_event_is_named(books: Books) -> None:
    """A row behind the end that the ledger never wrote."""
    size = books.ledger.info().events
    books.tamper(f"INSERT INTO events (seq, place, body) SELECT {size} + 1, place, body FROM events WHERE seq = {size}")
    assert named(books.verify().faults, "inserted") == [(size + 1, size + 1)]


@pytest.mark.parametrize(("one", "other"), [(10, 11), (20, 500), (300, 301), (800, 801)])
def test_reordered_events_are_named(books: Books, one: int, other: int) -> None:
    """Two rows changed places."""
    books.tamper(
        f"UPDATE events SET seq = -1 WHERE seq = {one}",
        f"UPDATE events SET seq = {one} WHERE seq = {other}",
        f"UPDATE events SET seq = {other} WHERE seq = -1",
    )
    assert {seq for seq, _ in named(books.verify().faults, "reordered")} == {one, other}


def test_swapped_events_of_two_items_are_named(books: Books) -> None:
    """Two items' commits are filed under each other; no hash covers that, the events themselves do."""
    one, other = seq_of(books, 1, "commit"), seq_of(books, 2, "commit")
    books.tamper(
        f"UPDATE events SET place = place + 1 WHERE seq = {one}",
        f"UPDATE events SET place = place - 1 WHERE seq = {other}",
    )
    assert {seq for seq, _ in named(books.verify().faults, "misplaced")} == {one, other}


def test_swapped_bodies_of_two_items_are_named(books: Books) -> None:
    """Two items' commits exchanged, each body in the other's row."""
    one, other = seq_of(books, 1, "commit"), seq_of(books, 2, "commit")
    books.tamper(
        f"INSERT INTO payloads VALUES (-1, 'x', 0, x'', (SELECT CAST(body AS BLOB) FROM events WHERE seq = {one}), NULL)",
        f"UPDATE events SET body = (SELECT body FROM events WHERE seq = {other}) WHERE seq = {one}",
        f"UPDATE events SET body = CAST((SELECT body FROM payloads WHERE seq = -1) AS TEXT) WHERE seq = {other}",
        "DELETE FROM payloads WHERE seq = -1",
    )
    assert {seq for seq, _ in named(books.verify().faults, "reordered")} == {one, other}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE items SET state = 2 WHERE id = 'it-3'",
        "UPDATE items SET billed_minor = 1 WHERE id = 'it-1'",
        "UPDATE items SET reference = 're-9' WHERE id = 'it-1'",
        "UPDATE items SET minor = minor + 1 WHERE id = 'it-1'",
        "UPDATE items SET target = 'someone-else' WHERE id = 'it-1'",
        "UPDATE items SET fields = '{}' WHERE id = 'it-1'",
        "UPDATE items SET generation = 1 WHERE id = 'it-3'",
        "UPDATE items SET settlement = 2 WHERE id = 'it-1'",
        "UPDATE items SET code = 'other' WHERE id = 'it-3'",
        "DELETE FROM items WHERE id = 'it-330'",
        "UPDATE tallies SET minor = minor + 1 WHERE state = 2",
        "UPDATE batches SET state = 'cancelled'",
        "UPDATE batches SET sent = sent - 1",
        """UPDATE batches SET limits = '{"attempts":5,"budget":{"USD":9999999999}}'""",
        "UPDATE batches SET seal = replace(seal, 'a', 'b')",
        """UPDATE batches SET spec = replace(spec, '"simulator"', '"stripe"')""",
        "DELETE FROM findings",
        "UPDATE findings SET kind = 'other' WHERE id = 1",
    ],
)
def test_a_state_that_its_events_do_not_explain_is_found(books: Books, change: str) -> None:
    """The events were left alone and what they lead to was changed: every hash agrees, the replay does not."""
    books.tamper(change)
    found = books.verify()
    assert {fault.code for fault in found.faults} <= {"unexplained", "misplaced"} and found.faults


def test_a_changed_output_is_found(books: Books) -> None:
    """What a call returned is not what it was committed with."""
    books.tamper("UPDATE outputs SET output = x'7b7d' WHERE place = (SELECT place FROM items WHERE id = 'it-1')")
    assert [fault.code for fault in books.verify().faults] == ["payload_changed"]


def test_a_changed_kept_hash_is_found(books: Books) -> None:
    """The events are right, a hash inside the trail was changed."""
    books.tamper("UPDATE nodes SET hash = x'00' WHERE level = 8 AND idx = 1")
    assert named(books.verify().faults, "hashes_changed") == [(257, 512)]


def test_a_changed_head_is_found(books: Books) -> None:
    """The events are right, the head was changed."""
    books.tamper("UPDATE head SET peaks = zeroblob(length(peaks))")
    assert [fault.code for fault in books.verify().faults] == ["head_changed"]


def test_a_truncated_trail_is_found_by_a_kept_checkpoint(books: Books) -> None:
    """The tail is gone and head and hashes were made to fit: the ledger alone cannot tell, the checkpoint can."""
    kept = checkpoint(books)
    books.tamper("DELETE FROM events WHERE seq > 600")
    rehash(books.path)
    assert "truncated" not in {fault.code for fault in books.verify().faults}
    assert named(books.verify(checkpoints=[kept]).faults, "truncated") == [(601, kept.checkpoint.size)]
    assert named(books.verify(since=kept).faults, "truncated") == [(601, kept.checkpoint.size)]


def test_an_older_copy_is_found_by_a_kept_checkpoint(tmp_path: Path) -> None:
    """The whole database was replaced by a copy from yesterday, which is sound in itself."""
    books = Books(tmp_path)
    books.run(40)
    books.close()
    shutil.copy(books.path, tmp_path / "yesterday.db")
    books.ledger = books.open()
    books.run(40, batch="today")
    kept = checkpoint(books)
    books.close()
    shutil.copy(tmp_path / "yesterday.db", books.path)
    assert books.verify().ok
    found = books.verify(checkpoints=[kept])
    assert [fault.code for fault in found.faults] == ["truncated"] and "older copy" in found.faults[0].message


def test_a_rewritten_trail_is_found_by_a_kept_checkpoint_alone(books: Books) -> None:
    """An event and its item were changed and everything was hashed again: only a published checkpoint can tell, and
    two of them tell between which events."""
    early, late = checkpoint(books, 250), checkpoint(books)
    commit = seq_of(books, 1, "commit")
    books.tamper(
        reworded('"reference":"re-1"', '"reference":"re-x"', where=f"seq = {commit}"),
        "UPDATE items SET reference = 're-x' WHERE id = 'it-1'",
    )
    rehash(books.path)
    assert books.verify().ok
    found = books.verify(checkpoints=[early, late])
    assert named(found.faults, "rewritten") == [(251, late.checkpoint.size)]
    assert books.verify(since=late).faults


def test_an_incremental_check_goes_on_from_a_checkpoint(books: Books) -> None:
    """What came after it is hashed and compared, and a change there is named."""
    kept = checkpoint(books, 300)
    assert books.verify(since=kept).ok
    books.tamper(reworded('"at":"2', '"at":"1', where="seq = 700"))
    assert named(books.verify(since=kept).faults, "changed") == [(700, 700)]


def test_another_ledgers_checkpoint_is_refused(books: Books, tmp_path: Path) -> None:
    """It proves nothing about this one."""
    (tmp_path / "other").mkdir()
    other = Books(tmp_path / "other")
    other.run(11)
    assert [f.code for f in books.verify(checkpoints=[checkpoint(other)]).faults] == ["other_ledger"]


def test_a_batch_that_grew_is_explained(tmp_path: Path) -> None:
    """Items that were added one by one, or from a longer input, are each under the event that added them."""
    books = grown(tmp_path)
    found = books.verify()
    assert found.ok and not found.limits
    books.tamper("UPDATE items SET state = 2 WHERE id = 'it-2'")
    assert {fault.code for fault in books.verify().faults} == {"unexplained"}


@pytest.mark.parametrize(("item", "first", "last"), [(1, 1, 1), (2, 2, 2), (4, 3, 4), (6, 5, 6)])
def test_items_of_a_batch_that_grew_are_under_their_own_event(tmp_path: Path, item: int, first: int, last: int) -> None:
    """A changed amount is named by the event that sealed it, whether one by one, or under a seal over a whole input."""
    books = grown(tmp_path)
    books.tamper(f"UPDATE items SET minor = minor + 1 WHERE id = 'it-{item}'")
    texts = [fault.message for fault in books.verify().faults]
    assert any(f"items number {first} to {last} of batch grown are not those" in text for text in texts), texts


def grown(folder: Path) -> Books:
    """Two items added singly, as ``once`` does, two from a file with a seal over all, two singly again."""
    from payonce.core.model import BatchSpec

    books = Books(folder)
    spec = BatchSpec("grown", "payout", "python")
    for numbers, seal in (([1], None), ([2], None), ([3, 4], "ab" * 32), ([5, 6], None)):
        books.ledger.amend(spec, [new_item(n) for n in numbers], seal=seal, actor=ACTOR)
    return books


def test_the_seal_is_computed_again_in_both_forms_and_for_any_text(tmp_path: Path) -> None:
    """As files seal (numbers) and as Python does (texts), with ids that need escapes and items without an amount."""
    from payonce.core.model import NewItem
    from payonce.core.money import Money
    from payonce.core.seal import item_line
    from payonce.ledger.rows import dump
    from payonce.ledger.sealing import lines_of

    def row(item: NewItem) -> tuple[str, str, int | None, str | None, str]:
        money = item.money
        return item.id, item.target or item.id, money and money.minor, money and money.currency, dump(item.fields)

    def lines_as(items: list[NewItem], quote: str) -> bytes:
        ids, targets, minors, coins, fields = zip(*map(row, items), strict=True)
        return lines_of(ids, targets, minors, coins, fields, quote=quote)

    usd = Money("1.50", "USD")
    plain = [NewItem("a", usd, target="t"), NewItem("Zoë", usd, fields={"n": 1, "b": "x\ny"})]
    odd = [*plain, NewItem('q"\\', usd), NewItem("c\x07", usd), NewItem("none", None)]
    for items in (plain, odd):
        lines = lines_as(items, '"')
        assert lines == b"".join(map(item_line, items))
        assert lines_as(items, "") == lines.replace(b':"150",', b":150,")
