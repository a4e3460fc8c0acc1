"""CSV, TSV and their like: whole lines to blocks of rows, each with the line that an editor shows for its start.

Lines without quotes are cut in one go; everything else goes through the csv module in its strict mode. A row that
cannot be read for certain is refused and named; it never shifts the rows after it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Final

from payonce.core.errors import Problem
from payonce.intake.block import Block, Cells
from payonce.intake.columns import Layout, layout
from payonce.intake.head import Head, find_head, records
from payonce.intake.rawtext import Segment, TextFile, first_bad_byte, split_lines
from payonce.intake.report import Fatal, Report, cut
from payonce.intake.rowsense import RowSense
from payonce.intake.settings import InputSettings

# A quoted field that goes on for this many characters was never closed.
LONGEST_FIELD: Final = 1 << 24


class Delimited:
    """One reading of a delimited file. ``columns`` and ``digest`` are known once the blocks were taken."""

    def __init__(self, path: Path, settings: InputSettings, *, report: Report) -> None:
        self._path = path
        self._settings = settings
        self._report = report
        self._file = TextFile(path, report, encoding=settings.format.encoding)
        self._head = Head(",", 0, 0, ())
        self._layout = Layout((), ())
        self._sense: RowSense
        self._located: str | None = None
        # The limit is the process's own; it is only ever raised, so that nobody else's reading changes.
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns found, in the file's order."""
        return self._layout.columns

    @property
    def digest(self) -> str:
        """The SHA-256 of the file's bytes."""
        return self._file.digest

    def blocks(self) -> Iterator[Block]:
        """All sound rows. Raises Fatal where the file as a whole cannot be used."""
        open_record = Segment("", 1, False)
        for segment in self._body():
            if open_record.text:
                text = open_record.text + segment.text
                segment = Segment(text, open_record.line, open_record.doubtful or segment.doubtful)
            block, open_record = self._block(segment)
            if len(open_record.text) > LONGEST_FIELD:
                raise Fatal(self._open_quote(open_record, f"is not closed within {LONGEST_FIELD} characters"))
            if block is not None:
                yield block
        if open_record.text:
            self._report.rows += 1
            self._report.refused += 1
            problem = self._open_quote(open_record, "is still open at the end of the file")
            self._report.block(problem)

    def _open_quote(self, record: Segment, what: str) -> Problem:
        return self._report.make(
            "open_quote",
            f"a quote in the row that starts here {what}; close it, or double it if it belongs to the text",
            line=record.line,
            value=record.text.split("\n", 1)[0],
        )

    def _body(self) -> Iterator[Segment]:
        """The lines below the header; finds the header in the first ones."""
        segments = self._file.segments()
        first = next(segments, None)
        if first is None:
            raise Fatal(self._report.make("no_header", "the file has no header line", line=1))
        self._head = find_head(first.text, self._settings, self._report)
        broken = list(self._unreadable(self._head.names, self._head.above + 1)) if first.doubtful else []
        if broken:
            raise Fatal(*broken)
        self._layout = layout(self._head.names, self._settings, report=self._report, line=self._head.above + 1)
        self._sense = RowSense(self._head.names, self._settings, report=self._report, delimiter=self._head.delimiter)
        self._look_above(split_lines(first.text)[: self._head.above])
        for line in range(1, self._head.above + 1):
            self._report.rows += 1
            self._report.ignore(line, "above the header")
        skip = self._head.above + self._head.lines
        rest = "".join(split_lines(first.text)[skip:])
        if rest:
            yield Segment(rest, first.line + skip, first.doubtful)
        yield from segments

    def _look_above(self, lines: list[str]) -> None:
        """Raises Fatal where a line above the header reads like an item."""
        reader = records(lines, delimiter=self._head.delimiter, quote=self._settings.format.quote, strict=False)
        before = 0
        for record in reader:
            self._sense.refuse_above(record, line=before + 1, above=self._head.above)
            before = reader.line_num

    def _block(self, segment: Segment) -> tuple[Block | None, Segment]:
        quote = self._settings.format.quote
        if not segment.doubtful and not (quote and quote in segment.text):
            columns = self._cut(segment.text)
            if columns is not None:
                count = len(columns[0])
                self._report.rows += count
                return self._assemble(columns, range(segment.line, segment.line + count), segment.text), Segment(
                    "", 1, False
                )
        rows, lines, rest = self._records(segment)
        columns = [list(column) for column in zip(*rows, strict=True)]
        return (self._assemble(columns, lines, segment.text) if rows else None), rest

    def _cut(self, text: str) -> list[list[str]] | None:
        """The columns of lines without quotes; None unless every line has exactly as many fields as the header.

        A mark is put between the rows: it must come up after every so many fields, and nowhere else.
        """
        width = len(self._head.names)
        delimiter = self._head.delimiter
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = text.removesuffix("\n")
        rows = text.count("\n") + 1
        flat = text.replace("\n", f"{delimiter}\n{delimiter}").split(delimiter)
        if len(flat) != rows * (width + 1) - 1 or flat[width :: width + 1].count("\n") != rows - 1:
            return None
        return [flat[place :: width + 1] for place in range(width)]

    def _records(self, segment: Segment) -> tuple[list[list[str]], list[int], Segment]:
        """The whole rows of some lines, where each starts, and what is left of a row that goes on after them."""
        lines = split_lines(segment.text)
        reader = records(lines, delimiter=self._head.delimiter, quote=self._settings.format.quote, strict=True)
        rows: list[list[str]] = []
        starts: list[int] = []
        before = 0
        while True:
            try:
                for record in reader:
                    line, first, before = segment.line + before, before, reader.line_num
                    if before - first > 1 and self._swallows(lines[first:before], line):
                        continue
                    if self._sound(record, line, doubtful=segment.doubtful):
                        rows.append(record)
                        starts.append(line)
                return rows, starts, Segment("", 1, False)
            except csv.Error as error:
                line = segment.line + before
                # This text of the csv module is what tells an open record from a broken one; a test holds it.
                if "unexpected end of data" in str(error):
                    return rows, starts, Segment("".join(lines[before:]), line, segment.doubtful)
                self._malformed(str(error), line, lines[before : reader.line_num])
                before = reader.line_num

    def _swallows(self, lines: list[str], line: int) -> bool:
        """Whether a row of several lines holds another row: a quote that is not meant took it in."""
        quote = self._settings.format.quote
        inner = self._sense.swallowed(lines, quote) if quote else None
        if inner is None:
            return False
        self._report.rows += 1
        self._report.refused += 1
        self._report.block(
            self._report.make(
                "swallowed_row",
                f"a quoted text of this row goes on over line {line + inner}, which reads like a row of its own "
                f"({cut(lines[inner].strip())}); close the quote where the text ends, or state [expect] items if the text "
                "is meant like that",
                line=line,
                value=lines[0].rstrip("\r\n"),
            )
        )
        return True

    def _malformed(self, error: str, line: int, lines: list[str]) -> None:
        """A row whose quotes do not fit. One of several lines may hold others, so that it cannot be left out alone."""
        self._report.rows += 1
        over = f" that goes on to line {line + len(lines) - 1}" if len(lines) > 1 else ""
        problem = self._report.make(
            "bad_quotes",
            f"the quotes of this row{over} do not fit ({error}); put the field in quotes and double those inside it",
            line=line,
            value=lines[0].rstrip("\r\n"),
        )
        if over:
            self._report.refused += 1
            self._report.block(problem)
        else:
            self._report.refuse([problem])

    def _sound(self, record: list[str], line: int, *, doubtful: bool) -> bool:
        self._report.rows += 1
        if len(record) != len(self._head.names):
            if not any(cell.strip() for cell in record):
                self._report.ignore(line, "blank")
                return False
            self._refuse_ragged(record, line)
            return False
        broken = list(self._unreadable(record, line)) if doubtful else []
        self._report.refuse(broken)
        return not broken

    def _refuse_ragged(self, record: list[str], line: int) -> None:
        width = len(self._head.names)
        more = "more" if len(record) > width else "fewer"
        self._report.refused += 1
        self._report.problem(
            "ragged_row",
            f"the row has {len(record)} fields, {more} than the header's {width}; put fields that hold the delimiter "
            f"{self._head.delimiter!r} in quotes",
            line=line,
            value=self._head.delimiter.join(record),
        )

    def _unreadable(self, record: Sequence[str], line: int) -> Iterator[Problem]:
        """What a row holds that no text may hold."""
        for name, cell in zip(self._head.names, record, strict=False):
            if "\0" in cell:
                what = "holds a NUL character; the file is damaged"
                yield self._report.make("bad_character", what, line=line, column=name, value=cell)
            byte = next((c for c in cell if "\ud800" <= c <= "\udfff"), None)
            if byte is not None:
                yield self._report.make("bad_encoding", self._undecodable(byte), line=line, column=name, value=cell)

    def _undecodable(self, byte: str) -> str:
        encoding = self._file.encoding
        if self._located is None:
            found = first_bad_byte(self._path, encoding)
            self._located = f" (the first such byte is at offset {found[0]})" if found else ""
        return (
            f"byte 0x{ord(byte) - 0xDC00:02X} is not {encoding}{self._located}; "
            'declare [input] encoding (such as "cp1252"), or save the file as UTF-8'
        )

    def _assemble(self, columns: Sequence[Sequence[str]], lines: Sequence[int], text: str) -> Block | None:
        """The mapped and carried columns of some rows; rows in which every cell is blank are ignored."""
        odd = self._sense.odd(columns, lines, text)
        if odd:
            for problem in odd.values():
                self._report.refuse([problem])
            keep = [place not in odd for place in range(len(lines))]
            columns, lines = [list(compress(column, keep)) for column in columns], list(compress(lines, keep))
            if not lines:
                return None
        roles = self._settings.item.roles()
        at = {role: columns[self._layout.position(name)] for role, name in roles.items()}
        block = Block(
            lines,
            at["id"],
            at.get("target"),
            at.get("amount", at.get("amount_minor")),
            at.get("currency"),
            Cells(self._layout.fields, tuple(columns[self._layout.position(name)] for name in self._layout.fields)),
        )
        if "" not in at["id"]:
            return block
        filled = [any(map(str.strip, row)) for row in zip(*columns, strict=True)]
        for line, full in zip(lines, filled, strict=True):
            if not full:
                self._report.ignore(line, "blank")
        return block if all(filled) else block.keep(filled) if any(filled) else None
