"""Ledgers that were written before events had marks: they verify, are brought up to date, and name blocks."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.unit.trail.trailkit import Books, reworded


@pytest.fixture
def books(tmp_path: Path) -> Books:
    """A ledger taken back to schema 1, as the first version left it."""
    books = Books(tmp_path)
    books.run(120)
    books.tamper(
        "UPDATE events SET body = (SELECT event FROM trail WHERE trail.seq = events.seq)",
        "DROP VIEW trail",
        "DROP TABLE payloads",
        "DROP TABLE item_ids",
        "CREATE UNIQUE INDEX items_by_id ON items (id, batch)",
        "ALTER TABLE events DROP COLUMN mark",
        "PRAGMA user_version = 1",
    )
    return books


def test_it_verifies_as_it_is(books: Books) -> None:
    """Without being written to."""
    assert books.verify().ok
    db = sqlite3.connect(books.path)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()


def test_opened_once_it_goes_on_with_marks(books: Books) -> None:
    """Old events have none, new ones do; all of it verifies."""
    books.ledger = books.open()
    books.run(20, batch="new")
    assert books.verify().ok
    size = books.ledger.info().events
    books.tamper(reworded('"at":"2', '"at":"1', where=f"seq IN (5, {size - 5})"))
    faults = [fault for fault in books.verify().faults if fault.seq]
    assert [(f.code, f.seq, f.last) for f in faults] == [("changed", size - 5, None), ("changed_block", 1, 256)]
