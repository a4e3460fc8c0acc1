"""Events are never changed or removed through SQLite, and ``check`` finds what someone changed around it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from payonce.ledger.connect import connect
from tests.unit.ledger.ledgers import BATCH, begin, commit, intent


@pytest.fixture
def path(url: str, tmp_path: Path) -> Path:
    """A closed ledger: one committed item, one pending, two planned."""
    ledger = connect(url, create=True)
    worker = begin(ledger, 4)
    ledger.write(worker, [intent(1), intent(2), commit(1)])
    assert ledger.check() == ()
    ledger.close()
    return tmp_path / "payonce.db"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = '{}' WHERE seq = 2",
        "UPDATE events SET seq = 99 WHERE seq = 2",
        "DELETE FROM events WHERE seq = 2",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events (seq, body) VALUES (2, '{}')",
        "REPLACE INTO events (seq, body) VALUES (2, '{}')",
        "INSERT INTO events (seq, body) VALUES (2, '{}') ON CONFLICT DO UPDATE SET body = '{}'",
    ],
)
def test_the_database_refuses_to_change_events(path: Path, statement: str) -> None:
    """From any connection, without any setting of ours."""
    database = sqlite3.connect(path)
    with pytest.raises(sqlite3.DatabaseError, match="append-only"):
        database.execute(statement)
    database.close()


# What someone with the file and no scruples could do, and what the check says then.
_TAMPERED = {
    "an event": (
        "DROP TRIGGER events_are_never_changed; UPDATE events SET body = replace(body, '10.00', '99.00')",
        "do not hash",
    ),
    "a removed event": ("DROP TRIGGER events_are_never_removed; DELETE FROM events WHERE seq = 3", "jumps"),
    "the head": ("UPDATE head SET size = 5", "ends at event"),
    "a kept hash": (f"INSERT INTO nodes VALUES (8, 0, x'{'00' * 32}')", "kept hashes"),
    "an item's state": ("UPDATE items SET state = 0 WHERE id = 'item-1'", "tallies"),
    "an item's bill": ("UPDATE items SET billed_minor = 1 WHERE id = 'item-1'", "tallies"),
    "a pending item": ("UPDATE items SET state = 2 WHERE id = 'item-2'", "open intent"),
    "a removed intent": ("DELETE FROM intents", "open intent"),
    "a tally": ("UPDATE tallies SET items = items + 1 WHERE state = 0", "tallies"),
    "an id's number": ("UPDATE item_ids SET n = n % 4 + 1", "found by their ids"),
    "a removed id": ("DELETE FROM item_ids WHERE id = 'item-3'", "found by their ids"),
    "a removed item": ("DELETE FROM items WHERE id = 'item-4'", "has 3"),
}


@pytest.mark.parametrize("what", _TAMPERED)
def test_the_check_finds_what_was_changed(path: Path, what: str) -> None:
    """Everything that is kept twice is compared."""
    script, said = _TAMPERED[what]
    database = sqlite3.connect(path)
    database.executescript(script)
    database.close()
    ledger = connect(f"sqlite:{path}", create=False, read_only=True)
    assert any(said in fault for fault in ledger.check())
    ledger.close()


def test_an_id_that_leads_to_another_item_leads_nowhere(path: Path) -> None:
    """Whatever the table of ids says: an item is found under its own id or not at all."""
    database = sqlite3.connect(path)
    database.execute("UPDATE item_ids SET n = n % 4 + 1")
    database.commit()
    database.close()
    ledger = connect(f"sqlite:{path}", create=False, read_only=True)
    assert ledger.item(BATCH, "item-1") is None
    ledger.close()


def test_two_items_on_one_target_cannot_both_be_open(path: Path) -> None:
    """The database itself refuses it, whatever the program above does."""
    database = sqlite3.connect(path)
    row = "INSERT INTO intents (place, target, fence, digest, first_sent_us, sent_us, send_by_us, deadline_us, method, \
path, headers, body) VALUES (?, 'ch_1', 1, x'', 0, 0, 0, 0, 'POST', '/', '[]', x'')"
    database.execute(row, ((1 << 32) + 3,))
    with pytest.raises(sqlite3.IntegrityError):
        database.execute(row, ((1 << 32) + 4,))
    database.close()


def test_the_trail_can_be_read_with_sqlite_alone(path: Path) -> None:
    """The view ``trail`` shows JSON text: an auditor needs nothing of ours to look at the events."""
    database = sqlite3.connect(path)
    found = database.execute(
        "SELECT event ->> 'type', event ->> 'item' FROM trail WHERE event ->> 'batch' = ? ORDER BY seq", (BATCH,)
    ).fetchall()
    assert found[-3:] == [("intent", "item-1"), ("intent", "item-2"), ("commit", "item-1")]
    database.close()
