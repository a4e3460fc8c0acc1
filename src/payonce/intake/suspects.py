"""A table of rows whose ids may occur more than once, in a SQLite file that is thrown away, so that millions fit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from payonce.intake.ids import folded

_COUNT_NEAR: Final = """
    SELECT coalesce(sum(ids - 1), 0)
    FROM (SELECT count(DISTINCT id) AS ids FROM seen GROUP BY folded HAVING count(DISTINCT id) > 1)
"""
_FIRST_NEAR: Final = """
    SELECT id, min(line) FROM seen WHERE folded = (
        SELECT folded FROM seen GROUP BY folded HAVING count(DISTINCT id) > 1 ORDER BY min(line) LIMIT 1
    ) GROUP BY id ORDER BY min(line) LIMIT 2
"""


class Suspect(NamedTuple):
    """A row: its place among the items (None where it was refused), its line, and the digest of its content."""

    id: str
    place: int | None
    line: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one id: whether all have the same content, and the lines of the first two."""

    coded: bytes
    same: bool
    first: int
    second: int


class Suspects:
    """The table. Ids are kept as UTF-8 bytes, which SQLite compares exactly."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=OFF")
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.execute(
            "CREATE TABLE seen (id BLOB NOT NULL, folded BLOB NOT NULL, place INTEGER, line INTEGER NOT NULL, content BLOB)"
        )
        self._db.execute("BEGIN")

    def add(self, rows: Sequence[Suspect]) -> None:
        """Appends rows."""
        coded = [
            (row.id.encode("utf-8"), folded(row.id).encode("utf-8"), row.place, row.line, row.content) for row in rows
        ]
        self._db.executemany("INSERT INTO seen VALUES (?, ?, ?, ?, ?)", coded)

    def near(self) -> tuple[int, tuple[tuple[str, int], ...]]:
        """How many ids are equal to an earlier one when folded, and the first two such ids with their lines."""
        (count,) = self._db.execute(_COUNT_NEAR).fetchone()
        pair = self._db.execute(_FIRST_NEAR)
        return count, tuple((coded.decode("utf-8"), line) for coded, line in pair)

    def groups(self) -> Iterator[Group]:
        """The ids that occur more than once, in the order of their first lines."""
        self._db.execute("CREATE INDEX by_id ON seen (id, line)")
        found = self._db.execute(
            "SELECT id, count(DISTINCT content) = 1 AND count(place) = count(*), min(line) FROM seen"
            " GROUP BY id HAVING count(*) > 1 ORDER BY min(line)"
        )
        for coded, same, first in found:
            second = self._db.execute(
                "SELECT line FROM seen WHERE id = ? ORDER BY line LIMIT 1, 1", (coded,)
            ).fetchone()
            yield Group(coded, bool(same), first, second[0])

    def rows(self, coded: bytes) -> Iterator[tuple[int | None, int]]:
        """Place and line of each row of an id, in the order of the lines."""
        return iter(self._db.execute("SELECT place, line FROM seen WHERE id = ? ORDER BY line, place", (coded,)))

    def close(self) -> None:
        """Closes the file; its owner removes it."""
        self._db.close()
