"""Excel workbooks (.xlsx): one worksheet, its header found by the mapped columns, rows numbered as Excel shows them.

A workbook keeps every number as a binary float. What a person typed with up to 15 digits comes back from it exactly, so
amounts in number cells are taken then, as decimals, and refused beyond; ids in number cells are refused: leading zeros
and long ids do not survive such a cell.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from payonce.intake.block import Block
from payonce.intake.columns import listed, wanted
from payonce.intake.encodings import foreign
from payonce.intake.ids import trimmed
from payonce.intake.rawtext import RawFile
from payonce.intake.report import Fatal, Report
from payonce.intake.settings import InputSettings
from payonce.intake.typedrows import ROWS, TypedRows
from payonce.intake.workbook_rows import WorkbookRows, cell_text
from payonce.intake.workbook_scan import ScanError, scan

_HEADER_ROWS: Final = 100
_LARGEST: Final = 1 << 32


class Workbook:
    """One reading of a workbook. The whole sheet is held in memory, which the format limits to a million rows."""

    def __init__(self, path: Path, settings: InputSettings, *, report: Report) -> None:
        self._settings = settings
        self._report = report
        self._raw = RawFile(path, report)
        self._rows: TypedRows | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns found, in the sheet's order."""
        return self._rows.columns if self._rows else ()

    @property
    def digest(self) -> str:
        """The SHA-256 of the file's bytes."""
        return self._raw.digest

    def blocks(self) -> Iterator[Block]:
        """All sound rows. Raises Fatal where the workbook cannot be read or no sheet can be chosen."""
        data = b"".join(self._raw.chunks())
        sheet = self._sheet(self._open(data))
        try:
            found = scan(data, sheet.name)
        except ScanError as error:
            raise Fatal(self._report.make("unreadable", f"sheet {sheet.name!r} cannot be read: {error}")) from None
        above, names = self._header(sheet)
        typed = TypedRows(names, self._settings, report=self._report, line=above + 1, textual=True)
        self._rows = typed
        rows = WorkbookRows(names, self._settings, found, report=self._report)
        rows.skip(islice(sheet.iter_rows(), above), header=above + 1)
        below = chain(islice(sheet.iter_rows(), above + 1, None), rows.beyond(sheet.end[0] + 1, len(names)))
        first = above + 2
        while batch := list(islice(below, ROWS)):
            kept, lines = rows.usable(batch, first)
            first += len(batch)
            block = typed.block(kept, lines) if kept else None
            if block is not None:
                yield block
        rows.finish()

    def _open(self, data: bytes) -> Any:
        import python_calamine

        self._refuse_foreign(data[:4096])
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as parts:
                size = sum(part.file_size for part in parts.infolist())
            if size > _LARGEST:
                raise Fatal(self._report.make("unreadable", f"the workbook unpacks to {size} bytes, which is too much"))
            return python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
        except python_calamine.PasswordError:
            raise Fatal(self._report.make("unreadable", "the workbook has a password; save it without one")) from None
        except (python_calamine.CalamineError, zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise Fatal(
                self._report.make("unreadable", f"the file is no whole .xlsx workbook ({error}); save it again")
            ) from None

    def _refuse_foreign(self, first: bytes) -> None:
        """Raises Fatal where the file is something else under a workbook's name, with what to do."""
        if not first:
            raise Fatal(self._report.make("empty_file", f"{self._raw.path.name} is empty; there is nothing to do"))
        known = foreign(first)
        if first.startswith(b"PK"):
            return
        if known is None and b"\0" not in first:
            known = "a text file, perhaps CSV", "give it the ending .csv"
        if known is not None:
            what = f"{self._raw.path.name} is {known[0]}, no .xlsx workbook; {known[1]}"
            raise Fatal(self._report.make("wrong_format", what))

    def _sheet(self, book: Any) -> Any:
        names: list[str] = book.sheet_names
        declared = self._settings.format.sheet
        if declared is not None:
            if declared in names:
                return self._load(book, declared)
            raise Fatal(
                self._report.make("missing_sheet", f"there is no sheet {declared!r}; the sheets are {listed(names)}")
            )
        sheets = [sheet for name in names if (sheet := self._load(book, name)).start is not None]
        if not sheets:
            raise Fatal(self._report.make("empty_file", "the workbook has no cells"))
        needed = set(wanted(self._settings.item))
        fitting = [sheet for sheet in sheets if any(needed <= set(row) for _, row in _first_rows(sheet))]
        if len(sheets) == 1 or len(fitting) == 1:
            return self._seen(book, (fitting or sheets)[0])
        shown = listed([sheet.name for sheet in fitting or sheets])
        why = "several sheets have the mapped columns" if fitting else "no sheet has all mapped columns"
        raise Fatal(self._report.make("missing_sheet", f'{why}: {shown}; declare [input] sheet = "NAME"'))

    def _seen(self, book: Any, sheet: Any) -> Any:
        """The sheet that was found, unless nobody who opens the workbook sees it."""
        if any(
            about.name == sheet.name and str(about.visible).rpartition(".")[2] != "Visible"
            for about in book.sheets_metadata
        ):
            raise Fatal(
                self._report.make(
                    "missing_sheet",
                    f"the only sheet with the mapped columns, {sheet.name!r}, is hidden; if it is meant, declare "
                    f'[input] sheet = "{sheet.name}"',
                )
            )
        return sheet

    def _load(self, book: Any, name: str) -> Any:
        import python_calamine

        try:
            return book.get_sheet_by_name(name)
        except (python_calamine.CalamineError, ValueError) as error:
            raise Fatal(self._report.make("unreadable", f"sheet {name!r} cannot be read: {error}")) from None

    def _header(self, sheet: Any) -> tuple[int, tuple[str, ...]]:
        """How many rows stand above the header, and its cells."""
        needed = set(wanted(self._settings.item))
        declared = self._settings.format.preamble
        rows = [(place, names) for place, names in _first_rows(sheet) if place >= (declared or 0)]
        if not rows:
            raise Fatal(self._report.make("no_header", "the sheet has no header row", line=1))
        if declared is not None:
            return rows[0]
        return max(rows, key=lambda row: len(needed & set(row[1])))


def _first_rows(sheet: Any) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The first rows that are not blank, with their places from 0; cells as trimmed text."""
    for place, row in enumerate(islice(sheet.iter_rows(), _HEADER_ROWS)):
        names = tuple(trimmed(cell_text(cell)) for cell in row)
        if any(names):
            yield place, names
