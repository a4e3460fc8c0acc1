"""The writing side of a SQLite ledger: one connection, explicit transactions, set-based statements.

Nothing read is trusted in a later transaction unless SQLite says that nobody else has written since. Every statement is in sql/sqlite/write.sql.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from payonce.core.model import Finding, OpenIntent
from payonce.ledger.log import Log
from payonce.ledger.merkle import Head, pack
from payonce.ledger.newcomers import Block
from payonce.ledger.queries import queries
from payonce.ledger.rows import (
    BatchRow,
    ItemRow,
    OpenRow,
    Saved,
    Tallies,
    WorkerRow,
    copy_of,
    load,
)
from payonce.ledger.sqlite_bodies import stored
from payonce.ledger.sqlite_bulk import add_items
from payonce.ledger.sqlite_many import insert_many
from payonce.ledger.sqlite_overlap import read_extents
from payonce.ledger.sqlite_reads import read_open_intents
from payonce.ledger.sqlite_rows import (
    SHIFT,
    STATE_CODE,
    batch_columns,
    json_list,
    new_batch_columns,
    place,
    to_batch,
    to_head,
    to_item,
    to_open,
    to_tallies,
    to_worker,
    worker_columns,
)
from payonce.ledger.sqlite_save import save
from payonce.ledger.trail_port import SealedRow

_FILL_AT_ONCE = 20_000  # pages


class SqliteTables:
    """The rows of a ledger in SQLite, as ``ledger.tables`` asks for them.

    ``guard`` is called before each commit: it raises LedgerError where the file is no longer the one that was opened.
    ``after`` is called with the head once a commit is durable.
    """

    def __init__(
        self, connection: sqlite3.Connection, *, guard: Callable[[], None], after: Callable[[Head], None]
    ) -> None:
        self._db = connection
        self._sql = queries("sqlite", "write")
        self._guard = guard
        self._after = after
        self._head: Head | None = None
        self._version = -1
        self._unchanged = False
        self._appended = False
        self._targets: dict[int, bool] = {}
        # Rows as they are stored, known for as long as nobody else writes.
        self._batches: dict[int, tuple[Any, ...]] = {}
        self._workers: dict[int, WorkerRow] = {}

    def begin(self) -> Head:
        """See ledger.tables."""
        self._db.execute("BEGIN IMMEDIATE")
        version = self._db.execute("PRAGMA data_version").fetchone()[0]
        # Read under the write lock, so it stays true: it differs once any other connection has committed.
        self._unchanged = version == self._version and self._head is not None
        self._version = version
        if self._head is None or not self._unchanged:
            self._head = to_head(self._one("head"))
            self._batches, self._workers = {}, {}
        self._appended = False
        return self._head

    def unchanged(self) -> bool:
        """See ledger.tables."""
        return self._unchanged

    def append(self, log: Log) -> None:
        """See ledger.tables."""
        events = [
            (seq, None if batch is None else batch << SHIFT | (n or 0), body, mark)
            for (seq, batch, n, _, mark, _, _), body in zip(log.entries, stored(log.entries), strict=True)
        ]
        insert_many(self._db, self._sql["add_event"], events)
        if log.payloads:
            kept = [(p.seq, p.kind, place(p.batch, p.n), p.digest, p.body) for p in log.payloads]
            self._db.executemany(self._sql["add_payload"], kept)
        if log.nodes:
            self._db.executemany(self._sql["add_node"], [(node.level, node.index, node.hash) for node in log.nodes])
        head = log.head
        self._db.execute(self._sql["save_head"], (head.size, head.last_us, head.last_leaf, pack(head.peaks)))
        self._appended = True

    def commit(self) -> None:
        """See ledger.tables."""
        self._guard()
        self._db.execute("COMMIT")
        if self._appended and self._head is not None:
            self._after(self._head)

    def rollback(self) -> None:
        """See ledger.tables. Where SQLite has rolled back by itself there is nothing left to do."""
        self._head = None
        self._batches, self._workers = {}, {}
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # the connection is broken: nothing was committed, and the cause is on its way up

    def batch(self, batch: str) -> BatchRow | None:
        """See ledger.tables."""
        row = self._db.execute(self._sql["batch"], (batch,)).fetchone()
        if row is None:
            return None
        found = to_batch(row)
        self._targets[found.number] = found.targets
        return found

    def extents(self) -> dict[int, int]:
        """See ledger.tables."""
        return read_extents(self._db)

    def add_batch(self, row: BatchRow) -> int:
        """See ledger.tables."""
        number = self._db.execute(self._sql["add_batch"], new_batch_columns(row)).lastrowid
        assert number is not None
        return number

    def add_items(self, number: int, blocks: Iterable[Block]) -> None:
        """See ledger.tables."""
        add_items(self._db, number, blocks)

    def save_batch(self, row: BatchRow) -> None:
        """See ledger.tables."""
        columns = batch_columns(row)
        if self._batches.get(row.number) != columns:
            self._db.execute(self._sql["save_batch"], (*columns, row.number))
            self._batches[row.number] = columns

    def tallies(self, number: int) -> Tallies:
        """See ledger.tables."""
        return to_tallies(self._db.execute(self._sql["tallies"], (number,)).fetchall())

    def save_tallies(self, number: int, changed: Tallies) -> None:
        """See ledger.tables."""
        rows = [(number, STATE_CODE[state], currency, *tally) for (state, currency), tally in changed.items()]
        self._db.executemany(self._sql["save_tally"], rows)

    def rows(self, number: int, ns: Sequence[int]) -> list[ItemRow]:
        """See ledger.tables."""
        return [to_item(row) for row in self._all("rows", place(number), json_list(ns))]

    def number_of(self, number: int, item: str) -> int | None:
        """See ledger.tables."""
        row = self._db.execute(self._sql["number_of"], (item, number)).fetchone()
        return None if row is None else int(row[0])

    def sealed(self, number: int, *, first: int, last: int) -> Iterator[SealedRow]:
        """See ledger.tables."""
        return self._db.execute(self._sql["sealed"], (place(number, first), place(number, last)))

    def planned_after(self, number: int, after_n: int, limit: int) -> list[ItemRow]:
        """See ledger.tables."""
        return [to_item(row) for row in self._all("planned_after", place(number), place(number, after_n), limit)]

    def opens(self, number: int, ns: Sequence[int]) -> list[OpenRow]:
        """See ledger.tables."""
        return [to_open(row) for row in self._all("opens", place(number), json_list(ns))]

    def open_intents(self, number: int, ns: Sequence[int]) -> list[OpenIntent]:
        """See ledger.tables."""
        return read_open_intents(self._db, number, ns)

    def holders(self, number: int, targets: Sequence[str]) -> dict[str, int]:
        """See ledger.tables."""
        return dict(self._all("holders", number, json_list(targets)))

    def orphans(self, number: int, living: Collection[int], limit: int) -> list[int]:
        """See ledger.tables."""
        return [row[0] for row in self._all("orphans", number, json_list(sorted(living)), limit)]

    def save(self, number: int, saved: Saved) -> None:
        """See ledger.tables."""
        save(self._db, number, saved, targets=self._targets)

    def erase(self, number: int, n: int, *, fields: str, seq: int) -> None:
        """See ledger.tables."""
        where = place(number, n)
        self._db.execute(self._sql["erase_fields"], (None if fields == "{}" else fields, where))
        self._db.execute(self._sql["erase_payloads"], (seq, where))
        self._db.execute(self._sql["erase_output"], (where,))

    def add_worker(self, row: WorkerRow) -> int:
        """See ledger.tables."""
        fence = self._db.execute(self._sql["add_worker"], worker_columns(row)).lastrowid
        assert fence is not None
        return fence

    def worker(self, fence: int) -> WorkerRow | None:
        """See ledger.tables."""
        known = self._workers.get(fence)
        if known is None:
            row = self._db.execute(self._sql["worker"], (fence,)).fetchone()
            if row is None:
                return None
            known = self._workers[fence] = to_worker(row)
        return copy_of(known)

    def workers(self, number: int) -> list[WorkerRow]:
        """See ledger.tables."""
        return [to_worker(row) for row in self._all("workers", number)]

    def save_worker(self, row: WorkerRow) -> None:
        """See ledger.tables."""
        self._db.execute(self._sql["save_worker"], (row.lease_until_us, row.left_us, row.fence))
        self._workers.pop(row.fence, None)

    def findings(self, number: int) -> list[Finding]:
        """See ledger.tables."""
        rows = self._db.execute(queries("sqlite", "read")["findings"], (number,)).fetchall()
        return [Finding(kind, item, load(data), state, id_, opened) for id_, item, kind, data, state, opened in rows]

    def claimed(self, references: Sequence[str]) -> frozenset[str]:
        """See ledger.tables."""
        self._db.execute(self._sql["index_references"])
        return frozenset(row[0] for row in self._all("claimed", json_list(references)))

    def claimed_on(self, references: Sequence[str], target: str) -> list[tuple[str, str]]:
        """See ledger.tables."""
        self._db.execute(self._sql["index_references"])
        return self._all("claimed_on", json_list(references), target)

    def meta(self) -> Mapping[str, str]:
        """See ledger.tables."""
        return dict(self._all("meta"))

    def save_meta(self, name: str, value: str) -> None:
        """See ledger.tables."""
        self._db.execute(self._sql["save_meta"], (name, value))

    def overwrite_deleted(self, *, on: bool) -> None:
        """Whether freed pages are overwritten too, besides what goes from pages that stay."""
        self._db.execute(f"PRAGMA secure_delete = {'ON' if on else 'FAST'}").fetchall()

    def overwrite_free(self) -> None:
        """Overwrites the pages that were freed before: requests of decided items, which may hold what is being erased."""
        size, free = (self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "freelist_count"))
        self._db.execute("BEGIN IMMEDIATE")
        try:
            # With its first page it takes just as many as are free: the file does not grow.
            self._db.execute("CREATE TABLE filler (zeros BLOB)")
            for first in range(0, free - 1, _FILL_AT_ONCE):
                pages = min(_FILL_AT_ONCE, free - 1 - first)
                self._db.execute("INSERT INTO filler VALUES (zeroblob(?))", (pages * (size - 4),))
            self._db.execute("DROP TABLE filler")
            self._db.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise

    def checkpoint(self) -> bool:
        """Folds the journal into the file and cuts it; False where readers did not let it within a few seconds."""
        patience = self._db.execute("PRAGMA busy_timeout").fetchone()[0]
        self._db.execute("PRAGMA busy_timeout = 2000")
        busy = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        self._db.execute(f"PRAGMA busy_timeout = {patience:d}")
        return not busy

    def _one(self, name: str, *parameters: Any) -> Any:
        return self._db.execute(self._sql[name], parameters).fetchone()

    def _all(self, name: str, *parameters: Any) -> list[Any]:
        return self._db.execute(self._sql[name], parameters).fetchall()
