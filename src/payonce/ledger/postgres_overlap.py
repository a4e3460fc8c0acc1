"""What finding overlaps reads of a PostgreSQL ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from payonce.core.overlap import Acting
from payonce.ledger.postgres_link import Link
from payonce.ledger.postgres_values import texts
from payonce.ledger.queries import queries
from payonce.ledger.rows import money
from payonce.ledger.sqlite_rows import STATES, place


class PostgresOverlaps:
    """See ledger.overlap_port. A part of the reading side; what is streamed has a connection of its own."""

    _link: Link
    _open: Callable[[], Link]

    def extents(self) -> dict[int, int]:
        """See ledger.overlap_port."""
        return dict(self._link.ask(queries("postgres", "overlap")["extents"]))

    def acted_targets(self, number: int) -> Iterator[list[str]]:
        """See ledger.overlap_port. Read as it is consumed, of one instant."""
        link = self._open()
        try:
            with link.snapshot():
                for page in link.stream(queries("postgres", "overlap")["acted_targets"], place(number)):
                    yield [target for (target,) in page]
        finally:
            link.close()

    def acting_on(self, number: int, targets: Sequence[str]) -> list[Acting]:
        """See ledger.overlap_port."""
        sql = queries("postgres", "overlap")["acting_on"]
        return [
            Acting(batch, item, target, STATES[state], money(minor, currency))
            for batch, item, target, state, minor, currency in self._link.ask(sql, place(number), texts(targets))
        ]
