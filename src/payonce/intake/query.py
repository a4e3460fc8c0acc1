"""The result of a SQL query on PostgreSQL, SQLite or DuckDB, read once, in order, over a read-only connection.

The digest of the source is that of the rows as they came. Credentials come from the environment and never show.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol
from urllib.parse import quote, unquote

from payonce.intake.block import Block
from payonce.intake.jsonvalues import BadJson, decode_value
from payonce.intake.parquet import duck, first_line, refuse_floats
from payonce.intake.report import Fatal, Report
from payonce.intake.settings import InputSettings, Query
from payonce.intake.typedrows import ROWS, TypedRows

_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_ORDERED: Final = re.compile(r"\border\s+by\b", re.IGNORECASE)
_POSTGRES_FLOATS: Final = {700: "DOUBLE (float4)", 701: "DOUBLE (float8)"}


class Cursor(Protocol):
    """What the three databases have in common."""

    @property
    def description(self) -> Any:
        """The columns: a sequence of sequences that begin with the name and the type."""
        ...

    def fetchmany(self, size: int, /) -> list[Any]:
        """The next rows."""
        ...


class QueryRows:
    """One run of a query. A row's line is its number, from 1."""

    def __init__(self, query: Query, settings: InputSettings, *, report: Report, base_dir: Path) -> None:
        self._query = query
        self._settings = settings
        self._report = report
        self._base_dir = base_dir
        self._rows: TypedRows | None = None
        self._digest = hashlib.sha256()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the result."""
        return self._rows.columns if self._rows else ()

    @property
    def digest(self) -> str:
        """The SHA-256 of the rows read so far."""
        return self._digest.hexdigest()

    def blocks(self) -> Iterator[Block]:
        """All sound rows. Raises Fatal where the database cannot be read or its types do not fit."""
        if not _ORDERED.search(self._query.query):
            self._report.note("unordered_query", "the query has no ORDER BY; items are taken in the order they come")
        with self._connected() as cursor:
            described = [(str(column[0]), _type_name(column[1])) for column in cursor.description]
            self._rows = TypedRows([name for name, _ in described], self._settings, report=self._report, line=None)
            refuse_floats(described, self._settings, report=self._report)
            line = 1
            while batch := cursor.fetchmany(ROWS):
                self._digest.update(repr(batch).encode("utf-8", "surrogateescape"))
                block = self._rows.block(batch, range(line, line + len(batch)))
                line += len(batch)
                if block is not None:
                    yield block

    def _connected(self) -> AbstractContextManager[Cursor]:
        url = self._expanded(self._query.url)
        scheme, _, rest = url.partition(":")
        match scheme:
            case "sqlite":
                return self._sqlite(self._file(rest))
            case "duckdb":
                return self._duckdb(self._file(rest))
            case "postgresql" | "postgres":
                return self._postgres(url)
            case _:
                raise Fatal(
                    self._report.make(
                        "unknown_format", f"{scheme}: is not known; use a postgresql:, sqlite: or duckdb: address"
                    )
                )

    def _expanded(self, url: str) -> str:
        """The address with ``${NAME}`` replaced from the environment, percent-encoded where it belongs to a server's."""
        missing = [name for name in _VARIABLE.findall(url) if name not in os.environ]
        if missing:
            raise Fatal(self._report.make("missing_variable", f"the environment has no {missing[0]}; set it"))
        file = url.startswith(("sqlite:", "duckdb:"))
        return _VARIABLE.sub(lambda found: os.environ[found[1]] if file else quote(os.environ[found[1]], safe=""), url)

    def _file(self, rest: str) -> Path:
        name = unquote(rest.removeprefix("//").partition("?")[0]) if rest.startswith("//") else rest
        path = self._base_dir / name
        if not path.is_file():
            code, what = ("not_a_file", "is not a file") if path.exists() else ("input_missing", "does not exist")
            raise Fatal(self._report.make(code, f"the database {name} {what}; check the url of [batch] input"))
        return path

    @contextmanager
    def _sqlite(self, path: Path) -> Iterator[Cursor]:
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
                # Bytes that are no UTF-8 stay recognisable; their rows are refused.
                database.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
                cursor = database.execute(self._query.query)
                yield self._with_result(cursor)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._failed(error) from None

    @contextmanager
    def _duckdb(self, path: Path) -> Iterator[Cursor]:
        import duckdb

        try:
            with TemporaryDirectory(prefix="payonce-") as folder, duck(folder) as database:
                database.execute(f"ATTACH {_quoted(str(path.resolve()))} AS input (READ_ONLY)")
                database.execute("USE input")
                database.execute("SET enable_external_access = false")
                statements = database.extract_statements(self._query.query)
                if len(statements) != 1:
                    # DuckDB would run all of them and give the rows of the last one.
                    what = f"the query holds {len(statements)} statements; it must be one SELECT"
                    raise Fatal(self._report.make("unreadable", what))
                yield self._with_result(database.execute(statements[0]))
        except duckdb.Error as error:
            raise self._failed(error) from None

    @contextmanager
    def _postgres(self, url: str) -> Iterator[Cursor]:
        try:
            import psycopg
            from psycopg.types.json import set_json_loads
        except ImportError:
            raise Fatal(
                self._report.make(
                    "missing_library", "PostgreSQL needs a library; in the project's folder: pip install '.[postgres]'"
                )
            ) from None
        try:
            with psycopg.connect(url, connect_timeout=10) as database:
                set_json_loads(decode_value, database)
                database.read_only = True
                database.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                with database.cursor(name="payonce_input") as cursor:
                    cursor.itersize = ROWS
                    cursor.execute(self._query.query.encode("utf-8"))
                    yield cursor
        except (psycopg.Error, BadJson) as error:
            raise self._failed(error) from None

    def _with_result(self, cursor: Any) -> Cursor:
        if cursor.description is None:
            raise Fatal(self._report.make("unreadable", "the query gives no rows; it must be a SELECT"))
        found: Cursor = cursor
        return found

    def _failed(self, error: Exception) -> Fatal:
        """The database's own words, without anything of the address that is not shown."""
        if isinstance(error, sqlite3.OperationalError) and "readonly" in str(error):
            return Fatal(self._report.make("unreadable", "the query writes; it must be a SELECT"))
        text = first_line(error)
        secret = self._query.url.partition("//")[2].rpartition("@")[0]
        for part in (self._expanded(secret), *self._expanded(secret).split(":")):
            text = text.replace(part, "***") if len(part) > 3 else text
        return Fatal(self._report.make("unreadable", f"the query on {self._query.shown} failed: {text}"))


def _type_name(kind: Any) -> str:
    """The name of a column's type, as far as it matters here: floats. SQLite has none; there each value is judged."""
    return _POSTGRES_FLOATS.get(kind, "") if isinstance(kind, int) else str(kind or "")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
