"""Every error SQLite can raise, as a LedgerError with a code and the next step for a person."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from payonce.core.errors import LedgerError

_FREE_AT_LEAST: Final = 1 << 20
_RESTORE: Final = "keep the files as they are, then restore the ledger from a backup and reconcile before going on"

# SQLite's primary result codes: code of ours, what it means, what to do.
_CAUSES: Final[dict[int, tuple[str, str, str]]] = {
    sqlite3.SQLITE_FULL: ("disk_full", "the disk is full", "make room, then run the same command again"),
    sqlite3.SQLITE_IOERR: ("ledger_io", "reading or writing failed", "check the disk, then run the same command again"),
    sqlite3.SQLITE_CANTOPEN: ("ledger_io", "it cannot be opened", "check the folder and its permissions"),
    sqlite3.SQLITE_PERM: ("ledger_io", "access is denied", "check the file's permissions"),
    sqlite3.SQLITE_AUTH: ("ledger_io", "access is denied", "check the file's permissions"),
    sqlite3.SQLITE_READONLY: ("ledger_read_only", "it is read-only", "make the file and its folder writable"),
    sqlite3.SQLITE_BUSY: (
        "ledger_locked",
        "another process holds it for too long",
        "see which program has it open, or whether a very large batch is being sealed; then run the same command again",
    ),
    sqlite3.SQLITE_LOCKED: ("ledger_locked", "it is locked", "run the same command again"),
    sqlite3.SQLITE_CORRUPT: ("ledger_corrupt", "it is damaged", _RESTORE),
    sqlite3.SQLITE_NOTADB: ("ledger_corrupt", "it is damaged", _RESTORE),
    sqlite3.SQLITE_NOMEM: ("ledger_io", "there is no memory left", "free memory, then run the same command again"),
    sqlite3.SQLITE_NOLFS: ("ledger_io", "it is too large for this file system", "move it to another file system"),
}


def translate(error: sqlite3.Error, path: Path) -> LedgerError:
    """The LedgerError for an error of SQLite; ``path`` is the database's file."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if primary == sqlite3.SQLITE_IOERR and _is_full(path):
        primary = sqlite3.SQLITE_FULL
    if primary in _CAUSES:
        code, what, hint = _CAUSES[primary]
        return LedgerError(f"ledger {path}: {what} ({error})", code=code, hint=hint)
    return LedgerError(f"ledger {path}: {error}", code="ledger_error", hint="nothing of it was written; see the cause")


def _is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _FREE_AT_LEAST
    except OSError:
        return False


@contextmanager
def faults(path: Path) -> Iterator[None]:
    """Turns what SQLite and the file system raise inside into LedgerErrors."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error
    except OSError as error:
        raise LedgerError(
            f"ledger {path}: {error.strerror or error}",
            code="disk_full" if error.errno == errno.ENOSPC else "ledger_io",
            hint="check the disk and the folder, then run the same command again",
        ) from error
