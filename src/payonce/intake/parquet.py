"""Parquet files, read by DuckDB. Columns of floats are refused as ids and as money before any row is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from payonce.core.errors import Problem
from payonce.intake.block import Block
from payonce.intake.rawtext import RawFile
from payonce.intake.report import Fatal, Report
from payonce.intake.settings import InputSettings
from payonce.intake.typedrows import ROWS, TypedRows

_FLOATS: Final = ("FLOAT", "DOUBLE", "REAL")
# Reading takes far less; a file of huge row groups may need some of it.
_MEMORY: Final = "1GB"


class Parquet:
    """One reading of a Parquet file. A row's line is its number, from 1."""

    def __init__(self, path: Path, settings: InputSettings, *, report: Report) -> None:
        self._path = path
        self._settings = settings
        self._report = report
        self._raw = RawFile(path, report)
        self._rows: TypedRows | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, in the file's order."""
        return self._rows.columns if self._rows else ()

    @property
    def digest(self) -> str:
        """The SHA-256 of the file's bytes."""
        return self._raw.digest

    def blocks(self) -> Iterator[Block]:
        """All sound rows. Raises Fatal where the file cannot be read or its types do not fit."""
        import duckdb

        for _ in self._raw.chunks(1 << 20):
            pass
        before = self._path.stat()
        # A name of our own: in the real one, characters such as * would stand for other files.
        with TemporaryDirectory(prefix="payonce-") as folder, duck(folder) as database:
            link = Path(folder) / "input.parquet"
            link.symlink_to(self._path.resolve())
            try:
                yield from self._all(database, str(link))
            except duckdb.Error as error:
                why = first_line(error).replace(str(link), self._path.name)
                raise Fatal(
                    self._report.make("unreadable", f"the file is damaged or no Parquet file ({why}); write it again")
                ) from None
        after = self._path.stat()
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise Fatal(self._report.make("input_changed", "the file was changed while it was read; start again"))

    def _all(self, database: Any, link: str) -> Iterator[Block]:
        described = database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [link]).fetchall()
        described = [(str(name), str(kind)) for name, kind, *_ in described]
        columns = self._as_named(database, link, described)
        found = database.execute(f"SELECT {self._chosen(described)} FROM read_parquet(?)", [link])  # noqa: S608
        self._rows = TypedRows([name for name, _ in columns], self._settings, report=self._report, line=None)
        refuse_floats(columns, self._settings, report=self._report)
        line = 1
        while batch := found.fetchmany(ROWS):
            block = self._rows.block(batch, range(line, line + len(batch)))
            line += len(batch)
            if block is not None:
                yield block

    def _as_named(self, database: Any, link: str, described: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Each column under its own name: DuckDB names one anew that is equal to another but for case.

        Raises Fatal where a decimal has more digits than DuckDB keeps, which gives a float of it.
        """
        schema = database.execute(
            "SELECT name, coalesce(num_children, 0), concat(logical_type, converted_type) FROM parquet_schema(?)",
            [link],
        ).fetchall()
        tops = _top_columns(schema)
        if len(tops) != len(described):
            return list(described)
        carried = self._settings.item.fields
        taken = {*self._settings.item.roles().values(), *(carried or ())}
        problems = [
            self._report.make(
                "uncarried_value",
                f"column {name!r} is a decimal of more digits than can be read exactly (38); store it as text, or choose the "
                "columns to carry with [item] fields",
                column=name,
            )
            for (name, marks), (_, kind) in zip(tops, described, strict=True)
            if "decimal" in marks.lower() and kind in _FLOATS and (carried is None or name in taken)
        ]
        if problems:
            raise Fatal(*problems)
        return [(name, kind) for (name, _), (_, kind) in zip(tops, described, strict=True)]

    def _chosen(self, described: Sequence[tuple[str, str]]) -> str:
        """All columns; times with nanoseconds as text, since Python's would lose them, unless a form is declared."""
        fine = [name for name, kind in described if kind == "TIMESTAMP_NS"]
        if not fine or self._settings.format.date_format is not None:
            return "*"
        names = ['"' + name.replace('"', '""') + '"' for name in fine]
        return f"* REPLACE ({', '.join(f'{name}::VARCHAR AS {name}' for name in names)})"


def _top_columns(schema: Sequence[tuple[Any, int, Any]]) -> list[tuple[str, str]]:
    """Name and marks of the columns themselves, of a schema that lists their inner parts behind each."""
    found: list[tuple[str, str]] = []
    place = 1
    while place < len(schema):
        name, inner, marks = schema[place]
        found.append((str(name), str(marks)))
        place += 1
        while inner:
            inner += schema[place][1] - 1
            place += 1
    return found


def duck(folder: str) -> Any:
    """A DuckDB in memory that loads no extensions and spills, if it has to, into a folder of ours."""
    import duckdb

    return duckdb.connect(
        ":memory:",
        config={
            "memory_limit": _MEMORY,
            "threads": 2,
            "temp_directory": folder,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )


def refuse_floats(described: Sequence[tuple[str, str]], settings: InputSettings, *, report: Report) -> None:
    """Raises Fatal where an id, a target or an amount is stored as a float. ``described``: names and types."""
    types = dict(described)
    problems: list[Problem] = []
    for role, column in settings.item.roles().items():
        kind = types.get(column, "")
        if not kind.startswith(_FLOATS) or role == "currency":
            continue
        money = role.startswith("amount")
        why = (
            "a binary float is no exact amount; store amounts as decimals, text or whole minor units"
            if money
            else "leading zeros and long ids do not survive a float; store ids as text"
        )
        problems.append(
            report.make(
                "float_money" if money else "float_id", f"column {column!r} holds floats ({kind}); {why}", column=column
            )
        )
    if problems:
        raise Fatal(*problems)


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return str(error).strip().split("\n", 1)[0]
