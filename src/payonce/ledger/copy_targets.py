"""Empty stores that a copied ledger goes into: built beside their name and given it when everything is in them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from payonce.core.errors import LedgerError, UsageError
from payonce.ledger import sqlite_open
from payonce.ledger.connect import is_jsonl, path_of
from payonce.ledger.copying import Fill
from payonce.ledger.filesystem import refuse_network
from payonce.ledger.jsonl_file import JsonlFile, write_new
from payonce.ledger.jsonl_tables import JsonlTables
from payonce.ledger.place import refuse_lost
from payonce.ledger.postgres_address import is_postgres
from payonce.ledger.sqlite_errors import faults
from payonce.ledger.sqlite_tables import SqliteTables

# Looks at a filled store, by its address, before it gets its name; raises where something is wrong with it.
Look = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a copy is a copy of: the ledger's identity, where it was, and when the copy is made."""

    ledger: str
    home: str
    made: str


def refuse_taken(url: str) -> None:
    """Raises UsageError ``target_exists`` where something is at the address already, or was."""
    if is_postgres(url):
        return
    path = path_of(url)
    for name in (path.name, *(path.name + end for end in (".outputs", ".checkpoints", ".key", ".key.pub", "-wal"))):
        there = path.with_name(name)
        if there.exists() or there.is_symlink():
            raise taken(str(there))
    refuse_lost(path)


def taken(what: str) -> UsageError:
    """The error for a target that is not empty."""
    return UsageError(
        f"{what} exists already", code="target_exists", hint="a ledger is copied to a new place; name another"
    )


def build(url: str, origin: Origin, *, fill: Fill, look: Look) -> None:
    """Makes the store at ``url`` with what ``fill`` puts into it in one transaction. ``look`` sees it before it has its
    name. A failure or a crash leaves nothing under the name. Raises UsageError ``target_exists``."""
    refuse_taken(url)
    if is_postgres(url):
        from payonce.ledger.postgres_copy import build_postgres

        build_postgres(url, origin, fill=fill, look=look)
        return
    path = path_of(url)
    refuse_network(path.parent)
    scheme = "jsonl" if is_jsonl(url) else "sqlite"
    part = path.with_name(f"{path.name}.new-{uuid.uuid4().hex[:12]}")
    with faults(path):
        try:
            with (jsonl_part if scheme == "jsonl" else _sqlite_part)(part, origin) as tables:
                tables.begin()
                tables.save_meta("home", origin.home)
                fill(tables)
                tables.commit()
            look(f"{scheme}:{part}")
            sqlite_open.give_name(part, path)
            if part.exists() and not part.samefile(path):
                raise taken(str(path))
            sqlite_open.sync(path.parent)
        finally:
            for file in path.parent.glob(part.name + "*"):
                file.unlink(missing_ok=True)


@contextmanager
def jsonl_part(part: Path, origin: Origin) -> Iterator[JsonlTables]:
    """An empty ledger of JSON lines."""
    write_new(part, origin.ledger, origin.made)
    file = JsonlFile(part, write=True)
    try:
        tables = JsonlTables(file)
        tables.catch_up()
        yield tables
    finally:
        file.close()


@contextmanager
def _sqlite_part(part: Path, origin: Origin) -> Iterator[SqliteTables]:
    """An empty ledger in SQLite; what is in its journal is folded into the file at the end."""
    sqlite_open.create(part, ledger=origin.ledger)
    connection = sqlite_open.open_writer(part)
    try:
        yield SqliteTables(connection, guard=lambda: None, after=lambda _: None)
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise LedgerError(f"{part} is in use", code="ledger_locked", hint="see which program has it open")
    finally:
        connection.close()
