"""Results as files: JSON Lines, CSV and Parquet, each written whole or not at all."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from payonce.core.errors import UsageError
from payonce.intake.parquet import duck, first_line

COLUMNS: Final = (
    "item", "target", "amount", "currency", "state", "settlement", "reference", "billed", "billed_currency", "cost",
    "attempts", "code", "message", "kept", "output_sha256", "output",
)  # fmt: skip
_NUMBERS: Final = frozenset({"attempts"})
# One record with the largest output there is, escaped.
_LONGEST_RECORD: Final = 512 * 1024 * 1024
_DUCK_MEMORY: Final = "4GB"


def json_lines(path: Path, found: Iterator[Mapping[str, Any]]) -> None:
    """One object a line."""
    with path.open("wb") as file:
        for record in found:
            file.write(orjson.dumps(record) + b"\n")


def comma_separated(path: Path, found: Iterator[Mapping[str, Any]]) -> None:
    """A header and a row an item. An output that is a text stands as it is, any other as JSON."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for record in found:
            rows.writerow([_cell(record[name]) for name in COLUMNS])


def parquet(path: Path, found: Iterator[Mapping[str, Any]]) -> None:
    """A row an item in input order: texts (amounts too, exactly as in the JSON), and ``attempts`` as a number.

    Raises UsageError ``file_unwritable`` where DuckDB cannot write it.
    """
    import duckdb

    with tempfile.TemporaryDirectory(prefix="payonce-", dir=path.parent) as folder:
        lines = Path(folder) / "records.jsonl"
        with lines.open("wb") as file:
            for record in found:
                file.write(orjson.dumps({name: _value(record[name], name) for name in COLUMNS}) + b"\n")
        types = {name: "BIGINT" if name in _NUMBERS else "VARCHAR" for name in COLUMNS}
        names = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
        source = f"read_json(?, format='newline_delimited', columns={{{names}}}, maximum_object_size={_LONGEST_RECORD})"
        query = f"COPY (SELECT * FROM {source}) TO '{_quoted(path)}' (FORMAT parquet, COMPRESSION zstd)"  # noqa: S608
        try:
            with duck(folder) as database:
                database.execute(f"SET memory_limit = '{_DUCK_MEMORY}'")
                database.execute("SET threads = 1")
                database.execute(query, [str(lines)])
        except duckdb.Error as error:
            raise UsageError(
                f"cannot write {path.name}: {first_line(error)}", code="file_unwritable", hint="try .jsonl"
            ) from error


WRITERS: Final[Mapping[str, Callable[[Path, Iterator[Mapping[str, Any]]], None]]] = {
    ".jsonl": json_lines,
    ".csv": comma_separated,
    ".parquet": parquet,
}


def whole(path: Path, fill: Callable[[Path], None]) -> None:
    """Fills a file beside its place, makes it durable, and gives it its name. Raises OSError, and then leaves nothing."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    part = Path(name)
    try:
        fill(part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _cell(value: Any) -> str:
    if isinstance(value, orjson.Fragment | dict):
        raw = orjson.dumps(value)
        parsed = orjson.loads(raw)
        return parsed if isinstance(parsed, str) else "" if parsed in ({}, None) else raw.decode()
    return "" if value is None else str(value)


def _value(value: Any, name: str) -> Any:
    """A cell of a Parquet file: nothing stays nothing, numbers stay numbers, all else is text."""
    if value is None or name in _NUMBERS:
        return value
    if name == "output":
        parsed = orjson.loads(orjson.dumps(value))
        return parsed if isinstance(parsed, str) else orjson.dumps(parsed).decode()
    return orjson.dumps(value).decode() if isinstance(value, dict) else str(value)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
