"""What finding overlaps reads of a SQLite ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import orjson

from payonce.core.overlap import Acting
from payonce.ledger.queries import queries
from payonce.ledger.rows import money
from payonce.ledger.sqlite_errors import faults
from payonce.ledger.sqlite_rows import STATES, place

_PAGE: Final = 10_000


def read_extents(connection: sqlite3.Connection) -> dict[int, int]:
    """How many items each batch has, as the connection sees it."""
    return dict(connection.execute(queries("sqlite", "overlap")["extents"]).fetchall())


class SqliteOverlaps:
    """See ledger.overlap_port. A part of the reading side, on its connection."""

    _db: sqlite3.Connection
    _path: Path

    def extents(self) -> dict[int, int]:
        """See ledger.overlap_port."""
        with faults(self._path):
            return read_extents(self._db)

    def acted_targets(self, number: int) -> Iterator[list[str]]:
        """See ledger.overlap_port. Read as it is consumed, of one instant."""
        with faults(self._path):
            rows = self._db.execute(queries("sqlite", "overlap")["acted_targets"], (place(number),))
            while page := rows.fetchmany(_PAGE):
                yield [target for (target,) in page]

    def acting_on(self, number: int, targets: Sequence[str]) -> list[Acting]:
        """See ledger.overlap_port."""
        sql = queries("sqlite", "overlap")["acting_on"]
        with faults(self._path):
            rows = self._db.execute(sql, (place(number), orjson.dumps(list(targets)).decode())).fetchall()
        return [
            Acting(batch, item, target, STATES[state], money(minor, currency))
            for batch, item, target, state, minor, currency in rows
        ]
