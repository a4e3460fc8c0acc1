"""Statement files that have types: JSON, JSON Lines, Parquet, Excel workbooks. Each becomes a table of exact texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from payonce.core.errors import UsageError
from payonce.intake.rawtext import RawFile
from payonce.intake.report import Ignored, Report
from payonce.intake.settings import FileFormat
from payonce.reconcile.errors import refuse
from payonce.reconcile.table import Table, Wanted, choose, no_such_columns, reads

# Where documents keep their rows, and what they say about themselves.
_LISTS: Final = ("data", "rows", "items", "transaction_details", "transactions")
_SELF: Final = {"from": "from", "to": "to", "start_date": "from", "end_date": "to", "account": "account",
                "account_number": "account"}  # fmt: skip
_HEADER_ROWS: Final = 100


@reads(".json", ".jsonl", ".ndjson")
def read_json(path: Path, wanted: Wanted, form: FileFormat, report: Report) -> Table:
    """A document with a list of objects, a bare list, or an object a line. Numbers keep the text they are written in."""
    raw = RawFile(path, report)
    data = b"".join(raw.chunks())
    try:
        text = data.decode(form.encoding or "utf-8-sig")
    except (UnicodeDecodeError, LookupError) as error:
        refuse(f"{path.name} is no text: {error}", code="undecodable", hint="say which encoding", file=path.name)
    lines_of = path.suffix.lower() != ".json"
    objects, declared = _lines(text, path.name) if lines_of else _document(text, path.name)
    if not objects:
        refuse(f"{path.name} has no rows", code="no_usable_rows", hint="is it the right file?", file=path.name)
    flat = [(line, dict(_flatten(entry))) for line, entry in objects]
    columns = tuple(dict.fromkeys(name for _, entry in flat for name in entry))
    if choose(columns, wanted) is None:
        no_such_columns(path.name, columns, wanted)
    rows = [[entry.get(name, "") for name in columns] for _, entry in flat]
    return Table(path.name, raw.digest, columns, rows, [line for line, _ in flat], declared=declared)


def _loads(text: str, file: str, line: int | None) -> Any:
    try:
        return json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        refuse(f"{file} is not JSON: {error}", code="bad_json", hint="export it again", file=file, line=line)


def _lines(text: str, file: str) -> tuple[list[tuple[int, Mapping[str, Any]]], dict[str, str]]:
    found: list[tuple[int, Mapping[str, Any]]] = []
    for line, content in enumerate(text.splitlines(), 1):
        if content.strip():
            entry = _loads(content, file, line)
            if not isinstance(entry, dict):
                refuse(
                    f"{file}, line {line} is no object", code="bad_json", hint="one object a line", file=file, line=line
                )
            found.append((line, entry))
    return found, {}


def _document(text: str, file: str) -> tuple[list[tuple[int, Mapping[str, Any]]], dict[str, str]]:
    document = _loads(text, file, None)
    declared: dict[str, str] = {}
    if isinstance(document, dict):
        declared = {_SELF[k]: str(v) for k, v in document.items() if k in _SELF and v not in (None, "")}
        if document.get("has_more") in (True, "true"):
            refuse(
                f"{file} is one page of several (has_more)",
                code="incomplete", hint="fetch all pages into one file", file=file,
            )  # fmt: skip
        document = next((document[name] for name in _LISTS if isinstance(document.get(name), list)), None)
    if not isinstance(document, list) or not all(isinstance(entry, dict) for entry in document):
        refuse(f"{file} has no list of objects", code="bad_json", hint=f"one of {', '.join(_LISTS)}", file=file)
    return list(enumerate(document, 1)), declared


def _flatten(entry: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in entry.items():
        match value:
            case dict():
                yield from _flatten(value, f"{prefix}{name}.")
            case list():
                yield f"{prefix}{name}", json.dumps(value, separators=(",", ":"))
            case None:
                yield f"{prefix}{name}", ""
            case bool():
                yield f"{prefix}{name}", "true" if value else "false"
            case _:
                yield f"{prefix}{name}", str(value)


@reads(".parquet", ".pq")
def read_parquet(path: Path, wanted: Wanted, form: FileFormat, report: Report) -> Table:
    """A Parquet file; times in UTC, decimals exact. Columns of floats are marked."""
    import duckdb

    raw = RawFile(path, report)
    for _ in raw.chunks():
        pass
    with duckdb.connect(config={"threads": 2}) as base:
        base.execute("set TimeZone = 'UTC'")
        try:
            described = base.execute("describe select * from read_parquet(?)", [str(path)]).fetchall()
        except duckdb.Error as error:
            refuse(
                f"{path.name} is no Parquet file: {error}", code="bad_parquet", hint="export it again", file=path.name
            )
        names = tuple(str(row[0]) for row in described)
        if choose(names, wanted) is None:
            no_such_columns(path.name, names, wanted)
        floats = frozenset(str(row[0]) for row in described if str(row[1]) in ("DOUBLE", "FLOAT"))
        casts = ", ".join(f"coalesce(cast({_quoted(name)} as varchar), '')" for name in names)
        query = f"select {casts} from read_parquet(?)"  # noqa: S608 (the names are quoted)
        found = base.execute(query, [str(path)]).fetchall()
    rows = [list(row) for row in found]
    return Table(path.name, raw.digest, names, rows, list(range(1, len(rows) + 1)), floats=floats)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@reads(".xlsx", ".xlsm")
def read_workbook(path: Path, wanted: Wanted, form: FileFormat, report: Report) -> Table:
    """One sheet of a workbook: the named one, else the first that has the wanted columns."""
    try:
        import python_calamine
    except ImportError:
        raise UsageError(
            "reading Excel workbooks needs a package that is not installed",
            code="missing_package",
            hint="pip install python-calamine, or save the sheet as CSV",
        ) from None
    raw = RawFile(path, report)
    for _ in raw.chunks():
        pass
    try:
        book = python_calamine.CalamineWorkbook.from_path(str(path))
    except (python_calamine.CalamineError, OSError, ValueError) as error:
        refuse(f"{path.name} is no workbook: {error}", code="bad_workbook", hint="save it again", file=path.name)
    names = [form.sheet] if form.sheet else list(book.sheet_names)
    columns: tuple[str, ...] = ()
    for name in names:
        rows = [
            [_cell(value) for value in row] for row in book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        ]
        for number, row in enumerate(rows[:_HEADER_ROWS]):
            header = tuple(cell.strip() for cell in row)
            if choose(header, wanted) is not None:
                return _sheet(path.name, raw.digest, header, rows, number)
            columns = max(columns, tuple(cell for cell in header if cell), key=len)
    no_such_columns(path.name, columns, wanted)
    raise AssertionError("unreachable")


def _sheet(file: str, digest: str, header: tuple[str, ...], rows: list[list[str]], above: int) -> Table:
    ignored = [Ignored(line, "above the header") for line in range(1, above + 1)]
    body: list[list[str]] = []
    lines: list[int] = []
    for line, row in enumerate(rows[above + 1 :], above + 2):
        if any(cell.strip() for cell in row):
            body.append(row)
            lines.append(line)
        else:
            ignored.append(Ignored(line, "blank"))
    return Table(file, digest, header, body, lines, tuple(ignored))


def _cell(value: Any) -> str:
    """A workbook keeps every number as a float: whole ones of 15 digits or fewer are exact, and so is the shortest text
    of a decimal one of that length. Longer ones lost digits before we saw them and stay recognisable (``1.23e+15``)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 10**15 else repr(value)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return "" if value is None else str(value)
