"""The schema: built by the scripts, in one way only, and never half."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from payonce.core.errors import LedgerError
from payonce.ledger import migrate
from payonce.ledger.connect import connect
from payonce.ledger.queries import queries
from payonce.ledger.sqlite_rows import SETTLEMENTS, STATES


def _schema(database: sqlite3.Connection) -> list[tuple[str, ...]]:
    return database.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2").fetchall()


def test_scripts_are_numbered_without_a_gap() -> None:
    """So that a schema's number says everything about it."""
    assert list(migrate.scripts()) == list(range(1, migrate.newest() + 1))


def test_migrating_twice_changes_nothing() -> None:
    """What is applied is not applied again."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    migrate.migrate(database)
    before = _schema(database)
    migrate.migrate(database)
    assert _schema(database) == before
    assert migrate.schema_of(database) == migrate.newest()


def test_step_by_step_is_the_same_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that was brought up to date has the schema of a new one."""
    at_once = sqlite3.connect(":memory:", isolation_level=None)
    migrate.migrate(at_once)
    scripts = migrate.scripts()
    step_by_step = sqlite3.connect(":memory:", isolation_level=None)
    for number in scripts:
        monkeypatch.setattr(migrate, "scripts", lambda n=number: {k: v for k, v in scripts.items() if k <= n})
        migrate.migrate(step_by_step)
    assert _schema(step_by_step) == _schema(at_once)


def test_a_script_that_breaks_leaves_the_schema_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one transaction."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    migrate.migrate(database)
    before = (_schema(database), migrate.schema_of(database))
    broken = {**migrate.scripts(), migrate.newest() + 1: "CREATE TABLE half (x);\nCREATE TABLE half (x);\n"}
    monkeypatch.setattr(migrate, "scripts", lambda: broken)
    with pytest.raises(sqlite3.OperationalError):
        migrate.migrate(database)
    assert (_schema(database), migrate.schema_of(database)) == before


def test_the_codes_in_the_database_are_those_of_the_program() -> None:
    """States and settlements are spelled and numbered the same in SQL and in Python."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    migrate.migrate(database)
    for table, values in (("states", STATES), ("settlements", SETTLEMENTS)):
        found = database.execute(f"SELECT code, name FROM {table} ORDER BY code").fetchall()
        assert found == [(code, value.value) for code, value in enumerate(values)]


@pytest.mark.parametrize("name", ["read", "write", "trail"])
def test_every_statement_fits_the_schema(name: str) -> None:
    """A typing error in a rarely used statement is found here, not in the night."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    migrate.migrate(database)
    database.execute(queries("sqlite", "write")["index_references"])
    for block, statement in queries("sqlite", name).items():
        assert _error_of(database, f"EXPLAIN {statement}") in ("", "bindings"), block


def _error_of(database: sqlite3.Connection, statement: str) -> str:
    """What is wrong with a statement; a wrong number of parameters only shows after it was compiled."""
    try:
        database.execute(statement, [None] * 40)
    except sqlite3.ProgrammingError as error:
        return "bindings" if "number of bindings" in str(error) else str(error)
    except sqlite3.Error as error:
        return str(error)
    return ""


def test_a_reader_of_an_earlier_schema_is_told_how_to_go_on(tmp_path: Path) -> None:
    """Nothing is looked for that is not there yet; the first writer brings the ledger up to date, then it is read."""
    url = f"sqlite:{tmp_path}/payonce.db"
    connect(url, create=True, marks=tmp_path).close()
    database = sqlite3.connect(tmp_path / "payonce.db")
    database.execute("DROP VIEW trail")
    database.execute("DROP TABLE item_ids")
    database.execute("CREATE INDEX items_by_id ON items (id)")
    database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(LedgerError) as refused:
        connect(url, create=False, read_only=True, marks=tmp_path)
    assert refused.value.code == "ledger_too_old" and "payonce run" in refused.value.hint
    connect(url, create=False, marks=tmp_path).close()
    connect(url, create=False, read_only=True, marks=tmp_path).close()
