"""How bodies of events are stored in SQLite: short, without loss, and nothing but canonical JSON."""

from __future__ import annotations

import sqlite3

import pytest

from payonce.core.errors import LedgerError
from payonce.ledger.connect import connect
from payonce.ledger.migrate import migrate
from payonce.ledger.rows import Entry
from payonce.ledger.sqlite_bodies import CODES, restored, shortened, stored
from tests.unit.ledger.ledgers import BATCH, begin, commit, intent

_INTENT = (
    b'{"amount":"1.00","at":"2026-11-30T17:26:45.090557Z","attempt":1,"batch":"b","currency":"USD","generation":0,'
    b'"item":"A-1","key":"k","request":"d","seq":5,"step":0,"type":"intent","worker":1}'
)


def test_codes_are_control_characters_and_pieces_hold_none() -> None:
    """So a code is never part of a value nor of another piece, and no stored body is torn into lines."""
    assert len(set(CODES.values())) == len(CODES)
    for code, piece in CODES.items():
        assert len(code) == 1 and code < b" " and code not in b"\0\a\b\t\n\v\f\r\x0e\x0f\x1b"
        assert min(piece) >= 0x20 and piece.isascii() and b"'" not in piece


def test_values_are_stored_as_they_are() -> None:
    """What an event says can be read and searched in the stored text; the words around it are codes."""
    (stored,) = shortened([_INTENT])
    assert len(stored) < len(_INTENT) * 0.4
    for value in ("1.00", "2026-11-30T17:26:45.090557", "USD", "A-1"):
        assert value in stored


def test_a_body_that_was_stored_whole_reads_as_it_is() -> None:
    """Events of an earlier version are not written again."""
    assert restored([_INTENT] * 100) == [_INTENT] * 100


@pytest.mark.parametrize("bad", [b'{"a":"\x01"}', b'{"a":\n"b"}', b'{"item":"\x1f\x1f"}'])
def test_what_could_not_be_read_again_is_not_written(bad: bytes) -> None:
    """Bytes that are no canonical JSON are refused before anything of them is stored."""
    with pytest.raises(LedgerError) as refused:
        shortened([_INTENT, bad, _INTENT])
    assert refused.value.code == "ledger_corrupt"


def test_an_event_of_no_item_is_stored_as_it_is() -> None:
    """It is rare, and shortening would take longer than all the rest of it; with a control character it is refused too."""
    body = b'{"at":"2026-11-30T17:26:45.090557Z","batch":"b","seq":5,"type":"amended"}'
    assert stored([Entry(5, 1, None, body, 0, None, ())]) == [body.decode()]
    assert restored([body]) == [body]
    with pytest.raises(LedgerError):
        stored([Entry(5, 1, None, body.replace(b"amended", b"\x01"), 0, None, ())])


def test_a_line_break_put_into_one_body_changes_no_other() -> None:
    """Bodies are restored together, and each is still its own."""
    stored = [text.encode() for text in shortened([_INTENT] * 3)]
    stored[1] += b"\n" + stored[1]
    assert restored(stored) == [_INTENT, _INTENT + b"\n" + _INTENT, _INTENT]


def test_the_view_lists_the_codes_of_the_program() -> None:
    """Each code once, with its piece."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    migrate(database)
    for code in CODES:
        database.execute("INSERT INTO events (seq, place, body) VALUES (?, 4294967298, ?)", (code[0], code.decode()))
    shown = dict(database.execute("SELECT seq, event FROM trail"))
    assert shown == {code[0]: piece.decode() for code, piece in CODES.items()}
    assert database.execute("SELECT DISTINCT batch, item FROM trail").fetchall() == [(1, 2)]
    database.close()


def test_a_ledger_stores_short_bodies_and_hands_out_whole_ones(url: str) -> None:
    """What is read through the ledger is canonical JSON, whatever the file holds."""
    ledger = connect(url, create=True)
    worker = begin(ledger, 1)
    ledger.write(worker, [intent(1)])
    ledger.write(worker, [commit(1)])
    bodies = [event.body for event in ledger.events(BATCH)]
    ledger.close()
    database = sqlite3.connect(url.removeprefix("sqlite:"))
    stored = [body for (body,) in database.execute("SELECT body FROM events WHERE place IS NOT NULL ORDER BY seq")]
    database.close()
    assert all(body.startswith(b"{") and body.endswith(b"}") for body in bodies)
    assert restored([text.encode() for text in stored]) == bodies
    assert sum(map(len, stored[-2:])) < sum(map(len, bodies[-2:])) * 0.7
