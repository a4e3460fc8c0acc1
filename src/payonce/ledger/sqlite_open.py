"""Opening and creating a SQLite ledger: what is refused, what is set, and what is read back.

A ledger is only opened where it can keep its promises: a local file system, our own file, a schema we know, durability
switched on and confirmed. It is created whole or not at all: built beside its name, synced, then given the name.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from pathlib import Path
from typing import Final
from urllib.parse import quote

from payonce.core.errors import LedgerError
from payonce.ledger.filesystem import refuse_network
from payonce.ledger.migrate import APPLICATION_ID, migrate, refuse_newer, refuse_older
from payonce.ledger.place import refuse_lost
from payonce.ledger.sqlite_errors import faults

BUSY_TIMEOUT_S: Final = 60.0
_OLDEST: Final = (3, 37, 0)  # STRICT tables
# The whole file is read by quick_check. Up to this size that costs a fraction of a second; a larger ledger is resumed
# at once, guarded by the checks of its head and tallies, and looked at in full by ``check`` (`payonce doctor`).
_QUICK_CHECK_BELOW: Final = 32 << 20

# Set on the writing connection, in this order, and read back: name, value to set, value that must come back.
_WRITER: Final = (
    ("journal_mode", "WAL", "wal"),
    ("synchronous", "FULL", 2),  # an fsync for each commit: what was acknowledged survives a power cut
    ("foreign_keys", "OFF", 0),  # none are declared
    ("recursive_triggers", "ON", 1),  # REPLACE fires the triggers that keep events append-only
    ("trusted_schema", "OFF", 0),
    ("secure_delete", "FAST", 2),  # what goes from a page is overwritten in it; freed pages are by ``trail erase``
    # 8 MB: the blocks of a small journal are written again and again instead of newly allocated, and a recovery is short.
    ("wal_autocheckpoint", "2000", 2000),
    ("journal_size_limit", "134217728", 134217728),
    ("cache_size", "-65536", -65536),
    ("temp_store", "FILE", 1),  # sorting the ids of ten million items takes a file, not the memory
)
_READER: Final = (("query_only", "ON", 1), ("trusted_schema", "OFF", 0), ("cache_size", "-16384", -16384))


def open_writer(path: Path) -> sqlite3.Connection:
    """The writing connection of an existing ledger, schema up to date, settings confirmed. Raises LedgerError."""
    refuse_foreign(path)
    refuse_network(path)
    refuse_read_only(path)
    with faults(path):
        connection = _connect(path, "mode=rw")
        try:
            refuse_newer(connection, path)
            set_up(connection, path, _WRITER)
            migrate(connection)
            _quick_check(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def open_reader(path: Path, *, older: bool = False) -> sqlite3.Connection:
    """A connection that only reads, beside any writer; on a read-only medium too. Raises LedgerError.

    ``older``: a schema of an earlier payonce will do."""
    refuse_foreign(path)
    with faults(path):
        connection = _connect(path, "mode=ro")
        try:
            connection.execute("SELECT count(*) FROM meta").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            # WAL mode makes its index beside the file; where nobody can, nobody is writing, and the file is all.
            wal = path.with_name(path.name + "-wal")
            if os.access(path.parent, os.W_OK) or (wal.exists() and wal.stat().st_size):
                raise
            connection = _connect(path, "mode=ro&immutable=1")
        try:
            refuse_newer(connection, path)
            if not older:
                refuse_older(connection, path)
            set_up(connection, path, _READER)
        except BaseException:
            connection.close()
            raise
    return connection


def create(path: Path, *, ledger: str | None = None) -> None:
    """Makes a new ledger: whole, synced and under its name, or not at all; where one came up meanwhile, that one stays.

    ``ledger`` is its identity, a new one by default.

    A crash half-way leaves ``PATH.new-...``, never half a ledger.
    """
    refuse_network(path.parent)
    part = path.with_name(f"{path.name}.new-{uuid.uuid4().hex[:12]}")
    with faults(path):
        try:
            connection = sqlite3.connect(part, isolation_level=None)
            try:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                migrate(connection)
                connection.execute("INSERT INTO meta (name, value) VALUES ('id', ?)", (ledger or uuid.uuid4().hex,))
            finally:
                connection.close()
            sync(part)
            give_name(part, path)
            sync(path.parent)
        finally:
            part.unlink(missing_ok=True)


def give_name(part: Path, path: Path) -> None:
    """Gives a file that was built beside it its name, unless the name is taken: then what is there stays."""
    try:
        os.link(part, path)  # fails where the name is taken, unlike a rename
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        if not path.exists():
            part.rename(path)


def sync(path: Path) -> None:
    """Makes a file's or a folder's contents durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def refuse_foreign(path: Path) -> None:
    """Raises LedgerError where the file is missing, empty or not a payonce ledger; it is never replaced by a new one."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise LedgerError(
            f"this Python's SQLite is {sqlite3.sqlite_version}; payonce needs 3.37 or newer",
            code="sqlite_too_old",
            hint="use a newer Python",
        )
    with faults(path):
        if not path.is_file():
            raise no_ledger(path)
        size = path.stat().st_size
        # Never open the file itself: closing it would drop, with POSIX locks, those of every SQLite connection that
        # this process has on it, and another process would take the ledger for unused.
        other = size and not _is_ledger(path)
    if not size:
        raise LedgerError(
            f"{path} is an empty file, not a ledger",
            code="ledger_empty",
            hint="if a ledger was here it is lost: restore it from a backup; if not, remove the file",
        )
    if other:
        raise LedgerError(
            f"{path} is not a payonce ledger", code="ledger_foreign", hint="check the path; nothing was changed"
        )


def _is_ledger(path: Path) -> bool:
    """Whether SQLite knows the file as a database with payonce's application id."""
    connection = _connect(path, "mode=ro")
    try:
        return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            return False
        # A read-only medium cannot have the index of a WAL beside it.
        connection.close()
        connection = _connect(path, "mode=ro&immutable=1")
        return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)
    finally:
        connection.close()


def no_ledger(path: Path) -> LedgerError:
    """The error for a ledger that does not exist and must not be made: a lost one, where its mark is still there."""
    try:
        refuse_lost(path)
    except LedgerError as lost:
        return lost
    return LedgerError(
        f"there is no ledger at {path}", code="no_ledger", hint="check the path, or plan a batch to make a new one"
    )


def refuse_read_only(path: Path) -> None:
    """Raises LedgerError ``ledger_read_only`` where a ledger's file or folder cannot be written."""
    # SQLite would open a read-only file without a word, and its journal needs the folder.
    for place in (path, path.parent):
        if not os.access(place, os.W_OK):
            raise LedgerError(
                f"ledger {path}: {place} is read-only",
                code="ledger_read_only",
                hint="make the file and its folder writable",
            )


def _connect(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path))}?{options}",
        uri=True,
        isolation_level=None,
        timeout=BUSY_TIMEOUT_S,
        # The group writer makes the store in one thread and uses it in another, one at a time.
        check_same_thread=False,
        cached_statements=256,
    )


def set_up(connection: sqlite3.Connection, path: Path, wanted: tuple[tuple[str, str, object], ...]) -> None:
    """Makes settings and reads each back. Raises LedgerError ``ledger_setting`` where one did not take."""
    for name, value, expected in wanted:
        connection.execute(f"PRAGMA {name} = {value}").fetchall()
        found = connection.execute(f"PRAGMA {name}").fetchone()
        if found is None or found[0] != expected:
            raise LedgerError(
                f"ledger {path}: {name} is {found and found[0]} after setting it to {value}",
                code="ledger_setting",
                hint="the file system does not let SQLite work as it must; use a local disk",
            )


def _quick_check(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size > _QUICK_CHECK_BELOW:
        return
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise LedgerError(
            f"ledger {path} is damaged: {found}",
            code="ledger_corrupt",
            hint="keep the files as they are, then restore the ledger from a backup and reconcile before going on",
        )


class FileGuard:
    """Notices that the files under an open connection were replaced or removed: what is written then is lost.

    Costs two calls of stat before each commit.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._wal = f"{path}-wal"
        self._file = self._identity(self._path)
        self._journal: tuple[int, int] | None = None

    def __call__(self) -> None:
        """Raises LedgerError ``ledger_replaced``."""
        journal = self._identity(self._wal)
        if self._journal is None:
            self._journal = journal
        if self._identity(self._path) != self._file or journal != self._journal or journal is None:
            raise LedgerError(
                f"ledger {self._path} was replaced or removed while it was open",
                code="ledger_replaced",
                hint="find out what touched the file; then run the same command again",
            )

    @staticmethod
    def _identity(path: str) -> tuple[int, int] | None:
        try:
            found = os.stat(path)  # noqa: PTH116  # half the price of the same by pathlib, in every transaction
        except OSError:
            return None
        return found.st_dev, found.st_ino
