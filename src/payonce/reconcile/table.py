"""Any statement file as a table of texts: columns, rows, and the line that an editor shows for each row's start.

Reads; means nothing by it. A cell is exactly the text of the file, a number of a typed format in plain decimal notation;
a float where money or ids should be is marked, so that whoever uses the column can refuse it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from payonce.intake.head import Head, find_head
from payonce.intake.rawtext import TextFile, split_lines
from payonce.intake.report import Fatal, Ignored, Report
from payonce.intake.settings import FileFormat, InputSettings, ItemColumns
from payonce.reconcile.errors import StatementError, refuse

_LONGEST_FIELD: Final = 1 << 24
TEXTS: Final = frozenset({".csv", ".tsv", ".txt", ".tab"})


@dataclass(frozen=True, slots=True)
class Table:
    """A read file. ``rows`` may be shorter or longer than ``columns``. ``floats`` are columns of binary floats;
    ``declared`` is what the file says about itself (``from``, ``to``, ``account``)."""

    file: str
    digest: str
    columns: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]
    ignored: tuple[Ignored, ...] = ()
    floats: frozenset[str] = frozenset()
    declared: Mapping[str, str] = field(default_factory=dict)

    def place(self, column: str) -> int:
        """Where a column stands, from 0."""
        return self.columns.index(column)

    def cells(self, column: str) -> list[str]:
        """One column's cells without outer blanks; rows that do not reach it count as empty there, as do all rows of a
        list whose objects all lack it."""
        if column not in self.columns:
            return [""] * len(self.rows)
        at = self.columns.index(column)
        return [row[at].strip() if at < len(row) else "" for row in self.rows]


# Sets of columns of which a table has to have one whole set; the first one found names it.
Wanted = Sequence[tuple[str, ...]]


def read_table(path: Path, wanted: Wanted, form: FileFormat, *, option: str = "--statement") -> Table:
    """Reads a file whose header holds one of the wanted sets of columns; ``option`` is what names the file.

    Raises StatementError where there is no such file, it is of another kind than its suffix, it has no such header
    (naming what it has), or a row's quotes do not fit.
    """
    suffix = path.suffix.lower()
    reader = _READERS.get(suffix)
    if reader is None and suffix not in TEXTS:
        kinds = ", ".join(sorted({*TEXTS, *_READERS}))
        refuse(f"{path.name} has a suffix that is not known", code="unknown_format", hint=f"there are {kinds}")
    report = Report(path.name, named_in=option)
    try:
        if reader is not None:
            return reader(path, wanted, form, report)
        return _delimited(path, wanted, suited(form, path), report)
    except Fatal as fatal:
        problems = tuple(fatal.problems)
        hint = "check the path and the file"
        raise StatementError(problems[0].message, problems=problems, code=problems[0].code, hint=hint) from None
    finally:
        report.close()


def suited(form: FileFormat, path: Path) -> FileFormat:
    """How a text file is written, as far as its suffix says."""
    return replace(form, delimiter="\t") if path.suffix.lower() in (".tsv", ".tab") else form


def choose(columns: Sequence[str], wanted: Wanted) -> tuple[str, ...] | None:
    """The first wanted set that the columns hold whole."""
    there = set(columns)
    return next((names for names in wanted if there.issuperset(names)), None)


def no_such_columns(file: str, columns: Sequence[str], wanted: Wanted, *, line: int | None = None) -> None:
    """Refuses a file whose columns are not the wanted ones, naming what is missing and what is there."""
    from payonce.intake.columns import listed, nearest

    there = [name for name in columns if name]
    if len(wanted) == 1:
        missing = [name for name in wanted[0] if name not in there]
        near = nearest(missing[0], there)
        advice = f", found {near!r}" if near else ""
        refuse(
            f"{file}: column {missing[0]!r} missing{advice}; the columns are {listed(there)}",
            code="missing_column",
            hint="the layout has changed, or it is another report: check [statement] against the file's header",
            file=file,
            line=line,
            column=missing[0],
        )
    refuse(
        f"{file} is no report that is known by its header; the columns are {listed(there)}",
        code="unknown_report",
        hint="say which column is which in a [statement] table (--map FILE.toml)",
        file=file,
        line=line,
    )


def _delimited(path: Path, wanted: Wanted, form: FileFormat, report: Report) -> Table:
    file = TextFile(path, report, encoding=form.encoding)
    segments = []
    for segment in file.segments():
        if segment.doubtful:
            _refuse_bytes(path, segment.text, segment.line, file.encoding)
        segments.append(segment.text)
    text = "".join(segments)
    if not segments:
        refuse(f"{path.name} is empty", code="empty_file", hint="is it the right file?", file=path.name)
    head = find_header(segments[0], wanted, form, report)
    if choose(head.names, wanted) is None:
        no_such_columns(path.name, head.names, wanted, line=head.above + 1)
    lines = split_lines(text)
    skip = head.above + head.lines
    rows, starts, blank = _records(lines[skip:], head, form.quote, path.name, first_line=skip + 1)
    ignored = [Ignored(line, "above the header") for line in range(1, head.above + 1)]
    ignored += [Ignored(line, "blank") for line in blank]
    _refuse_repeated(head.names, path.name, head.above + 1)
    return Table(path.name, file.digest, head.names, rows, starts, tuple(ignored))


def find_header(text: str, wanted: Wanted, form: FileFormat, report: Report) -> Head:
    """The header for the first wanted set that is found whole; else the best candidate of the first set."""
    best: Head | None = None
    for names in wanted:
        columns = ItemColumns(id=names[0], needs=tuple(names[1:]))
        head = find_head(text, InputSettings("", columns, form), report)
        if head.found(names) == len(names):
            return head
        if best is None or head.found(names) > best.found(wanted[0]):
            best = head
    assert best is not None, "there is at least one wanted set"
    return best


def _records(
    lines: list[str], head: Head, quote: str, file: str, *, first_line: int
) -> tuple[list[list[str]], list[int], list[int]]:
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    if quote:
        reader = csv.reader(lines, delimiter=head.delimiter, quotechar=quote, doublequote=True, strict=True)
    else:
        reader = csv.reader(lines, delimiter=head.delimiter, quoting=csv.QUOTE_NONE, strict=True)
    rows: list[list[str]] = []
    starts: list[int] = []
    blank: list[int] = []
    before = 0
    try:
        for record in reader:
            line = first_line + before
            before = reader.line_num
            if any(cell.strip() for cell in record):
                rows.append(record)
                starts.append(line)
            else:
                blank.append(line)
    except csv.Error as error:
        refuse(
            f"{file}, line {first_line + before}: the quotes of this row do not fit ({error})",
            code="bad_quotes",
            hint="export the statement again; a row that cannot be read for certain makes the file unusable",
            file=file,
            line=first_line + before,
        )
    return rows, starts, blank


def _refuse_repeated(columns: Sequence[str], file: str, line: int | None) -> None:
    seen: set[str] = set()
    for name in columns:
        if name and name in seen:
            refuse(
                f"{file}: column {name!r} stands there twice",
                code="repeated_column", hint="rename or remove one of them", file=file, line=line, column=name,
            )  # fmt: skip
        seen.add(name)


def _refuse_bytes(path: Path, text: str, line: int, encoding: str) -> None:
    for number, content in enumerate(split_lines(text), line):
        if "\0" in content or any("\udc80" <= c <= "\udcff" for c in content):
            refuse(
                f"{path.name}, line {number} holds bytes that are no {encoding} text",
                code="undecodable",
                hint='name the encoding: [statement] encoding = "windows-1252"',
                file=path.name,
                line=number,
            )


Reader = Callable[[Path, Wanted, FileFormat, Report], Table]
_READERS: Final[dict[str, Reader]] = {}


def reads(*suffixes: str) -> Callable[[Reader], Reader]:
    """Registers a reader for some suffixes."""

    def register(reader: Reader) -> Reader:
        _READERS.update(dict.fromkeys(suffixes, reader))
        return reader

    return register
