"""What a single row cannot show and its neighbours can: items above the header, rows inside of a quoted text, a header
that stands among the items, and values behind the last named column.

Each would lose an item, add one, or cut an amount such as ``1,234.00`` in two; none is mended, all are named.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Final

from payonce.core.errors import Problem
from payonce.intake.amounts import read_currency
from payonce.intake.ids import trimmed
from payonce.intake.report import Fatal, Report
from payonce.intake.settings import InputSettings

_NUMBER: Final = re.compile(r"[-+(]?\s*\d[\d.,'’ \u00a0\u202f\u2009]*\)?", re.ASCII)


class RowSense:
    """Knows the header of a reading and judges rows by it. ``names`` may be blank for columns that nothing names,
    ``delimiter`` stands between the cells of a row where it is shown."""

    def __init__(
        self, names: Sequence[str], settings: InputSettings, *, report: Report, delimiter: str = " | "
    ) -> None:
        item = settings.item
        self._delimiter = delimiter
        self._names = names
        self._report = report
        self._settings = settings
        self._at = [(names.index(name), name) for name in dict.fromkeys(item.roles().values())]
        self._id = names.index(item.id)
        self._longest = max((name for _, name in self._at), key=len)
        # A quote or a line's end in a name may stand in the text in another way.
        quote = settings.format.quote
        self._plain = self._longest.isprintable() and not (quote and quote in self._longest)
        amount = item.amount or item.amount_minor
        self._amount = None if amount is None else names.index(amount)
        self._currency = None if item.currency is None else names.index(item.currency)
        named = [place for place, name in enumerate(names, 1) if name]
        self._behind = range(max(named), len(names))

    def like_item(self, cells: Sequence[str]) -> bool:
        """Whether cells read like those of an item: as many as the header has, with an id, an amount and a currency.

        Without a column of amounts nothing tells an item from other text, unless no cell is blank.
        """
        if len(cells) != len(self._names) or not cells[self._id].strip():
            return False
        if self._amount is None:
            return len(cells) > 1 and all(map(str.strip, cells))
        if _NUMBER.fullmatch(cells[self._amount].strip()) is None:
            return False
        return self._currency is None or isinstance(read_currency(cells[self._currency]), str)

    def refuse_above(self, cells: Sequence[str], *, line: int, above: int) -> None:
        """Raises Fatal where a row above a header that was found, not declared, reads like an item."""
        if self._settings.format.preamble is not None or not self.like_item(cells):
            return
        raise Fatal(
            self._report.make(
                "rows_above_header",
                f"the row stands above the header, which is line {above + 1}, and reads like an item; put the header "
                f"first, or say [input] preamble = {above} if what stands above it are no items",
                line=line,
                value=self._delimiter.join(cells),
            )
        )

    def swallowed(self, lines: Sequence[str], quote: str) -> int | None:
        """Which of the lines that one row takes reads like a row of its own; None if none does.

        A quote too many swallows the rows up to the next one. Control totals prove that no row was lost.
        """
        if self._amount is None or self._settings.expect.items is not None:
            return None
        for place, line in enumerate(lines[1:], 1):
            if line.count(self._delimiter) < len(self._names) - 1:
                continue
            cells = next(csv.reader([line], delimiter=self._delimiter, quotechar=quote), [])
            if self.like_item(cells):
                return place
        return None

    def odd(self, columns: Sequence[Sequence[str]], lines: Sequence[int], text: str) -> dict[int, Problem]:
        """The places of rows that repeat the header or hold something behind the last named column, each with why.

        ``text`` is what the rows were read from: without the header's longest name in it, none of them is a header.
        """
        found: dict[int, Problem] = {}
        if not self._plain or self._longest in text:
            for place, cell in enumerate(columns[self._id]):
                if trimmed(cell) == self._names[self._id] and self._is_header(columns, place):
                    found[place] = self.header_again([column[place] for column in columns], lines[place])
        for behind in self._behind:
            if not any(columns[behind]):
                continue
            for place, text in enumerate(columns[behind]):
                if text.strip() and place not in found:
                    found[place] = self._report.make(
                        "ragged_row",
                        f"the row goes on behind the last column that has a name, in column {behind + 1}; put fields that "
                        "hold the delimiter in quotes, or give that column a name",
                        line=lines[place],
                        value=self._delimiter.join([column[place] for column in columns]),
                    )
        return found

    def header_again(self, cells: Sequence[str], line: int) -> Problem:
        """The problem that a row is no item but the header."""
        return self._report.make(
            "repeated_header",
            "the header stands here again, as where files were joined; remove the line",
            line=line,
            value=self._delimiter.join(cells),
        )

    def _is_header(self, columns: Sequence[Sequence[str]], place: int) -> bool:
        return all(trimmed(columns[at][place]) == name for at, name in self._at)
