"""Rows beside the events, changed by somebody with the file: each is found, and none ends the check in an error."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.trail.trailkit import Books

CHANGES = {
    "UPDATE items SET billed_currency = 'QQQ' WHERE place & 4294967295 = 1": "reference re-1 and billed amount",
    "UPDATE items SET currency = 'QQQ' WHERE place & 4294967295 = 1": "are not those that were sealed",
    "UPDATE items SET minor = minor + 1 WHERE place & 4294967295 = 1": "are not those that were sealed",
    "UPDATE items SET target = 'other' WHERE place & 4294967295 = 1": "are not those that were sealed",
    "UPDATE items SET fields = 'none' WHERE place & 4294967295 = 1": "are not those that were sealed",
    "UPDATE items SET state = 9 WHERE place & 4294967295 = 1": "it is in no state (9)",
    "UPDATE items SET settlement = 9 WHERE place & 4294967295 = 1": "its settlement is 9",
    "UPDATE items SET step = 300 WHERE place & 4294967295 = 1": "attempts, generation and step",
    "UPDATE items SET attempts = -1 WHERE place & 4294967295 = 1": "attempts, generation and step",
    "UPDATE items SET generation = 5 WHERE place & 4294967295 = 1": "attempts, generation and step",
    "UPDATE items SET id = 'it-x' WHERE place & 4294967295 = 1": "are about another item",
    "UPDATE items SET code = NULL WHERE place & 4294967295 = 3": "its code None",
    "UPDATE items SET place = place + 1000 WHERE place & 4294967295 = 60": "is none of the 60 items",
    "INSERT INTO items (place, id, state, updated_us) VALUES ((1 << 32) + 61, 'ghost', 2, 1)": "item ghost is none of",
    "DELETE FROM item_ids WHERE n = 7": "the ids by which items are found",
    "UPDATE item_ids SET n = 8 WHERE n = 7": "the ids by which items are found",
    "UPDATE item_ids SET id = 'it-x' WHERE n = 7": "the ids by which items are found",
    "INSERT INTO item_ids (batch, id, n) VALUES (1, 'ghost', 7)": "the ids by which items are found",
    "UPDATE outputs SET output = x'00' WHERE place & 4294967295 = 1": "the output of item number 1",
    "DELETE FROM outputs WHERE place & 4294967295 = 1": "is gone, and no event erased it",
    "INSERT INTO outputs (place, output) VALUES ((1 << 32) + 6, x'01')": "the output of item number 6",
    "UPDATE outputs SET kept = replace(kept, 'Zo', 'Jo') WHERE place & 4294967295 = 1": "kept of the answer of item number 1",
    "UPDATE outputs SET kept = 'nonsense' WHERE place & 4294967295 = 2": "what was kept of the answer of item number 2",
    "UPDATE outputs SET kept = NULL WHERE place & 4294967295 = 2": "answer of item number 2 of batch refunds is gone",
    "UPDATE outputs SET output = NULL WHERE place & 4294967295 = 1": "the output of item number 1 of batch refunds is gone",
    "INSERT INTO outputs (place, kept) VALUES ((1 << 32) + 12, '{}')": "what was kept of the answer of item number 12",
    "INSERT INTO outputs (place, kept) VALUES ((1 << 32) + 999, '{}')": "what was kept of the answer of item number 999",
    "UPDATE tallies SET minor = minor + 1 WHERE state = 2": "the tallies",
    "INSERT INTO tallies (batch, state, currency, items, minor) VALUES (1, 0, 'EUR', 5, 5)": "the tallies",
    "UPDATE batches SET state = 'sealed'": "by its events it is finished",
    "UPDATE batches SET state = 'nonsense'": "none that the ledger wrote",
    "UPDATE batches SET limits = replace(limits, '100000000000000', '900000000000000')": "the limits",
    "UPDATE batches SET spec = replace(spec, 'simulator', 'stripe')": "it was sealed with simulator",
    "UPDATE batches SET targets = 1": "holds targets or does not",
    "UPDATE batches SET seal = replace(seal, 'a', 'b')": "is not that of its last sealing event",
    "UPDATE batches SET sent = sent - 1": "calls, its events",
    "UPDATE batches SET id = 'renamed'": "is filed under batch renamed",
    "DELETE FROM batches": "is filed under no batch",
    "DELETE FROM findings": "lost 1 finding doubt",
    "UPDATE findings SET state = 'closed'": "lost 1 finding doubt",
    "UPDATE findings SET kind = 'duplicate'": "finding duplicate",
    "UPDATE meta SET value = 'x' WHERE name = 'id'": "this ledger says it is x",
    "UPDATE head SET size = size + 100": "were removed from the end",
    "UPDATE head SET peaks = x'00'": "the head of the trail",
    "DELETE FROM head": "none that the ledger wrote",
    "UPDATE events SET body = '{}' WHERE seq = 10": "event 10",
    "UPDATE events SET body = replace(body, '1.00' || char(2), '9.00' || char(2)) WHERE seq = 6": "event 6 was changed",
    "UPDATE events SET body = replace(body, char(6), char(30)) WHERE seq = 10": "event 10 was changed",
    "UPDATE events SET body = replace(body, char(19), char(20)) WHERE seq = 10": "event 10 was changed",
    "UPDATE events SET body = body || char(10) || body WHERE seq = 10": "event 10",
    "UPDATE events SET body = char(7) || body WHERE seq = 10": "event 10",
    "UPDATE events SET body = CAST(CAST(body AS BLOB) || x'ff' AS TEXT) WHERE seq = 10": "event 10",
    "UPDATE events SET body = (SELECT body FROM events WHERE seq = 11) WHERE seq = 10": "event 10",
    "UPDATE events SET place = 7777777777777 WHERE seq = 20": "event 20",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished batch of sixty items with some of everything."""
    books = Books(tmp_path_factory.mktemp("sound"))
    books.run(60)
    books.close()
    return books.path


@pytest.fixture
def copied(sound: Path, tmp_path: Path) -> Books:
    """A copy of it in the same hands."""
    books = Books.__new__(Books)
    books.path, books.marks, books.now_us = tmp_path / "payonce.db", tmp_path / "marks", 2_000_000_000_000_000
    shutil.copyfile(sound, books.path)
    return books


@pytest.mark.parametrize(("change", "said"), CHANGES.items(), ids=[change[:60] for change in CHANGES])
def test_a_changed_row_is_found_and_named(copied: Books, change: str, said: str) -> None:
    """Whatever was changed: there is a fault, and it says what it is about."""
    assert copied.verify().ok
    copied.tamper(change)
    assert any(said in fault.message for fault in copied.verify().faults), copied.verify().faults


def test_an_event_is_what_it_says_however_it_is_stored(copied: Books) -> None:
    """With its recurring parts written out it is still the same event: nothing of it was changed, nothing is found."""
    copied.tamper("UPDATE events SET body = (SELECT event FROM trail WHERE trail.seq = events.seq) WHERE seq % 2 = 0")
    assert copied.verify().ok
