"""From a ledger's address to an open ledger. The one place that knows which stores there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from payonce.core.errors import LedgerError, UsageError
from payonce.core.model import Actor
from payonce.ledger import sqlite_open
from payonce.ledger.actors import is_alive as process_is_alive
from payonce.ledger.actors import wall_clock
from payonce.ledger.place import refuse_lost, state_folder
from payonce.ledger.postgres_address import is_postgres, parse
from payonce.ledger.trail_port import TrailReads

# The stores are loaded when they are asked for: most commands end within half a second, and a check of the trail, which has
# a process more, needs nothing of what writes.
if TYPE_CHECKING:
    from payonce.ledger.jsonl import JsonlLedger
    from payonce.ledger.postgres import PostgresLedger
    from payonce.ledger.sqlite import SqliteLedger
    from payonce.ledger.store import Clock, IsAlive
    from payonce.ledger.store_reads import StoreLedger

# Ledgers that are one file.
_FILES: Final = ("sqlite", "jsonl")


def connect(
    url: str,
    *,
    create: bool,
    clock: Clock = wall_clock,
    is_alive: IsAlive = process_is_alive,
    read_only: bool = False,
    marks: Path | None = None,
) -> StoreLedger:
    """Opens the ledger at ``url`` (``sqlite:PATH``, ``jsonl:PATH``), making a new one only where ``create`` is true and
    nothing is there.

    ``marks`` is where the ledger's head is recorded besides its own folder, the user's state folder by default.
    Raises UsageError for an address it does not understand, LedgerError where there is no ledger or it cannot be used,
    LedgerPlaceError where it is not what or where it was, or where its mark says that one was here and is lost. An
    existing file is never made new, even if it is empty.
    """
    if is_postgres(url):
        own_clock = None if clock is wall_clock else clock
        return _postgres()(url, create=create, clock=own_clock, is_alive=is_alive, read_only=read_only, marks=marks)
    path = path_of(url)
    if create and not read_only and not path.exists():
        refuse_lost(path)
        _create(url, path)
    return _store(url)(path, clock=clock, is_alive=is_alive, read_only=read_only, marks=marks)


def connect_trail(url: str) -> TrailReads:
    """The trail of an existing ledger, read-only, also of one that is refused for writing. Raises LedgerError."""
    if is_postgres(url):
        _postgres()
        from payonce.ledger.postgres_trail import PostgresTrail

        return PostgresTrail(url)
    if is_jsonl(url):
        from payonce.ledger.jsonl_trail import JsonlTrail

        return JsonlTrail(path_of(url))
    from payonce.ledger.sqlite_trail import SqliteTrail

    return SqliteTrail(path_of(url))


def accept_place(url: str, *, actor: Actor, reason: str, clock: Clock = wall_clock, marks: Path | None = None) -> None:
    """A person says that a restored or copied ledger may go on where it is: recorded as an event, with the reason."""
    if not reason.strip():
        raise UsageError("accepting a ledger needs a reason", code="no_reason", hint="say why: --reason TEXT")
    if is_postgres(url):
        own_clock = None if clock is wall_clock else clock
        _postgres()(url, clock=own_clock, marks=marks, accept=(actor, reason)).close()
        return
    _store(url)(path_of(url), clock=clock, marks=marks, accept=(actor, reason)).close()


def refuse_lost_server(url: str) -> None:
    """Raises LedgerPlaceError where a mark on this host says that a ledger was at an address of a server, and is lost."""
    _postgres()
    from payonce.ledger.postgres_place import refuse_lost_at

    refuse_lost_at(parse(url).shown, state_folder())


def _store(url: str) -> type[SqliteLedger] | type[JsonlLedger]:
    if is_jsonl(url):
        from payonce.ledger.jsonl import JsonlLedger

        return JsonlLedger
    from payonce.ledger.sqlite import SqliteLedger

    return SqliteLedger


def _create(url: str, path: Path) -> None:
    if is_jsonl(url):
        from payonce.ledger.jsonl import create

        create(path)
    else:
        sqlite_open.create(path)


def _postgres() -> type[PostgresLedger]:
    """The store for PostgreSQL, loaded when it is asked for. Raises UsageError where its driver is not installed."""
    try:
        from payonce.ledger.postgres import PostgresLedger
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise UsageError(
            "a ledger in PostgreSQL needs the psycopg package",
            code="missing_package",
            hint="in the project's folder: pip install '.[postgres]'",
        ) from error
    return PostgresLedger


def is_jsonl(url: str) -> bool:
    """Whether an address is that of a JSON Lines ledger."""
    return url.partition(":")[0] == "jsonl"


def path_of(url: str) -> Path:
    """The file of a ledger that is a file. Raises UsageError for any other address."""
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in _FILES:
        raise UsageError(
            f"{_shown(url)!r} is no ledger address this version understands",
            code="bad_ledger_url",
            hint="write sqlite:PATH, jsonl:PATH or postgresql://HOST/DATABASE, for example sqlite:payonce.db",
        )
    if not rest or rest == ":memory:" or "?" in rest:
        raise UsageError(
            f"{url!r} names no file", code="bad_ledger_url", hint="write sqlite:PATH, for example sqlite:payonce.db"
        )
    path = Path(rest).expanduser()
    if not path.parent.is_dir():
        raise LedgerError(
            f"the folder {path.parent} of ledger {path} does not exist",
            code="no_ledger_folder",
            hint="make the folder, or check the path",
        )
    # SQLite follows links to the file itself and keeps its journal beside the target; so does everything here.
    return path.resolve()


def _shown(url: str) -> str:
    """An address without a password that may be in it."""
    scheme, sep, rest = url.partition("://")
    return f"{scheme}{sep}{rest.rpartition('@')[2]}"
