"""Rows of typed values (workbooks, Parquet, databases) as blocks, and their carried values as text or JSON values.

Whole numbers, decimals, texts and times are carried exactly; what JSON cannot hold exactly is refused by its row.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from payonce.core.errors import Problem
from payonce.intake.block import Block, Cells
from payonce.intake.columns import Layout, layout
from payonce.intake.report import Report
from payonce.intake.settings import InputSettings
from payonce.intake.shown import Fault, kind_of, shown, shown_number

ROWS: Final = 4096


class Uncarried(Exception):
    """A value that cannot be carried; the message says why."""


class TypedRows:
    """Makes blocks of typed rows. The columns are checked when it is made, which raises Fatal."""

    def __init__(
        self, names: Sequence[str], settings: InputSettings, *, report: Report, line: int | None, textual: bool = False
    ) -> None:
        self._settings = settings
        self._report = report
        self._textual = textual
        self._layout: Layout = layout(names, settings, report=report, line=line)
        self._at = {role: self._layout.position(name) for role, name in settings.item.roles().items()}
        self._carried = [self._layout.position(name) for name in self._layout.fields]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, in their order."""
        return self._layout.columns

    def block(self, rows: Sequence[Sequence[Any]], lines: Sequence[int]) -> Block | None:
        """The block of some rows, each as wide as the header; unsound and blank rows are reported and left out."""
        self._report.rows += len(rows)
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
        left_out = self._blank(columns, rows, lines)
        left_out |= self._unsound(columns, lines, left_out)
        if left_out:
            kept = [place for place in range(len(rows)) if place not in left_out]
            lines = [lines[place] for place in kept]
            columns = [[column[place] for place in kept] for column in columns]
        if not lines:
            return None

        def mapped(role: str) -> Sequence[Any] | None:
            return columns[self._at[role]] if role in self._at else None

        return Block(
            lines,
            columns[self._at["id"]],
            mapped("target"),
            mapped("amount") or mapped("amount_minor"),
            mapped("currency"),
            self._fields(columns),
            typed=True,
        )

    def _fields(self, columns: Sequence[Sequence[Any]]) -> Cells | list[dict[str, Any]]:
        values = [self._values(columns[place]) for place in self._carried]
        names = self._layout.fields
        if all(set(map(type, column)) <= {str} for column in values):
            return Cells(names, tuple(values))
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]

    def _values(self, column: Sequence[Any]) -> Sequence[Any]:
        if set(map(type, column)) <= {str}:
            return column
        date_format = self._settings.format.date_format
        return [carried(value, date_format=date_format, textual=self._textual) for value in column]

    def _blank(self, columns: Sequence[Sequence[Any]], rows: Sequence[Sequence[Any]], lines: Sequence[int]) -> set[int]:
        """The rows without any value, which are ignored."""
        ids = columns[self._at["id"]]
        if None not in ids and "" not in ids:
            return set()
        blank = {place for place, row in enumerate(rows) if all(value is None or value == "" for value in row)}
        for place in sorted(blank):
            self._report.ignore(lines[place], "blank")
        return blank

    def _unsound(self, columns: Sequence[Sequence[Any]], lines: Sequence[int], blank: set[int]) -> set[int]:
        """The rows that hold what cannot be carried, which are refused."""
        found: dict[int, list[Problem]] = {}
        for place in self._carried:
            column = columns[place]
            if set(map(type, column)) <= {str} and "".join(column).isprintable():
                continue
            for row, value in enumerate(column):
                problem = None if row in blank else self._unfit(value, lines[row], place)
                if problem is not None:
                    found.setdefault(row, []).append(problem)
        for row in sorted(found):
            self._report.refuse(found[row])
        return set(found)

    def _unfit(self, value: Any, line: int, place: int) -> Problem | None:
        if value is None or (type(value) is str and value.isprintable()):
            return None
        try:
            found = carried(value, date_format=self._settings.format.date_format, textual=self._textual)
        except Uncarried as error:
            why, code = str(error), "uncarried_value"
        else:
            if not isinstance(found, str) or not broken_text(found):
                return None
            why, code = "holds a NUL character or broken text; the data is damaged", "bad_character"
        column = self._layout.columns[place]
        return self._report.make(code, f"the value {why}", line=line, column=column, value=shown(value))


def broken_text(text: str) -> bool:
    """Whether a text holds what no store and no JSON may hold: NUL characters or halves of surrogate pairs."""
    return "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)


def carried(value: Any, *, date_format: str | None, textual: bool) -> Any:
    """A value as items carry it: JSON values as they are, times in ISO 8601 or as declared, decimals as text.

    ``textual`` makes everything text, as a workbook shows it. Raises Uncarried.
    """
    match value:
        case None:
            return "" if textual else None
        case str():
            return value
        case bool():
            return str(value).upper() if textual else value
        case int():
            return str(value) if textual else value
        case float():
            return _number(value, textual=textual)
        case Decimal():
            return format(value, "f")
        case dt.datetime() | dt.date():
            return value.isoformat() if date_format is None else value.strftime(date_format)
        case dt.time():
            return value.isoformat()
        case dt.timedelta() | uuid.UUID():
            return str(value)
        case list() | tuple():
            return [carried(inner, date_format=date_format, textual=textual) for inner in value]
        case dict():
            return {
                str(name): carried(inner, date_format=date_format, textual=textual) for name, inner in value.items()
            }
        case Fault():
            raise Uncarried(f"is {value.why}, or choose the columns to carry with [item] fields")
        case _:
            raise Uncarried(
                f"is of a kind that items cannot carry ({kind_of(value)}); choose the columns to carry with [item] fields"
            )


def _number(value: float, *, textual: bool) -> float | str:
    if not math.isfinite(value):
        raise Uncarried("is no finite number; correct it, or choose the columns to carry with [item] fields")
    return shown_number(value) if textual else value
