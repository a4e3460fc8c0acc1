"""Bodies of events as SQLite stores them: whatever they say, exactly the same bytes come back."""

from __future__ import annotations

import sqlite3
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from payonce.core.events import canonical, plain
from payonce.ledger.migrate import migrate
from payonce.ledger.sqlite_bodies import CODES, restored, shortened
from tests.properties.test_core_events import BODIES

PIECES = st.sampled_from([piece.decode() for piece in CODES.values()])
# Texts that hold the very pieces that are replaced, whole, cut and side by side, also behind a quote that escapes them.
TEXTS = st.lists(PIECES | PIECES.map(lambda piece: piece[1:-1]) | st.text(max_size=5), max_size=8).map("".join)
# Fields by their real names, so that the pieces come about by themselves, with any values.
FIELDS = ("amount", "at", "attempt", "batch", "billed", "currency", "data", "generation", "item", "key", "reference")
VALUES = TEXTS | st.sampled_from([0, 1, 200, {"end": "Z", "start": "", "status": 200}, {"end": "", "request_id": "x"}])
EVENTS = st.dictionaries(st.sampled_from((*FIELDS, "request", "seq", "step", "type", "worker")), VALUES | TEXTS)


@given(bodies=st.lists(BODIES | EVENTS, max_size=5))
def test_every_body_comes_back_as_it_was(bodies: list[dict[str, Any]]) -> None:
    """However many are stored together, each is restored to its canonical bytes."""
    made = [canonical(plain(body)) for body in bodies]
    assert restored([stored.encode() for stored in shortened(made)]) == made


@given(texts=st.lists(TEXTS.filter(lambda text: all(c >= " " for c in text)).map(str.encode), max_size=5))
def test_every_text_without_control_characters_comes_back(texts: list[bytes]) -> None:
    """It need not even be JSON."""
    assert restored([stored.encode() for stored in shortened(texts)]) == texts


@given(body=BODIES | EVENTS)
def test_canonical_json_has_no_control_character(body: dict[str, Any]) -> None:
    """Whatever the values hold: they are written as escapes, so that a code is never mistaken for a value."""
    assert all(byte >= 0x20 for byte in canonical(plain(body)))


@given(bodies=st.lists(EVENTS, max_size=5))
def test_the_view_shows_what_the_program_reads(bodies: list[dict[str, Any]]) -> None:
    """Programs that know nothing of ours see the canonical text."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    migrate(database)
    made = [canonical(plain(body)) for body in bodies]
    for seq, stored in enumerate(shortened(made), 1):
        database.execute("INSERT INTO events (seq, body) VALUES (?, ?)", (seq, stored))
    shown = database.execute("SELECT event FROM trail ORDER BY seq").fetchall()
    database.close()
    assert [event.encode() for (event,) in shown] == made
