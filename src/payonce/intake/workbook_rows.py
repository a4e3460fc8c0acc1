"""The rows of a worksheet as they are taken: numbers exactly, cells without a value and hidden rows named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from payonce.intake.report import Report
from payonce.intake.rowsense import RowSense
from payonce.intake.settings import InputSettings
from payonce.intake.shown import Cell, shown, shown_number
from payonce.intake.workbook_scan import Scan

_DIGITS: Final = 15


class WorkbookRows:
    """Makes rows of the cells that calamine gives and of what a scan of the sheet found beside them."""

    def __init__(self, names: Sequence[str], settings: InputSettings, found: Scan, *, report: Report) -> None:
        roles = settings.item.roles()
        self._found = found
        self._report = report
        self._hidden_rows = settings.format.hidden_rows
        self._hidden: list[int] = []
        self._sense = RowSense(names, settings, report=report)
        self._names = [(names.index(name), name) for name in dict.fromkeys(roles.values())]
        amount = roles.get("amount") or roles.get("amount_minor")
        self._amount = None if amount is None else names.index(amount)
        self._ids = {names.index(roles[role]) for role in ("id", "target") if role in roles} - {self._amount}

    def skip(self, rows: Iterable[Sequence[Any]], *, header: int) -> None:
        """The rows above the header, which are ignored. Raises Fatal where one reads like an item."""
        for line, row in enumerate(rows, 1):
            self._sense.refuse_above([cell_text(cell) for cell in row], line=line, above=header - 1)
            self._report.rows += 1
            self._report.ignore(line, "above the header")

    def beyond(self, height: int, width: int) -> Iterator[Sequence[Any]]:
        """The rows behind the last one that calamine gives: there nothing but cells without a value is left."""
        for _ in range(height, max(self._found.faults, default=-1) + 1):
            yield [""] * width

    def usable(self, batch: Sequence[Sequence[Any]], first: int) -> tuple[list[list[Any]], list[int]]:
        """The rows to be checked, each with its line; hidden rows and repeated headers are reported."""
        rows: list[list[Any]] = []
        lines: list[int] = []
        for line, given in enumerate(batch, first):
            row = self._exact(given, line)
            if line - 1 in self._found.hidden and any(value != "" for value in row):
                if self._hidden_rows == "skip":
                    self._report.rows += 1
                    self._report.ignore(line, "hidden")
                    continue
                self._hidden.append(line)
            if all(row[place] == name for place, name in self._names):
                self._report.rows += 1
                self._report.refuse([self._sense.header_again([cell_text(cell) for cell in row], line)])
                continue
            rows.append(row)
            lines.append(line)
        return rows, lines

    def finish(self) -> None:
        """Hidden rows stop everything until somebody says what they are: who filtered a list may mean what is left."""
        if not self._hidden or self._hidden_rows == "take":
            return
        count = len(self._hidden)
        self._report.block(
            self._report.make(
                "hidden_rows",
                f"rows with content are hidden in the sheet ({count}), as by a filter; show or delete them, or say [input] "
                'hidden_rows = "skip" or "take"',
                line=self._hidden[0],
                value=str(count),
            )
        )

    def _exact(self, given: Sequence[Any], line: int) -> list[Any]:
        """A row with what its cells hold: amounts as the decimals that were typed, where that is certain."""
        row = list(given)
        if self._amount is not None:
            row[self._amount] = typed_amount(row[self._amount])
        for place in self._ids:
            if isinstance(row[place], float):
                row[place] = Cell(row[place])
        for place, fault in self._found.faults.get(line - 1, {}).items():
            if place < len(row):
                row[place] = fault
        return row


def typed_amount(value: Any) -> Any:
    """The decimal that a person typed into a number cell; other values, and numbers of more digits, as they are."""
    if not isinstance(value, float):
        return value
    try:
        exact = Decimal(repr(value)).normalize()
    except ArithmeticError:
        return value
    if not exact.is_finite() or len(exact.as_tuple().digits) > _DIGITS:
        return Cell(value)
    return exact


def cell_text(cell: Any) -> str:
    """A cell as a spreadsheet shows it, for the names of columns and for people."""
    return shown_number(cell) if isinstance(cell, float) else shown(cell) or ""
