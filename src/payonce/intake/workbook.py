"""Excel workbooks (.xlsx): one worksheet, its header found by the mapped columns, rows numbered as Excel shows them.

A workbook keeps every number as a binary float. What a person typed with up to 15 digits comes back from it exactly, so
amounts in number cells are taken then, as decimals, and refused beyond; ids in number cells are refused: leading zeros
and long ids do not survive such a cell.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Final

from payonce.intake.block import Block
from payonce.intake.columns import listed, wanted
from payonce.intake.rawtext import RawFile
from payonce.intake.report import Fatal, Report
from payonce.intake.settings import InputSettings
from payonce.intake.typedrows import ROWS, TypedRows

_HEADER_ROWS: Final = 100
_LARGEST: Final = 1 << 32
_DIGITS: Final = 15


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
        above, names = self._header(sheet)
        self._rows = TypedRows(names, self._settings, report=self._report, line=above + 1, textual=True)
        for line in range(1, above + 1):
            self._report.rows += 1
            self._report.ignore(line, "above the header")
        rows = islice(sheet.iter_rows(), above + 1, None)
        line = above + 2
        while batch := list(islice(rows, ROWS)):
            block = self._rows.block([self._exact(row) for row in batch], range(line, line + len(batch)))
            line += len(batch)
            if block is not None:
                yield block

    def _open(self, data: bytes) -> Any:
        import python_calamine

        try:
            with zipfile.ZipFile(io.BytesIO(data)) as parts:
                size = sum(part.file_size for part in parts.infolist())
            if size > _LARGEST:
                raise Fatal(self._report.make("unreadable", f"the workbook unpacks to {size} bytes, which is too much"))
            return python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
        except python_calamine.PasswordError:
            raise Fatal(self._report.make("unreadable", "the workbook has a password; save it without one")) from None
        except (python_calamine.CalamineError, zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise Fatal(self._report.make("unreadable", f"the file is no readable .xlsx workbook: {error}")) from None

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
            return (fitting or sheets)[0]
        shown = listed([sheet.name for sheet in fitting or sheets])
        why = "several sheets have the mapped columns" if fitting else "no sheet has all mapped columns"
        raise Fatal(self._report.make("missing_sheet", f'{why}: {shown}; declare [input] sheet = "NAME"'))

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

    def _exact(self, row: Sequence[Any]) -> list[Any]:
        """Amounts in number cells as the decimals that were typed, where that is certain."""
        roles = self._settings.item.roles()
        amount = roles.get("amount") or roles.get("amount_minor")
        place = None if amount is None or self._rows is None else self._rows.columns.index(amount)
        values = list(row)
        if place is not None:
            values[place] = typed_amount(values[place])
        return values


def typed_amount(value: Any) -> Any:
    """The decimal that a person typed into a number cell; other values, and numbers of more digits, as they are."""
    if not isinstance(value, float):
        return value
    try:
        exact = Decimal(repr(value))
    except ArithmeticError:
        return value
    if not exact.is_finite() or len(exact.normalize().as_tuple().digits) > _DIGITS:
        return value
    return exact


def _first_rows(sheet: Any) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The first rows that are not blank, with their places from 0; cells as trimmed text."""
    for place, row in enumerate(islice(sheet.iter_rows(), _HEADER_ROWS)):
        names = tuple(str(cell).strip() for cell in row)
        if any(names):
            yield place, names
