"""The trail of a PostgreSQL ledger, on a connection of its own that only reads; a standby will do. See
ledger.trail_port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import starmap
from typing import Any

from payonce.ledger.merkle import Head
from payonce.ledger.postgres_address import parse
from payonce.ledger.postgres_open import open_link, refuse_unusable
from payonce.ledger.postgres_rows import to_batch
from payonce.ledger.postgres_values import told
from payonce.ledger.queries import queries
from payonce.ledger.rows import BatchRow, OutputRow, Tallies, WorkerRow
from payonce.ledger.sqlite_rows import place, to_head, to_opened, to_tallies, to_worker
from payonce.ledger.trail_port import (
    PLACE_MASK,
    Filed,
    FoundRow,
    KeptPayload,
    Opened,
    SealedRow,
    StoredRow,
    TrailReads,
)


class PostgresTrail(TrailReads):
    """A ledger's trail as it is on the server. Opens any ledger that can be read, also one that is refused for writing."""

    def __init__(self, url: str) -> None:
        self._link = open_link(parse(url), writing=False)
        try:
            refuse_unusable(self._link)
        except BaseException:
            self._link.close()
            raise
        self._sql = queries("postgres", "trail")
        self._inside = False

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See ledger.trail_port."""
        with self._link.snapshot():
            self._inside = True
            try:
                yield
            finally:
                self._inside = False

    def close(self) -> None:
        """See ledger.trail_port."""
        self._link.close()

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
        return self._stream("bodies", first, last)

    def filed(self, first: int, last: int) -> Iterator[Filed]:
        """See ledger.trail_port."""
        return self._stream("filed", first, last)

    def chunk(self, first: int, last: int) -> list[tuple[int | None, bytes]]:
        """See ledger.trail_port."""
        return self._all("chunk", first, last)

    def chunk_of(self, first: int, last: int, *, low: int, high: int) -> list[tuple[int, int | None, bytes]]:
        """See ledger.trail_port."""
        return self._all("chunk_of", first, last, low, high)

    def about(self, number: int, n: int) -> list[tuple[int, bytes]]:
        """See ledger.trail_port."""
        return self._all("of_item", place(number, n))

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

    def tallies(self, number: int) -> Tallies:
        """See ledger.trail_port."""
        return to_tallies(self._all("tallies", number))

    def stored(self, number: int, *, first: int = 1, last: int = PLACE_MASK) -> Iterator[StoredRow]:
        """See ledger.trail_port. The codes of states and settlements are their places."""
        return map(_as_said, self._stream("stored", place(number), first, last))

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
        return map(_opened, self._stream("opens", place(number)))

    def findings(self, number: int) -> list[FoundRow]:
        """See ledger.trail_port."""
        return list(starmap(FoundRow, self._all("findings", number)))

    def workers(self) -> list[WorkerRow]:
        """See ledger.trail_port."""
        return list(map(to_worker, self._all("workers")))

    def strangers(self) -> list[str]:
        """See ledger.trail_port."""
        last = self._all("last_batch")[0][0]
        return [table for (table,) in self._all("strangers", last)]

    def payloads(self, number: int | None = None, n: int = 0) -> Iterator[KeptPayload]:
        """See ledger.trail_port."""
        rows = self._stream("payloads") if number is None else self._stream("payloads_at", place(number, n))
        return starmap(KeptPayload, rows)

    def _all(self, name: str, *parameters: Any) -> list[Any]:
        return self._link.ask(self._sql[name], *parameters)

    def _stream(self, name: str, *parameters: Any) -> Iterator[Any]:
        """Rows as they are consumed; outside of a snapshot, of the instant at which the first one is read."""
        if self._inside:
            for page in self._link.stream(self._sql[name], *parameters):
                yield from page
            return
        with self.snapshot():
            yield from self._stream(name, *parameters)


def _as_said(columns: tuple[Any, ...]) -> StoredRow:
    """Reference, code and message as they were said."""
    row = StoredRow._make(columns)
    return row._replace(reference=told(row.reference), code=told(row.code), message=told(row.message))


def _opened(columns: tuple[Any, ...]) -> Opened:
    """Code and message as they were said."""
    found = to_opened(columns)
    found.row.code, found.row.message = told(found.row.code), told(found.row.message)
    return found
