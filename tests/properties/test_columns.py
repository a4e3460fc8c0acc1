"""Items of a SQLite ledger by columns are its items by rows, whatever stands in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payonce.core.errors import LedgerError
from payonce.ledger import sqlite_columns, trail_port
from payonce.ledger.sqlite_trail import SqliteTrail
from payonce.ledger.trail_port import TrailReads
from payonce.trail.kept import Kept
from tests.unit.trail.trailkit import Books

BASE = 1 << 32
ODD = (
    "",
    '"',
    "\\",
    '\\"',
    "it's",
    "a\nb",
    "\x00",
    "\x1f",
    "\x7f",
    "\u2028",
    "Zoë",
    "東京",
    "\U0001f600",
    "[null]",
    "null",
    "{}",
)
TEXTS = st.sampled_from(ODD) | st.text(st.characters(codec="utf-8"), max_size=8)
SMALL = st.integers(0, 3)
WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 20_000)
COINS = st.sampled_from(["USD", "EUR", "JPY", "KWD"])


@dataclass
class Table:
    """A ledger whose items are put there by hand, and its trail."""

    db: sqlite3.Connection
    reads: SqliteTrail


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """One for all examples: making a ledger takes longer than comparing."""
    path: Path = tmp_path_factory.mktemp("columns")
    books = Books(path)
    books.close()
    db, reads = sqlite3.connect(books.path, isolation_level=None), books.reads()
    db.execute("PRAGMA synchronous = OFF")
    yield Table(db, reads)
    reads.close()
    db.close()


@st.composite
def items(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Rows of items, mostly alike in what is mostly alike, with gaps between their numbers."""
    common = draw(
        st.tuples(SMALL, SMALL, SMALL, SMALL, SMALL, COINS | st.none(), COINS | st.none(), st.none(), st.none())
    )
    changed = st.tuples(
        SMALL, SMALL, SMALL, SMALL, SMALL, COINS | st.none(), COINS | st.none(), TEXTS, TEXTS | st.none()
    )
    rare = st.sampled_from([False] * 9 + [True])
    rows, n = [], 0
    for number in range(draw(st.integers(0, 14))):
        n += draw(st.sampled_from([1] * 9 + [2, 5, 4_000_000]))
        same = draw(changed) if draw(rare) else common
        own = draw(
            st.tuples(
                TEXTS, TEXTS | st.none(), WHOLE | st.none(), TEXTS | st.none(), TEXTS | st.none(), WHOLE | st.none()
            )
        )
        rows.append((BASE + n, f"{number} {own[0]}", *own[1:], *same))
    return rows


@given(rows=items(), first=st.integers(1, 9), last=st.integers(0, 20) | st.just(trail_port.PLACE_MASK))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_columns_are_the_rows(table: Table, rows: list[tuple[Any, ...]], first: int, last: int) -> None:
    """The same cells in the same order, and the same hashes, tallies and lines under the seal come of them."""
    _put(table.db, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_columns, "COLUMN_LENGTH", 4)
        quick = list(table.reads.columns(1, first=first, last=last))
        plain = list(TrailReads.columns(table.reads, 1, first=first, last=last))
    cells = [row for part in quick for row in zip(*part, strict=True)]
    assert cells == [row for part in plain for row in zip(*part, strict=True)]
    assert cells == list(table.reads.stored(1, first=first, last=last))
    assert [list(map(type, row)) for row in cells] == [
        list(map(type, row)) for part in plain for row in zip(*part, strict=True)
    ]
    assert _taken(quick) == _taken(plain)


def _put(db: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    db.execute("BEGIN")
    db.execute("DELETE FROM items")
    db.executemany(
        "INSERT INTO items (place, id, target, minor, fields, reference, billed_minor, state, settlement, generation, step,"
        " attempts, currency, billed_currency, code, message, updated_us) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,1)",
        rows,
    )
    db.execute("COMMIT")


def _taken(parts: list[trail_port.Columns]) -> tuple[object, ...]:
    """Everything a check makes of the items, or the error that it ends in; how they were cut is no part of it."""
    kept, lines = Kept(1, {}), bytearray()
    try:
        kept.take(iter(parts), lines.extend)
    except (ValueError, TypeError, OverflowError, LookupError) as error:
        return (type(error),)
    columns = {name: value for name, value in vars(kept).items() if name not in ("first", "whole")}
    return kept.whole, bytes(lines), columns


def test_a_part_that_differs_comes_whole(table: Table) -> None:
    """One item of another state among thousands makes its part wide, and no other: nothing is lost or moved."""
    same = (0, 0, 0, 0, 1, "USD", "USD", None, None)
    rows: list[tuple[Any, ...]] = [
        (BASE + n, f"it-{n}", None, n, None, f"re-{n}", n, 2 if n != 3_333 else 3, *same[1:]) for n in range(1, 7_001)
    ]
    _put(table.db, rows)
    parts = list(table.reads.columns(1, first=1, last=7_000))
    assert [len(part.ns) for part in parts] == [2000, 2000, 2000, 1000]
    assert [n for part in parts for n, state in zip(part.ns, part.states, strict=True) if state == 3] == [3_333]
    assert _taken(parts) == _taken(list(TrailReads.columns(table.reads, 1, first=1, last=7_000)))


def test_cells_that_are_no_text_end_both_ways(table: Table) -> None:
    """Bytes that are no UTF-8 are read by neither way: the check then says so, and does not pass over them."""
    _put(table.db, [(BASE + 1, "it-1", None, 1, None, None, None, 2, 0, 0, 0, 0, "USD", None, None, None)])
    table.db.execute("UPDATE items SET reference = CAST(x'ff41' AS TEXT)")
    with pytest.raises(LedgerError, match=r"(?i)utf-8"):
        list(table.reads.stored(1, first=1, last=1))
    with pytest.raises((LedgerError, ValueError), match=r"(?i)utf-8"):
        list(table.reads.columns(1, first=1, last=1))
