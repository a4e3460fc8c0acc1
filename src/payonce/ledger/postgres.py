"""A ledger in a PostgreSQL database: many processes on many hosts.

A writing connection and a reading one, so that a status never waits for a write. See postgres_open.py for what is
refused and set at open, postgres_tables.py for how writers take turns, postgres_place.py for how a restored or copied
ledger is noticed. Nothing is repeated by itself after a lost connection: the run halts, and the same command goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, LiteralString

from payonce.core.errors import LedgerError
from payonce.core.events import leaf_hash
from payonce.core.model import Actor
from payonce.ledger.actors import is_alive as process_is_alive
from payonce.ledger.actors import this_actor
from payonce.ledger.log import Log
from payonce.ledger.place import MOVED_TO, refuse_moved_away, refuse_rolled_back, state_folder
from payonce.ledger.postgres_address import Address, parse
from payonce.ledger.postgres_clock import ServerClock
from payonce.ledger.postgres_link import Link
from payonce.ledger.postgres_open import migrate, open_link, refuse_unusable, schema_of
from payonce.ledger.postgres_place import HOME, ServerMarker, home_of, refuse_lost_at, refuse_moved
from payonce.ledger.postgres_reads import LEDGER_ID, PostgresReads
from payonce.ledger.postgres_tables import PostgresTables
from payonce.ledger.rows import signature
from payonce.ledger.store import Clock, IsAlive
from payonce.ledger.store_reads import StoreLedger

# What may hold something of a person.
_VACUUM: Final[tuple[LiteralString, ...]] = ("VACUUM items", "VACUUM intents", "VACUUM payloads", "VACUUM outputs")


class PostgresLedger(StoreLedger):
    """A ledger at an address; made new only where ``create`` is true and there is none.

    Raises LedgerError or LedgerPlaceError where it may not be written; ``read_only`` opens any ledger for reading, also
    on a standby. ``accept`` (who, why) takes it as it is, where it is, and records that. ``clock`` replaces the server's.
    """

    gather_s = 0.004

    def __init__(
        self,
        url: str,
        *,
        create: bool = False,
        clock: Clock | None = None,
        is_alive: IsAlive = process_is_alive,
        read_only: bool = False,
        marks: Path | None = None,
        accept: tuple[Actor, str] | None = None,
    ) -> None:
        address, folder = parse(url), marks or state_folder()
        self._writer: Link | None = None
        if not read_only:
            self._writer = open_writer(address, create=create, folder=folder)
        try:
            self._reader = open_link(address, writing=False)
        except BaseException:
            self._close_links()
            raise
        try:
            refuse_unusable(self._reader)
            server = ServerClock()
            reads = PostgresReads(self._reader, clock=server, open_link=partial(open_link, address, writing=False))
            self._marker = ServerMarker(address.shown, reads.meta()[LEDGER_ID], folder=folder)
            self._postgres = PostgresTables(self._writer or self._reader, clock=server, after=self._marker.durable)
            super().__init__(self._postgres, reads, clock=clock or server, is_alive=is_alive)
            self._postgres_reads = reads
            if self._writer is not None:
                self._take_place(self._writer, accept)
        except BaseException:
            self._close_links()
            raise

    @contextmanager
    def _outermost(self) -> Iterator[Log]:
        if self._writer is None:
            raise LedgerError(
                f"ledger {self._reader.place} is open for reading only",
                code="ledger_read_only",
                hint="open it for writing",
            )
        with super()._outermost() as log:
            yield log

    @contextmanager
    def _erasing(self) -> Iterator[None]:
        """What is erased goes from the tables' files as soon as nobody can see it any more: they are vacuumed at once,
        where this role may do that."""
        yield
        assert self._writer is not None, "erasing is a transaction"
        # A role that may not vacuum is only warned by the server: autovacuum does it later then, and so it does where this
        # fails. The erasure itself is durable by now.
        with suppress(LedgerError):
            for statement in _VACUUM:
                self._writer.run_alone(statement)

    def close(self) -> None:
        """See ledger.protocol."""
        if self._writer is not None:
            self._marker.write()
        self._close_links()

    def _close_links(self) -> None:
        for link in (getattr(self, "_reader", None), self._writer):
            if link is not None:
                link.close()

    def _take_place(self, writer: Link, accept: tuple[Actor, str] | None) -> None:
        """Refuses a ledger that is not what or where it was; records its birth, or a person's acceptance."""
        place, reads = writer.place, self._postgres_reads
        head, last, meta = reads.ends()
        if (head.size, head.last_leaf) != ((0, b"") if last is None else (last[0], leaf_hash(last[1]))):
            raise LedgerError(
                f"ledger {place}: the trail ends at event {last[0] if last else 0}, its head says {head.size}",
                code="ledger_corrupt",
                hint="someone changed the trail; restore the ledger from a backup and reconcile before going on",
            )
        here = home_of(writer)
        if accept is None:
            refuse_moved_away(place, meta.get(MOVED_TO))
            refuse_rolled_back(place, self._marker.marks(), body=reads.body)
            refuse_moved(place, meta.get(HOME), here)
        if head.size and accept is None:
            return
        with self._transaction() as log:
            if log.head.size == 0:
                body = {"type": "ledger_created", "ledger": meta[LEDGER_ID], "actor": signature(this_actor())}
            elif accept is not None:
                actor, reason = accept
                body = {
                    "type": "ledger_accepted",
                    "ledger": meta[LEDGER_ID],
                    "actor": signature(actor),
                    "reason": reason,
                }
            else:
                return  # another process was faster
            log.emit(body)
            self._postgres.save_meta(MOVED_TO, "")
            if here is not None:
                self._postgres.save_meta(HOME, here)


def open_writer(address: Address, *, create: bool, folder: Path | None) -> Link:
    """The writing connection, with the schema up to date."""
    link = open_link(address, writing=True)
    try:
        if create and schema_of(link) is None:
            refuse_lost_at(address.shown, folder)
        migrate(link, address, create=create)
    except BaseException:
        link.close()
        raise
    return link
