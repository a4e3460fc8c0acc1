"""A ledger in one SQLite file: many processes of one host, one fsync for each transaction.

A writing connection and a reading one, so that a status never waits for a write. See sqlite_open.py for what is refused
and set at open, place.py for how a restored or copied ledger is noticed.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from payonce.core.errors import LedgerError
from payonce.core.events import leaf_hash
from payonce.core.model import Actor, Batch, BatchSpec, NewItem, PlainItems
from payonce.core.overlap import Clearance
from payonce.ledger.actors import is_alive as process_is_alive
from payonce.ledger.actors import this_actor, wall_clock
from payonce.ledger.log import Log
from payonce.ledger.place import (
    MOVED_TO,
    Marker,
    refuse_claimed,
    refuse_copied,
    refuse_moved_away,
    refuse_rolled_back,
    state_folder,
)
from payonce.ledger.rows import signature
from payonce.ledger.sqlite_errors import faults
from payonce.ledger.sqlite_open import FileGuard, open_reader, open_writer
from payonce.ledger.sqlite_reads import SqliteReads
from payonce.ledger.sqlite_tables import SqliteTables
from payonce.ledger.store import Clock, IsAlive
from payonce.ledger.store_reads import StoreLedger

_logger = logging.getLogger("payonce.ledger")


class SqliteLedger(StoreLedger):
    """An existing ledger in a SQLite file. ``sqlite_open.create`` makes a new file.

    Raises LedgerError or LedgerPlaceError where it may not be written; ``read_only`` opens any ledger for reading.
    ``accept`` (who, why) takes it as it is, where it is, and records that.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock = wall_clock,
        is_alive: IsAlive = process_is_alive,
        read_only: bool = False,
        marks: Path | None = None,
        accept: tuple[Actor, str] | None = None,
    ) -> None:
        self._path = path
        self._reader = open_reader(path) if read_only else None
        self._writer = None if read_only else open_writer(path)
        if self._reader is None:
            self._reader = open_reader(path)
        reads = SqliteReads(self._reader, path=path)
        ledger = reads.meta().get("id")
        if ledger is None:
            self._close_connections()
            raise LedgerError(
                f"ledger {path} is damaged: it does not say which ledger it is",
                code="ledger_corrupt",
                hint="keep the file as it is, restore the ledger from a backup and reconcile before going on",
            )
        self._marker = Marker(path, ledger, folder=marks or state_folder())
        writer = self._writer or self._reader
        self._sqlite = SqliteTables(writer, guard=FileGuard(path), after=self._marker.durable)
        super().__init__(self._sqlite, reads, clock=clock, is_alive=is_alive)
        self._sqlite_reads = reads
        if not read_only:
            try:
                self._take_place(accept)
            except BaseException:
                self._close_connections()
                raise

    @contextmanager
    def _outermost(self) -> Iterator[Log]:
        if self._writer is None:
            raise LedgerError(
                f"ledger {self._path} is open for reading only", code="ledger_read_only", hint="open it for writing"
            )
        with faults(self._path), super()._outermost() as log:
            yield log

    def seal(
        self,
        spec: BatchSpec,
        items: Iterable[NewItem] | PlainItems,
        *,
        seal: str,
        actor: Actor,
        clearance: Clearance | None = None,
    ) -> Batch:
        """See ledger.protocol. The journal of a large batch is folded into the file at once, so that no later open
        has to recover it."""
        batch = super().seal(spec, items, seal=seal, actor=actor, clearance=clearance)
        with suppress(sqlite3.Error):
            self._sqlite.checkpoint()
        return batch

    @contextmanager
    def _erasing(self) -> Iterator[None]:
        """What is erased is overwritten in the file, and so is what was there before and went; the journal that still holds
        it is folded in and cut."""
        with faults(self._path):
            self._sqlite.overwrite_deleted(on=True)
            try:
                yield
                self._sqlite.overwrite_free()
                if not self._sqlite.checkpoint():
                    _logger.warning(
                        "ledger %s: somebody reads it, so its journal still holds what was erased", self._path
                    )
            finally:
                self._sqlite.overwrite_deleted(on=False)

    def close(self) -> None:
        """See ledger.protocol."""
        if self._writer is not None:
            self._marker.write()
        with faults(self._path):
            self._close_connections()

    def _close_connections(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()

    def _take_place(self, accept: tuple[Actor, str] | None) -> None:
        """Refuses a ledger that is not what or where it was; records its birth, a move, or a person's acceptance."""
        reads, path = self._sqlite_reads, self._path
        self._trust_head()
        meta, size = reads.meta(), reads.head().size
        moved = False
        if accept is None:
            refuse_moved_away(path, meta.get(MOVED_TO))
            refuse_rolled_back(path, self._marker.marks(), body=reads.body)
            moved = refuse_copied(path, meta.get("home"), ledger=meta["id"])
            refuse_claimed(path, reads.present_workers(), now_us=self._clock())
        if size and accept is None and not moved:
            return
        with self._transaction() as log:
            if log.head.size == 0:
                body = {"type": "ledger_created", "ledger": meta["id"], "actor": signature(this_actor())}
            elif accept is not None:
                actor, reason = accept
                body = {"type": "ledger_accepted", "ledger": meta["id"], "actor": signature(actor), "reason": reason}
                self._sqlite.save_meta(MOVED_TO, "")
            else:
                body = {"type": "note", "code": "ledger_moved", "from": meta.get("home", ""), "to": str(path)}
            log.emit(body)
            self._sqlite.save_meta("home", str(path))

    def _trust_head(self) -> None:
        """The head and the last event agree; the full comparison is ``check``."""
        head, last = self._sqlite_reads.ends()
        size, leaf = (0, b"") if last is None else (last[0], leaf_hash(last[1]))
        if (size, leaf) != (head.size, head.last_leaf):
            raise LedgerError(
                f"ledger {self._path}: the trail ends at event {size}, its head says {head.size}",
                code="ledger_corrupt",
                hint="someone changed the trail; restore the ledger from a backup and reconcile before going on",
            )
