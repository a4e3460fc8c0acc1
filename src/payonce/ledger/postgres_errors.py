"""Every error that psycopg and the server can raise, as a LedgerError with a code and the next step for a person.

The server's own words are kept, without what it says of values (``DETAIL`` may quote a row), and never with a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from payonce.core.errors import LedgerConflict, LedgerError

_AGAIN: Final = "then run the same command again"
_REACH: Final = f"see that the server runs and can be reached, {_AGAIN}"

# SQLSTATE, whole or its class: code of ours, what it means, what to do.
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_CAUSES: Final[dict[str, tuple[str, str, str]]] = {
    "53100": ("disk_full", "the server's disk is full", f"make room there, {_AGAIN}"),
    "53300": ("ledger_unreachable", "the server takes no more connections", f"wait or raise max_connections, {_AGAIN}"),
    "53": ("ledger_io", "the server has run out of something", f"see its log, {_AGAIN}"),
    "58": ("ledger_io", "the server cannot read or write its files", f"see its log, {_AGAIN}"),
    "XX001": ("ledger_corrupt", "it is damaged", "stop; restore it from a backup and reconcile before going on"),
    "XX002": ("ledger_corrupt", "an index is damaged", "stop; see the server's log, REINDEX, then payonce doctor"),
    "25006": ("ledger_read_only", "the server only reads: it is a standby, or was set so", "name the primary server"),
    "28": ("ledger_denied", "the server does not let this user in", "check user, password (PGPASSWORD, ~/.pgpass)"),
    "42501": ("ledger_denied", "this user lacks a right", "grant it (docs/reference/ledger-postgres.md)"),
    "3D000": ("no_ledger", "there is no such database", "create it, or check the address"),
    "55P03": (
        "ledger_locked",
        "another transaction holds it for too long",
        f"see pg_stat_activity for who does, {_AGAIN}",
    ),
    "57014": ("ledger_locked", "a statement was cancelled", f"see who did, and statement_timeout, {_AGAIN}"),
    "25P03": ("ledger_unreachable", "this process stood still in the middle of a transaction", _AGAIN[5:]),
    "57": ("ledger_unreachable", "the server ended the connection", _REACH),
    "08": ("ledger_unreachable", "there is no connection to the server", _REACH),
}


# Where the server's own sources touch its files: a file system that became read-only is reported as a missing right, too.
# (errcode_for_file_access in src/backend/utils/error/elog.c; the words depend on the server's language, the place does not.)
_STORAGE: Final = frozenset({"md.c", "fd.c", "smgr.c", "xlog.c", "slru.c", "storage.c", "relmapper.c", "copydir.c"})

# Deadlock, serialization failure: always rolled back, also where COMMIT reports it.
_CONFLICTS: Final = ("40P01", "40001")


def translate(error: psycopg.Error, place: str) -> LedgerError:
    """The LedgerError for an error of psycopg; ``place`` is the ledger's address as it may be shown."""
    state = error.sqlstate or ""
    said = _words(error)
    if state in _CONFLICTS:
        return LedgerConflict(
            f"ledger {place}: the server took the transaction back for another one ({said})",
            code="ledger_conflict",
            hint="find out what else writes to its tables; then run the same command again",
        )
    if state == "42501" and error.diag.source_file in _STORAGE:
        state = "58"
    found = _CAUSES.get(state) or _CAUSES.get(state[:2])
    if found is None and not state and isinstance(error, psycopg.OperationalError):
        found = _CAUSES[_turned_away(str(error))]
    if found is None:
        return LedgerError(
            f"ledger {place}: {said or type(error).__name__}",
            code="ledger_error",
            hint="nothing of it was written; see the cause",
        )
    code, what, hint = found
    return LedgerError(f"ledger {place}: {what} ({said})" if said else f"ledger {place}: {what}", code=code, hint=hint)


# A server that turns a connection away says so in words alone: the driver has no SQLSTATE for them.
_TURNED_AWAY: Final = (
    (re.compile(r'database ".*" does not exist'), "3D000"),
    (re.compile(r'authentication failed|no password supplied|role ".*" does not exist|no pg_hba.conf entry'), "28"),
    (re.compile(r"too many (clients|connections)|remaining connection slots"), "53300"),
)


def _turned_away(said: str) -> str:
    """The SQLSTATE that belongs to what was said to a new connection; that of a lost one where it is not known."""
    return next((state for words, state in _TURNED_AWAY if words.search(said)), "08")


def _words(error: psycopg.Error) -> str:
    """The server's message, or the first line of the driver's."""
    said = error.diag.message_primary or str(error).partition("\n")[0]
    return said.strip().rstrip(".")


@contextmanager
def faults(place: str) -> Iterator[None]:
    """Turns what psycopg raises inside into LedgerErrors."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, place) from error
