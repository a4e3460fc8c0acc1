"""The reading side of a SQLite ledger, on a connection of its own: it sees what is durable and never waits for a write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from payonce.core.model import Event, Finding, Item, OpenIntent
from payonce.core.states import ItemState
from payonce.ledger.audit import check_batch, check_trail
from payonce.ledger.merkle import Head, Node
from payonce.ledger.migrate import schema_of
from payonce.ledger.protocol import LedgerInfo, Output
from payonce.ledger.queries import queries
from payonce.ledger.rows import BatchRow, Tallies, WorkerRow, as_item, as_open, load
from payonce.ledger.sqlite_bodies import restored
from payonce.ledger.sqlite_errors import faults
from payonce.ledger.sqlite_overlap import SqliteOverlaps
from payonce.ledger.sqlite_rows import (
    MASK,
    SHIFT,
    STATE_CODE,
    place,
    to_batch,
    to_head,
    to_item,
    to_open,
    to_request,
    to_tallies,
    to_worker,
)
from payonce.ledger.tables import Standing

_PAGE = 1000
_BILLING_PAGE = 1000


class SqliteReads(SqliteOverlaps):
    """What is durable in a SQLite ledger, as ``ledger.tables`` asks for it."""

    def __init__(self, connection: sqlite3.Connection, *, path: Path) -> None:
        self._db = connection
        self._path = path
        self._sql = queries("sqlite", "read")

    def info(self) -> LedgerInfo:
        """See ledger.tables."""
        meta, head = self.meta(), self.head()
        return LedgerInfo(
            id=meta["id"],
            url=f"sqlite:{self._path}",
            schema=schema_of(self._db),
            events=head.size,
            root=head.root().hex(),
            durable=True,
            one_process=False,
            one_host=True,
        )

    def meta(self) -> dict[str, str]:
        """Facts about the ledger itself: id and home."""
        return dict(self._all("meta"))

    def head(self) -> Head:
        """The head of the trail."""
        return to_head(self._all("head")[0])

    def batches(self, batch: str | None) -> list[BatchRow]:
        """See ledger.tables."""
        return [to_batch(row) for row in self._all("batches", batch)]

    def standing(self, batch: str) -> Standing | None:
        """See ledger.tables. All of it is of one instant."""
        with faults(self._path), self._snapshot():
            found = self.batches(batch)
            if not found:
                return None
            row = found[0]
            workers = [to_worker(worker) for worker in self._all("workers", row.number)]
            return row, to_tallies(self._all("tallies", row.number)), workers

    def items(self, number: int, *, states: Sequence[ItemState], after_n: int, limit: int) -> list[Item]:
        """See ledger.tables."""
        start = (place(number), place(number, after_n), limit)
        if not states:
            return [as_item(to_item(row)) for row in self._all("items", *start)]
        # One ordered scan for each state, so that none of them reads through all items of the others.
        pages = [self._in_state(state, start) for state in dict.fromkeys(states)]
        return [as_item(to_item(row)) for row in islice(merge(*pages), limit)]

    def _in_state(self, state: ItemState, start: tuple[int, int, int]) -> list[Any]:
        match state:
            case ItemState.PLANNED:
                return self._all("items_planned", *start)
            case ItemState.COMMITTED:
                return self._all("items_committed", *start)
            case ItemState.PENDING:
                return self._all("items_open", *start, STATE_CODE[state])
            case ItemState.REFUSED | ItemState.UNKNOWN | ItemState.SKIPPED:
                return self._all("items_ended_otherwise", *start, STATE_CODE[state])

    def item(self, number: int, item: str) -> Item | None:
        """See ledger.tables."""
        rows = self._all("item", place(number), item)
        return as_item(to_item(rows[0])) if rows else None

    def open_intents(self, number: int, ns: Sequence[int]) -> list[OpenIntent]:
        """See ledger.tables."""
        with faults(self._path):
            return read_open_intents(self._db, number, ns)

    def events(self, number: int | None, *, n: int | None, after_seq: int, limit: int) -> list[Event]:
        """See ledger.tables."""
        ids = dict(self._all("batch_ids"))
        if number is None:
            rows = self._all("events", after_seq, limit)
        elif n is None:
            rows = self._all("events_of_batch", after_seq, limit, place(number))
        else:
            rows = self._all("events_of_item", after_seq, limit, place(number, n))
        bodies = restored([body for _, _, body in rows])
        return [_event(seq, place, body, ids) for (seq, place, _), body in zip(rows, bodies, strict=True)]

    def billing(self, number: int) -> Iterator[str]:
        """See ledger.protocol. Read as it is consumed, of one instant."""
        first, end = place(number), place(number + 1)
        start: int | None = first
        with faults(self._path), _Snapshot(self._db):
            while start is not None and start < end:
                columns = self._db.execute(self._sql["billing"], (start, start + _BILLING_PAGE, first)).fetchone()
                if columns[0] is not None:
                    yield "\x1d" + "\x1f".join(columns)
                    start += _BILLING_PAGE
                else:
                    start = self._db.execute(self._sql["billing_next"], (start, end)).fetchone()[0]

    def outputs(self, number: int, *, after_n: int, limit: int) -> list[Output]:
        """See ledger.tables."""
        items = self.items(number, states=(), after_n=after_n, limit=limit)
        if not items:
            return []
        bounds = (place(number, items[0].n), place(number, items[-1].n))
        found = {n: (output, kept) for n, output, kept in self._all("outputs", *bounds)}
        rows = ((item, *found.get(item.n, (None, None))) for item in items)
        return [Output(item, output, load(kept or "{}")) for item, output, kept in rows]

    def findings(self, number: int) -> list[Finding]:
        """See ledger.tables."""
        rows = self._all("findings", number)
        return [Finding(kind, item, load(data), state, id_, opened) for id_, item, kind, data, state, opened in rows]

    def present_workers(self) -> list[WorkerRow]:
        """All workers of all batches that have not left."""
        return [to_worker(row) for row in self._all("present_workers")]

    def body(self, seq: int) -> bytes | None:
        """The canonical bytes of one event."""
        rows = self._all("event", seq)
        return restored(rows[0])[0] if rows else None

    def last_event(self) -> tuple[int, bytes] | None:
        """The last event there is."""
        rows = self._all("last_event")
        return (rows[0][0], restored(rows[0][1:])[0]) if rows else None

    def ends(self) -> tuple[Head, tuple[int, bytes] | None]:
        """The head and the last event, of one instant: others may be writing."""
        with faults(self._path), self._snapshot():
            return self.head(), self.last_event()

    def check(self) -> list[str]:
        """See ledger.tables. One view of the ledger from start to end, while others may go on writing."""
        with faults(self._path), self._snapshot():
            rows = self._db.execute("PRAGMA integrity_check(20)").fetchall()
            faulty = [f"the database is damaged: {row[0]}" for row in rows if row[0] != "ok"]
            if faulty:
                return faulty
            nodes = [Node(*row) for row in self._all("nodes")]
            faulty = check_trail(self._bodies(), self.head(), nodes)
            for batch in self.batches(None):
                faulty += self._check_batch(batch)
            return faulty

    def _check_batch(self, batch: BatchRow) -> list[str]:
        opens = {row[0]: to_open(row) for row in self._all("all_opens", place(batch.number))}
        tallies: Tallies = to_tallies(self._all("tallies", batch.number))
        items = self._db.execute(self._sql["items"], (place(batch.number), place(batch.number), -1))
        faulty = check_batch(batch, (to_item(row) for row in items), opens, tallies)
        found = self._all("found_ids", batch.number)[0][0]
        if found != batch.items:
            faulty.append(f"batch {batch.id}: {found} of {batch.items} items are found by their ids")
        return faulty

    def _bodies(self) -> Iterator[tuple[int, bytes]]:
        rows = self._db.execute(self._sql["events"], (0, -1))
        while page := rows.fetchmany(_PAGE):
            seqs, _, bodies = zip(*page, strict=True)
            yield from zip(seqs, restored(bodies), strict=True)

    def _snapshot(self) -> _Snapshot:
        return _Snapshot(self._db)

    def _all(self, name: str, *parameters: Any) -> list[Any]:
        with faults(self._path):
            return self._db.execute(self._sql[name], parameters).fetchall()


class _Snapshot:
    """A read transaction: everything read inside is of one instant."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def __enter__(self) -> None:
        self._db.execute("BEGIN")

    def __exit__(self, *_: object) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


def read_open_intents(connection: sqlite3.Connection, number: int, ns: Sequence[int]) -> list[OpenIntent]:
    """Some open intents with their items and requests, in input order, as the connection sees them."""
    sql = queries("sqlite", "read")["open_intents"]
    rows = connection.execute(sql, (place(number), orjson.dumps(list(ns)).decode())).fetchall()
    return [as_open(to_open(row[21:39]), to_item(row[:21]), to_request(row[39:])) for row in rows]


def _event(seq: int, where: int | None, body: bytes, ids: dict[int, str]) -> Event:
    if where is None:
        return Event(seq, None, None, body)
    return Event(seq, ids[where >> SHIFT], (where & MASK) or None, body)
