"""A PostgreSQL ledger knows its place (SPEC invariant 12): how far its trail had come, and which database holds it.

Each host that works on a ledger keeps its mark in the user's state folder. A server that was restored from a backup, or
a standby that took over without the last transactions, does not reach it: then nothing is sent until a person accepts.
Which server and database hold the ledger is kept in the ledger itself; a dump that was loaded elsewhere says another one.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import orjson
import psycopg

from payonce.core.errors import LedgerError, LedgerPlaceError
from payonce.ledger.merkle import Head
from payonce.ledger.place import Mark, Marker
from payonce.ledger.postgres_link import Link

HOME = "home"


class ServerMarker(Marker):
    """The marks of one open ledger on a server; ``shown`` is its address without user and password."""

    def __init__(self, shown: str, ledger: str, *, folder: Path | None) -> None:
        super().__init__(Path(), ledger, folder=folder)
        self._shown = shown

    @property
    def places(self) -> list[Path]:
        """In the user's state folder."""
        return [] if self._folder is None else [self._folder / f"{self._ledger}.json"]

    def _mark(self, head: Head) -> Mark | None:
        leaf, host = head.last_leaf.hex(), socket.gethostname()
        return Mark(self._ledger, head.size, leaf, head.last_us, self._shown, 0, host)


def refuse_lost_at(shown: str, folder: Path | None) -> None:
    """Raises LedgerPlaceError ``ledger_lost`` where no ledger is at an address, but a mark says that one was: a new one
    would pay all again."""
    for path, place in _addresses(folder):
        if place == shown:
            raise LedgerPlaceError(
                f"there is no ledger at {shown}, but {path} says that one was there: it was lost or moved",
                code="ledger_lost",
                hint=f"put the ledger back; to begin a new one, which knows of nothing that was paid, remove {path}",
            )


def _addresses(folder: Path | None) -> Iterable[tuple[Path, str]]:
    for path in sorted(folder.glob("*.json")) if folder is not None and folder.is_dir() else ():
        with suppress(OSError, ValueError, KeyError, TypeError):
            yield path, str(orjson.loads(path.read_bytes())["path"])


def home_of(link: Link) -> str | None:
    """Which server and database these are, as the server itself knows them; None where it does not tell."""
    sql = (
        "SELECT system_identifier || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())"
        " FROM pg_control_system()"
    )
    try:
        return str(link.ask(sql)[0][0])
    except LedgerError as fault:
        if isinstance(fault.__cause__, psycopg.errors.InsufficientPrivilege | psycopg.errors.UndefinedFunction):
            return None  # some hosted servers keep it to themselves
        raise


def refuse_moved(shown: str, home: str | None, here: str | None) -> None:
    """Raises LedgerPlaceError ``ledger_copied`` where the ledger was written in another database than the one it is in:
    from here nobody can tell whether that one still works."""
    if not home or here is None or home == here:
        return
    raise LedgerPlaceError(
        f"ledger {shown} was loaded from a dump of another database, where it may still be in use",
        code="ledger_copied",
        hint="if this one is to take over, make sure that nothing uses the other, reconcile the batches, then accept the ledger where it is",
    )
