"""The schema of a SQLite ledger, built and brought up to date by numbered scripts, each one transaction.

``sql/sqlite/migrations/NNNN_name.sql`` are applied in order; ``user_version`` is the number of the last one. A newer
schema than this program knows is refused, never guessed at. A crash half-way leaves the schema as it was.
"""

from __future__ import annotations

import sqlite3
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from payonce.core.errors import LedgerError

# "pay1": says in the file's header whose it is (`file payonce.db`, and the check at open).
APPLICATION_ID: Final = 0x70617931


@cache
def scripts() -> dict[int, str]:
    """All migration scripts by number, in order."""
    folder = files("payonce.ledger") / "sql" / "sqlite" / "migrations"
    found = {int(entry.name[:4]): entry.read_text("utf-8") for entry in folder.iterdir() if entry.name.endswith(".sql")}
    return dict(sorted(found.items()))


def newest() -> int:
    """The schema's number that this program writes."""
    return max(scripts())


def schema_of(connection: sqlite3.Connection) -> int:
    """The schema's number of an open database; 0 for one without any."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    """Raises LedgerError ``ledger_too_new`` where a later payonce has written the ledger."""
    found = schema_of(connection)
    if found > newest():
        raise LedgerError(
            f"ledger {path} has schema {found}, this payonce knows {newest()} at most",
            code="ledger_too_new",
            hint="use the payonce version that wrote it, or a later one",
        )


def refuse_older(connection: sqlite3.Connection, path: Path) -> None:
    """Raises LedgerError ``ledger_too_old`` where an earlier payonce has written the ledger: a reader brings nothing up
    to date, and would look for what is not there yet."""
    found = schema_of(connection)
    if found < newest():
        raise LedgerError(
            f"ledger {path} has schema {found}, this payonce reads {newest()}",
            code="ledger_too_old",
            hint="the first command that writes to it brings it up to date: payonce run, or payonce pause and resume",
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Applies what is missing, each script in a transaction of its own."""
    for number, script in scripts().items():
        if number <= schema_of(connection):
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been faster while this one waited for the lock.
            if number > schema_of(connection):
                execute_script(connection, script)
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def execute_script(connection: sqlite3.Connection, script: str) -> None:
    """Runs a script statement by statement inside the present transaction (``executescript`` would commit it)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    assert not statement.strip(), "a script ends with a complete statement"
