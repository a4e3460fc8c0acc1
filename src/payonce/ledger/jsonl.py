"""A ledger in one JSON Lines file: one process, everything in memory, one fsync for each transaction.

The file is only ever appended to: a group of lines a transaction (jsonl_frames.py). It is read from its start at open,
so opening takes time and memory with its size. While one process has it for writing no other can; reading is always
possible. Erasing personal data is the one thing that writes the file anew.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from payonce.core.errors import LedgerError
from payonce.core.events import iso
from payonce.core.model import Actor
from payonce.ledger.actors import is_alive as process_is_alive
from payonce.ledger.actors import this_actor, wall_clock
from payonce.ledger.copying import Source, copy_ledger
from payonce.ledger.filesystem import refuse_network
from payonce.ledger.jsonl_file import LOCK_TIMEOUT_S, JsonlFile, sync_folder, write_new
from payonce.ledger.jsonl_reads import JsonlReads
from payonce.ledger.jsonl_tables import JsonlTables
from payonce.ledger.jsonl_trail import JsonlTrail
from payonce.ledger.log import Log
from payonce.ledger.merkle import Head
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
from payonce.ledger.sqlite_open import give_name, no_ledger, refuse_read_only
from payonce.ledger.store import Clock, IsAlive
from payonce.ledger.store_reads import StoreLedger

log = logging.getLogger("payonce.ledger")


def create(path: Path, *, clock: Clock = wall_clock) -> None:
    """Makes a new ledger: whole, synced and under its name, or not at all; where one came up meanwhile, that one stays."""
    refuse_network(path.parent)
    part = path.with_name(f"{path.name}.new-{uuid.uuid4().hex[:12]}")
    with faults(path):
        try:
            write_new(part, uuid.uuid4().hex, iso(clock()))
            give_name(part, path)
            sync_folder(path.parent)
        finally:
            part.unlink(missing_ok=True)


class JsonlLedger(StoreLedger):
    """An existing ledger in a file of JSON lines. ``create`` makes a new file.

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
        lock_timeout_s: float = LOCK_TIMEOUT_S,
    ) -> None:
        if not path.is_file():
            raise no_ledger(path)
        if not read_only:
            refuse_network(path)
            refuse_read_only(path)
        self._path = path
        self._read_only = read_only
        self.closed = False
        self._lock = threading.RLock()
        self._file = JsonlFile(path, write=not read_only, lock_timeout_s=lock_timeout_s)
        try:
            self._load()
            folder = marks or state_folder()
            self._marker = Marker(path, self._rows.meta()["id"], folder=folder)
            super().__init__(self._rows, JsonlReads(self._fresh, lock=self._lock), clock=clock, is_alive=is_alive)
            if not read_only:
                self._take_place(accept)
        except BaseException:
            self._file.close()
            raise

    def _load(self) -> None:
        self._rows = JsonlTables(self._file, after=None if self._read_only else self._durable)
        self._rows.catch_up()
        self._rows.trust_head()

    def _durable(self, head: Head) -> None:
        self._marker.durable(head)

    def _fresh(self) -> JsonlTables:
        """The rows as they are now: a reader takes in what the writer has appended, or the file that took its place."""
        if self._read_only:
            if self._file.replaced() and self._path.is_file():
                self._file.close()
                self._file = JsonlFile(self._path, write=False)
                self._load()
            elif self._file.grown():
                self._rows.catch_up()
        return self._rows

    @contextmanager
    def _outermost(self) -> Iterator[Log]:
        if self._read_only:
            raise LedgerError(
                f"ledger {self._path} is open for reading only", code="ledger_read_only", hint="open it for writing"
            )
        with self._lock, faults(self._path), super()._outermost() as opened:
            yield opened

    @contextmanager
    def _erasing(self) -> Iterator[None]:
        """What is erased is still in earlier lines: the file is written anew without it, and takes the old one's place."""
        yield
        with faults(self._path), self._lock:
            self._rewrite()

    def _rewrite(self) -> None:
        meta, trail = self._rows.meta(), JsonlTrail(self._path)
        part = self._path.with_name(f"{self._path.name}.new-{uuid.uuid4().hex[:12]}")
        write_new(part, meta["id"], iso(self._clock()))
        file = JsonlFile(part, write=True)
        try:
            rows = JsonlTables(file, after=self._durable)
            rows.catch_up()
            rows.begin()
            for name, value in meta.items():
                rows.save_meta(name, value)
            copy_ledger(Source(self._rows, self._rows, trail), rows)
            rows.commit()
            part.replace(self._path)
            sync_folder(self._path.parent)
        except BaseException:
            file.close()
            part.unlink(missing_ok=True)
            raise
        finally:
            trail.close()
        self._file.close()
        file.path = rows.path = self._path
        self._file, self._rows, self._tables, self._desks = file, rows, rows, {}

    def close(self) -> None:
        """See ledger.protocol."""
        if not self._read_only:
            self._marker.write()
        self.closed = True
        self._file.close()

    def _take_place(self, accept: tuple[Actor, str] | None) -> None:
        """Refuses a ledger that is not what or where it was; cuts a torn end off; records birth, move, acceptance."""
        rows, path = self._rows, self._path
        meta, moved = dict(rows.meta()), False
        if accept is None:
            refuse_moved_away(path, meta.get(MOVED_TO))
            refuse_rolled_back(path, self._marker.marks(), body=rows.trail.body)
            moved = refuse_copied(path, meta.get("home"), ledger=meta["id"])
            refuse_claimed(path, rows.present_workers(), now_us=self._clock())
        torn = self._file.mend()
        if torn is not None:
            log.warning("ledger %s: a torn end of %d bytes was cut off and kept in %s", path, *torn)
        if rows.head().size and accept is None and not moved and torn is None:
            return
        with self._transaction() as opened:
            born = opened.head.size == 0
            if torn is not None:
                opened.emit({"type": "note", "code": "torn_end_cut", "bytes": torn[0], "kept": torn[1].name})
            if born:
                opened.emit({"type": "ledger_created", "ledger": meta["id"], "actor": signature(this_actor())})
            elif accept is not None:
                body = {"type": "ledger_accepted", "ledger": meta["id"], "actor": signature(accept[0])}
                opened.emit({**body, "reason": accept[1]})
                rows.save_meta(MOVED_TO, "")
            elif moved:
                opened.emit({"type": "note", "code": "ledger_moved", "from": meta.get("home", ""), "to": str(path)})
            rows.save_meta("home", str(path))
