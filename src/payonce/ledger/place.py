"""A ledger knows its place (SPEC invariant 12): how far its trail had come, and where it lives, kept outside of it.

The head (ledger, size, last leaf, path, inode, host) is written to ``LEDGER.head`` beside the ledger and to the user's
state folder, after a commit and never ahead of it. A ledger whose trail does not reach what was recorded was restored
from an older copy; one whose recorded home is another living file is a copy. Both send nothing until a person accepts
them. A move (the old path is gone) is only noted.
"""

from __future__ import annotations

import logging
import os
import socket
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from payonce.core.errors import LedgerPlaceError
from payonce.core.events import iso, leaf_hash
from payonce.ledger.actors import is_elsewhere
from payonce.ledger.merkle import Head
from payonce.ledger.rows import WorkerRow

log = logging.getLogger("payonce.ledger")
# Where a ledger's own facts say that its batches went to another store.
MOVED_TO: Final = "moved_to"
_EVERY_NS: Final = 1_000_000_000
_ACCEPT: Final = "reconcile the batches, then accept the ledger where it is"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a ledger had durably come, and where it was."""

    ledger: str
    size: int
    leaf: str
    at_us: int
    path: str
    inode: int
    host: str


def state_folder() -> Path | None:
    """Where marks are kept for this user: ``$XDG_STATE_HOME/payonce/ledgers``, by default under ~/.local/state."""
    base = os.environ.get("XDG_STATE_HOME")
    if base:
        return Path(base) / "payonce" / "ledgers"
    with suppress(RuntimeError):
        return Path.home() / ".local" / "state" / "payonce" / "ledgers"
    return None


class Marker:
    """Writes the marks of one open ledger: at most once a second, and at its close. Failing is a warning, never an error."""

    def __init__(self, path: Path, ledger: str, *, folder: Path | None) -> None:
        self._path = path
        self._ledger = ledger
        self._folder = folder
        self._last_ns = 0
        self._written = -1
        self._head: Head | None = None
        self._warned: set[Path] = set()

    @property
    def places(self) -> list[Path]:
        """Beside the ledger, and in the user's state folder."""
        beside = self._path.with_name(self._path.name + ".head")
        return [beside] if self._folder is None else [beside, self._folder / f"{self._ledger}.json"]

    def durable(self, head: Head) -> None:
        """A commit up to this head is durable."""
        # The store goes on counting in its own head, also in a transaction that then fails.
        self._head = Head(head.size, [], head.last_leaf, head.last_us)
        now_ns = time.monotonic_ns()
        if now_ns - self._last_ns >= _EVERY_NS or not self._last_ns:
            self._last_ns = now_ns
            self.write()

    def write(self) -> None:
        """Writes the last durable head, if it was not written yet."""
        head = self._head
        if head is None or head.size == self._written:
            return
        mark = self._mark(head)
        if mark is None:
            return
        for place in self.places:
            self._put(place, orjson.dumps(asdict(mark)))
        self._written = head.size

    def _mark(self, head: Head) -> Mark | None:
        """The mark of a head; None where the ledger is not there to be marked."""
        try:
            inode = self._path.stat().st_ino
        except OSError:
            return None
        leaf, host = head.last_leaf.hex(), socket.gethostname()
        return Mark(self._ledger, head.size, leaf, head.last_us, str(self._path), inode, host)

    def _put(self, place: Path, data: bytes) -> None:
        part = place.with_name(f"{place.name}.{os.getpid()}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(data)
            part.replace(place)  # whole or not at all
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            if place not in self._warned:
                self._warned.add(place)
                log.warning("the ledger's mark cannot be written to %s: %s", place, error)

    def marks(self) -> list[Mark]:
        """The marks of this ledger that can be read."""
        found: list[Mark] = []
        for place in self.places:
            with suppress(OSError, ValueError, TypeError):
                mark = Mark(**orjson.loads(place.read_bytes()))
                if mark.ledger == self._ledger:  # another ledger may have had this path before
                    found.append(mark)
        return found


def refuse_lost(path: Path) -> None:
    """Raises LedgerPlaceError ``ledger_lost`` where no ledger is, but its mark is: a new one would pay all again."""
    mark = next(iter((*path.parent.glob(path.name + ".head"), *path.parent.glob("*.spool"))), None)
    if mark is not None:
        raise LedgerPlaceError(
            f"there is no ledger at {path}, but {mark.name} is still there: a ledger was lost or moved",
            code="ledger_lost",
            hint=f"put the ledger back; to begin a new one, which knows of nothing that was paid, remove {mark}",
        )


def refuse_rolled_back(path: Path | str, marks: Iterable[Mark], *, body: Callable[[int], bytes | None]) -> None:
    """Raises LedgerPlaceError ``ledger_rolled_back`` where the trail does not hold what was durable before.

    ``body`` gives an event's bytes by its sequence number.
    """
    for mark in marks:
        there = body(mark.size)
        if there is None or leaf_hash(there).hex() != mark.leaf:
            raise LedgerPlaceError(
                f"ledger {path} is older than it was: its trail does not hold event {mark.size}, "
                f"which was durable at {iso(mark.at_us)}",
                code="ledger_rolled_back",
                hint=f"it was restored from an older copy; {_ACCEPT}",
            )


def refuse_moved_away(path: Path | str, moved_to: str | None) -> None:
    """Raises LedgerPlaceError ``ledger_moved_away`` where the batches were copied to another store, which goes on."""
    if moved_to:
        raise LedgerPlaceError(
            f"{f'ledger {path}' if path else 'this ledger'} was copied to {moved_to}, which goes on with its batches",
            code="ledger_moved_away",
            hint=f"use {moved_to}; where it does not exist, the copy was cut short: run the same payonce ledger copy again",
        )


def refuse_copied(path: Path, home: str | None, *, ledger: str) -> bool:
    """Whether the ledger has moved: its recorded home is gone. Raises LedgerPlaceError ``ledger_copied`` where that home
    is another living ledger of the same identity."""
    if home is None or home == str(path):
        return False
    there = Path(home)
    try:
        if there.samefile(path):
            return False
    except OSError:
        return True
    if _identity_of(there) == ledger:
        raise LedgerPlaceError(
            f"ledger {path} is a copy of {home}, which still exists",
            code="ledger_copied",
            hint=f"go on with {home}; or, if this one is to take over, remove the other, {_ACCEPT}",
        )
    return True


def refuse_claimed(path: Path, workers: Iterable[WorkerRow], *, now_us: int) -> None:
    """Raises LedgerPlaceError ``ledger_claimed_elsewhere`` where a worker of another machine still holds a lease.

    Containers of one machine have names of their own, but they share its boot."""
    for worker in workers:
        if worker.lease_until_us > now_us and is_elsewhere(worker.actor):
            raise LedgerPlaceError(
                f"ledger {path} is in use by process {worker.actor.pid} on host {worker.actor.host}",
                code="ledger_claimed_elsewhere",
                hint=f"stop it there; without it, the claim ends at {iso(worker.lease_until_us)}",
            )


def _identity_of(path: Path) -> str | None:
    """The identity of a ledger that is not opened; None where it is none, cannot be read, or has moved away."""
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=5)
        try:
            rows = connection.execute("SELECT name, value FROM meta").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        # Only a file that is no database may be opened beside SQLite: closing it would drop SQLite's locks.
        if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_NOTADB:
            return None
        from payonce.ledger.jsonl_tables import meta_of

        rows = list(meta_of(path).items())
    meta: dict[str, Any] = dict(rows)
    return None if meta.get(MOVED_TO) else meta.get("id")
