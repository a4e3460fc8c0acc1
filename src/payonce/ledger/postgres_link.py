"""One connection to the server: statements that nobody waits for are gathered and sent with the next one that is.

Every wait for the server is one round trip, and ``round_trips`` counts them: over a network they are what a ledger
costs. A link holds no rules and repeats nothing: after a fault the connection may be gone, and whoever asked is told.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, LiteralString

import psycopg
from psycopg import RawCursor

from payonce.ledger.postgres_errors import faults

# What psycopg logs of a lost connection is told by the error that follows it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

Statement = tuple[LiteralString, Sequence[Any]]
_AT_ONCE: Final = 4096
# A run of statements that nobody waits for is sent when it is as long as this, so that it never fills the memory.
_MOST_WAITING: Final = 64


class Link:
    """A connection in autocommit: transactions are begun and ended by statements."""

    def __init__(self, connection: psycopg.Connection[Any], place: str) -> None:
        self.connection = connection
        self.place = place
        self.round_trips = 0
        self._waiting: list[Statement] = []
        self._streams = 0

    def later(self, sql: LiteralString, *parameters: Any) -> None:
        """A statement whose rows nobody asks for: it goes with the next one that is waited for, before it."""
        self._waiting.append((sql, parameters))
        if len(self._waiting) >= _MOST_WAITING:
            self.ask_all()

    def ask(self, sql: LiteralString, *parameters: Any) -> list[Any]:
        """A statement's rows, in one round trip with everything that waits."""
        return self.ask_all((sql, parameters))[0]

    def ask_all(self, *statements: Statement) -> list[list[Any]]:
        """The rows of several statements, in order, in one round trip with everything that waits before them."""
        everything, first = [*self._waiting, *statements], len(self._waiting)
        self._waiting = []
        if not everything:
            return []
        self.round_trips += 1
        with faults(self.place):
            with self.connection.pipeline() as pipeline:
                _end_with_sync(pipeline)
                cursors = [self._execute(sql, parameters) for sql, parameters in everything]
            return [cursor.fetchall() if cursor.description else [] for cursor in cursors[first:]]

    def _execute(self, sql: LiteralString, parameters: Sequence[Any]) -> RawCursor[Any]:
        cursor = RawCursor(self.connection)
        return cursor.execute(sql, parameters or None, binary=True)

    def forget(self) -> None:
        """Nothing that waits is sent any more."""
        self._waiting = []

    def copy(self, sql: LiteralString, blocks: Iterable[bytes]) -> None:
        """Streams rows into a table in COPY's text form."""
        self.ask_all()
        self.round_trips += 1
        with faults(self.place), RawCursor(self.connection).copy(sql) as stream:
            for block in blocks:
                stream.write(block)

    def run_alone(self, sql: LiteralString) -> None:
        """A statement that has to be outside of any transaction."""
        self.ask_all()
        self.round_trips += 1
        with faults(self.place):
            self.connection.execute(sql)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is of one instant."""
        self.ask("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            self.roll_back()

    def stream(self, sql: LiteralString, *parameters: Any) -> Iterator[list[Any]]:
        """Rows as they are consumed, some thousand at a time; only inside a transaction."""
        self._streams += 1
        with faults(self.place):
            cursor = psycopg.RawServerCursor(self.connection, f"payonce_{self._streams}")
            try:
                cursor.execute(sql, parameters or None, binary=True)
                while page := cursor.fetchmany(_AT_ONCE):
                    self.round_trips += 1
                    yield page
            finally:
                with suppress(psycopg.Error):  # its transaction may be over, and with it the cursor
                    cursor.close()

    def roll_back(self) -> None:
        """Ends a transaction without keeping anything of it; never raises. A connection in doubt is closed: the server
        then rolls back."""
        self.forget()
        try:
            if self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                self.connection.execute("ROLLBACK")
        except psycopg.Error:
            self.connection.close()

    def close(self) -> None:
        """Closes the connection."""
        self.forget()
        self.connection.close()


def _end_with_sync(pipeline: psycopg.Pipeline) -> None:
    """Has a pipeline end with a Sync and nothing behind it.

    psycopg sends a Flush as well. The server starts its timer of idle transactions with the answer to a Sync and stops it
    with whatever comes next: after a Flush a process that stands still would keep its lock for ever. Where a later psycopg
    has no such methods any more, everything else works as before, and a test fails.
    """
    inside: Any = pipeline
    if hasattr(inside, "_sync_gen") and hasattr(inside, "_fetch_gen"):
        inside._exit_gen = lambda: _ending(inside)


def _ending(pipeline: Any) -> Iterator[Any]:
    """Sends the Sync and takes every answer in, whatever went wrong; the first error is the one that is told, since those
    behind it only say that they were not executed."""
    first: psycopg.Error | None = None
    for step in (pipeline._sync_gen(), pipeline._fetch_gen(flush=False)):
        try:
            yield from step
        except psycopg.Error as error:
            first = first or error
    if first is not None:
        raise first
