"""The trail of a SQLite ledger, on a read-only connection of its own. See ledger.trail_port."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path
from typing import Any, Final

from payonce.ledger.merkle import Head
from payonce.ledger.migrate import schema_of
from payonce.ledger.queries import queries
from payonce.ledger.rows import BatchRow, OutputRow, Tallies, WorkerRow
from payonce.ledger.sqlite_bodies import restored_rows
from payonce.ledger.sqlite_columns import columns_of
from payonce.ledger.sqlite_errors import faults
from payonce.ledger.sqlite_open import open_reader
from payonce.ledger.sqlite_rows import place, to_batch, to_head, to_opened, to_tallies, to_worker
from payonce.ledger.trail_port import (
    PLACE_MASK,
    Columns,
    Filed,
    FoundRow,
    KeptPayload,
    Opened,
    SealedRow,
    StoredRow,
)

_AT_ONCE: Final = 4096
# Before this schema there were neither marks nor payloads.
_TRAIL_SCHEMA: Final = 2
# Before this one ids were an index of the items, which SQLite keeps.
_IDS_SCHEMA: Final = 3


class SqliteTrail:
    """A ledger's trail as it is on disk. Opens any ledger that can be read, also one that is refused for writing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = open_reader(path, older=True)
        self._sql = queries("sqlite", "trail")
        schema = schema_of(self._db)
        self._has_marks, self._has_ids = schema >= _TRAIL_SCHEMA, schema >= _IDS_SCHEMA

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See ledger.trail_port."""
        with faults(self._path):
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def close(self) -> None:
        """See ledger.trail_port."""
        self._db.close()

    def ledger_id(self) -> str:
        """See ledger.trail_port."""
        return str(self._all("meta", "id")[0][0])

    def head(self) -> Head:
        """See ledger.trail_port."""
        return to_head(self._all("head")[0])

    def extent(self) -> int:
        """See ledger.trail_port."""
        return int(self._all("extent")[0][0])

    def bodies(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """See ledger.trail_port."""
        return self._stream_sql(self._sql["bodies"], first, last, body_at=1)

    def filed(self, first: int, last: int) -> Iterator[Filed]:
        """See ledger.trail_port."""
        sql = self._sql["filed"] if self._has_marks else self._sql["filed"].replace("mark", "NULL")
        return self._stream_sql(sql, first, last, body_at=2)

    def chunk(self, first: int, last: int) -> list[tuple[int | None, bytes]]:
        """See ledger.trail_port."""
        return restored_rows(self._all("chunk", first, last), at=1)

    def chunk_of(self, first: int, last: int, *, low: int, high: int) -> list[tuple[int, int | None, bytes]]:
        """See ledger.trail_port."""
        return restored_rows(self._all("chunk_of", first, last, low, high), at=2)

    def about(self, number: int, n: int) -> list[tuple[int, bytes]]:
        """See ledger.trail_port."""
        return restored_rows(self._all("of_item", place(number, n)), at=1)

    def nodes(self, level: int, first: int, last: int) -> dict[int, bytes]:
        """See ledger.trail_port."""
        return dict(self._all("nodes", level, first, last))

    def kept_nodes(self) -> int:
        """See ledger.trail_port."""
        return int(self._all("kept_nodes")[0][0])

    def batches(self) -> list[BatchRow]:
        """See ledger.trail_port."""
        return [to_batch(row) for row in self._all("batches")]

    def number_of(self, number: int, item: str) -> int | None:
        """See ledger.trail_port."""
        found = self._all("number_of", item, number)
        return int(found[0][0]) if found else None

    def ids(self, number: int) -> tuple[int, int] | None:
        """See ledger.trail_port."""
        if not self._has_ids:
            return None
        there, found = self._all("ids", number)[0]
        return int(there), int(found)

    def tallies(self, number: int) -> Tallies:
        """See ledger.trail_port."""
        return to_tallies(self._all("tallies", number))

    def stored(self, number: int, *, first: int = 1, last: int = PLACE_MASK) -> Iterator[StoredRow]:
        """See ledger.trail_port. The codes of states and settlements are their places."""
        return starmap(StoredRow, self._stream("stored", place(number), first, last))

    def columns(self, number: int, *, first: int, last: int) -> Iterator[Columns]:
        """See ledger.trail_port."""
        return columns_of(self._all, base=place(number), first=first, last=last)

    def sealed(self, number: int) -> Iterator[SealedRow]:
        """See ledger.trail_port."""
        return self._stream("sealed", place(number))

    def holds(self, number: int) -> dict[int, tuple[int | None, str | None]]:
        """See ledger.trail_port."""
        return {n: (minor, currency) for n, minor, currency in self._all("holds", place(number))}

    def outputs(self, number: int, *, first: int = 1, last: int = PLACE_MASK) -> Iterator[OutputRow]:
        """See ledger.trail_port."""
        return starmap(OutputRow, self._stream("outputs", place(number), first, last))

    def opens(self, number: int) -> Iterator[Opened]:
        """See ledger.trail_port."""
        return map(to_opened, self._stream("opens", place(number)))

    def findings(self, number: int) -> list[FoundRow]:
        """See ledger.trail_port."""
        return list(starmap(FoundRow, self._all("findings", number)))

    def workers(self) -> list[WorkerRow]:
        """See ledger.trail_port."""
        return list(map(to_worker, self._all("workers")))

    def strangers(self) -> list[str]:
        """See ledger.trail_port."""
        last = self._all("last_batch")[0][0]
        ids = self._all("stranger_ids", last) if self._has_ids else []
        return [table for (table,) in [*self._all("strangers", last), *ids]]

    def payloads(self, number: int | None = None, n: int = 0) -> Iterator[KeptPayload]:
        """See ledger.trail_port."""
        if not self._has_marks:
            return iter(())
        rows = self._stream("payloads") if number is None else self._stream("payloads_at", place(number, n))
        return starmap(KeptPayload, rows)

    def _all(self, name: str, *parameters: Any) -> list[Any]:
        with faults(self._path):
            return self._db.execute(self._sql[name], parameters).fetchall()

    def _stream(self, name: str, *parameters: Any) -> Iterator[Any]:
        return self._stream_sql(self._sql[name], *parameters)

    def _stream_sql(self, sql: str, *parameters: Any, body_at: int | None = None) -> Iterator[Any]:
        """A statement's rows; ``body_at`` is the column that holds the body of an event."""
        with faults(self._path):
            cursor: sqlite3.Cursor = self._db.execute(sql, parameters)
            rows = cursor.fetchmany(_AT_ONCE)
        while rows:
            yield from rows if body_at is None else restored_rows(rows, at=body_at)
            with faults(self._path):
                rows = cursor.fetchmany(_AT_ONCE)
