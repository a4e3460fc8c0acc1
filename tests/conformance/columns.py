"""Every column of every table of a store, changed one at a time, as somebody who can write to it would."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg
from psycopg import sql as q

from payonce.core.errors import LedgerError
from payonce.ledger.sqlite_trail import SqliteTrail
from payonce.trail.verify import verify

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table: its columns with their types, and which of them name a row. Columns that are computed are none."""

    columns: Mapping[str, str]
    key: Sequence[str]


class Shelf(Protocol):
    """A store in the hands of somebody who can write to it."""

    def tables(self) -> Mapping[str, Table]: ...

    def rows(self, table: str) -> list[Row]: ...

    def run(self, statement: str, values: Sequence[Any]) -> None:
        """A statement with a question mark for each value. Raises ValueError where the database refuses it."""
        ...

    def is_sound(self) -> bool:
        """Whether the check of the trail finds nothing."""
        ...


class SqliteShelf:
    """A file that nobody has open."""

    def __init__(self, path: Any) -> None:
        self._path = path
        self._db = sqlite3.connect(path, isolation_level=None)
        for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            self._db.execute(f"DROP TRIGGER {name}")

    def tables(self) -> dict[str, Table]:
        names = self._db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_stat%'"
        ).fetchall()
        found = {}
        for (name,) in names:
            info = self._db.execute(f"PRAGMA table_xinfo({name})").fetchall()
            columns = {column: kind for _, column, kind, _, _, _, hidden in info if not hidden}
            key = [column for _, column, _, _, _, pk, _ in info if pk] or list(columns)
            found[name] = Table(columns, key)
        return found

    def rows(self, table: str) -> list[Row]:
        cursor = self._db.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def run(self, statement: str, values: Sequence[Any]) -> None:
        try:
            self._db.execute(statement, values)
        except sqlite3.IntegrityError as refused:
            raise ValueError(statement) from refused

    def is_sound(self) -> bool:
        reads = SqliteTrail(self._path)
        try:
            return verify(reads).ok
        finally:
            reads.close()

    def close(self) -> None:
        self._db.close()


class PostgresShelf:
    """A schema, in the hands of a superuser."""

    def __init__(self, dsn: str, schema: str, url: str) -> None:
        self._url = url
        self._db = psycopg.connect(dsn, autocommit=True)
        self._db.execute(q.SQL("SET search_path = {}").format(q.Identifier(schema)))
        for table in self.tables():
            self._db.execute(q.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(q.Identifier(table)))

    def tables(self) -> dict[str, Table]:
        found: dict[str, Table] = {}
        columns = self._db.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns AS c "
            "JOIN information_schema.tables AS t USING (table_schema, table_name) "
            "WHERE table_schema = current_schema AND t.table_type = 'BASE TABLE' ORDER BY table_name, ordinal_position"
        ).fetchall()
        keys = self._db.execute(
            "SELECT k.table_name, k.column_name FROM information_schema.key_column_usage AS k "
            "JOIN information_schema.table_constraints AS c USING (constraint_schema, constraint_name) "
            "WHERE k.table_schema = current_schema AND constraint_type = 'PRIMARY KEY'"
        ).fetchall()
        for name in dict.fromkeys(table for table, _, _ in columns):
            mine = {column: kind.upper() for table, column, kind in columns if table == name}
            found[name] = Table(mine, [column for table, column in keys if table == name])
        return found

    def rows(self, table: str) -> list[Row]:
        cursor = self._db.execute(q.SQL("SELECT * FROM {}").format(q.Identifier(table)))
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def run(self, statement: str, values: Sequence[Any]) -> None:
        try:
            self._db.execute(statement.replace("?", "%s"), values)  # type: ignore[arg-type]
        except psycopg.IntegrityError as refused:
            raise ValueError(statement) from refused

    def is_sound(self) -> bool:
        from payonce.ledger.postgres_trail import PostgresTrail

        try:
            reads = PostgresTrail(self._url)
        except LedgerError:  # it is no ledger at all any more
            return False
        try:
            return verify(reads).ok
        finally:
            reads.close()

    def close(self) -> None:
        self._db.close()


@contextmanager
def changed(shelf: Shelf, table: str, row: Row, column: str, value: Any) -> Iterator[bool]:
    """One value of one row is another one inside; False where the database does not let it be. Taken back at the end."""
    key = shelf.tables()[table].key
    where = " AND ".join(f"{name} = ?" for name in key)
    statement = f"UPDATE {table} SET {column} = ? WHERE {where}"
    try:
        shelf.run(statement, [value, *(row[name] for name in key)])
    except ValueError:
        yield False
        return
    try:
        yield True
    finally:
        shelf.run(statement, [row[column], *(value if name == column else row[name] for name in key)])


@contextmanager
def removed(shelf: Shelf, table: str, row: Row) -> Iterator[None]:
    """One row is gone inside."""
    key = shelf.tables()[table].key
    where = " AND ".join(f"{name} = ?" for name in key)
    names = list(shelf.tables()[table].columns)
    shelf.run(f"DELETE FROM {table} WHERE {where}", [row[name] for name in key])
    try:
        yield
    finally:
        marks = ", ".join("?" for _ in names)
        shelf.run(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", [row[name] for name in names])


@contextmanager
def added(shelf: Shelf, table: str, row: Row) -> Iterator[bool]:
    """A row more inside, as this one but for its key; False where the database does not let it be."""
    key, columns = shelf.tables()[table].key, shelf.tables()[table].columns
    new = {name: row[name] for name in columns}
    rows = shelf.rows(table)
    last = key[-1]
    new[last] = f"{new[last]}x" if isinstance(new[last], str) else max(other[last] for other in rows) + 1
    marks = ", ".join("?" for _ in new)
    try:
        shelf.run(f"INSERT INTO {table} ({', '.join(new)}) VALUES ({marks})", list(new.values()))
    except ValueError:
        yield False
        return
    try:
        yield True
    finally:
        where = " AND ".join(f"{name} = ?" for name in key)
        shelf.run(f"DELETE FROM {table} WHERE {where}", [new[name] for name in key])


def other_values(value: Any, kind: str) -> Iterable[Any]:
    """What somebody could write in place of a value."""
    if value is None:
        yield {"TEXT": "x", "BLOB": b"x", "BYTEA": b"x"}.get(kind, 1)
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, bytes):
        yield bytes([value[0] ^ 1]) + value[1:] if value else b"x"
    elif value.endswith("}"):
        yield '{"x":1}' if value != '{"x":1}' else "{}"
    else:
        yield f"{value}x"
    if value is not None:
        yield None
