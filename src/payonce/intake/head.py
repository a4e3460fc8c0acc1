"""Finds the header of a delimited text file: its delimiter, and how many lines stand above it.

Proof is the mapping itself: the line that holds every mapped column, under one delimiter, is the header. Where no line
does, the nearest candidate is named with what it lacks; nothing is assumed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from payonce.intake.columns import wanted
from payonce.intake.ids import trimmed
from payonce.intake.rawtext import split_lines
from payonce.intake.report import Fatal, Report
from payonce.intake.settings import InputSettings

_DELIMITERS: Final = (",", ";", "\t", "|")
_RECORDS: Final = 100
_SEP_LINE: Final = re.compile(r'"?sep=(.)"?[\r\n]*', re.IGNORECASE)


class Records(Protocol):
    """What ``csv.reader`` gives: rows, and how many lines they took so far."""

    @property
    def line_num(self) -> int:
        """The number of lines taken."""
        ...

    def __iter__(self) -> Iterator[list[str]]:
        """The rows."""
        ...


@dataclass(frozen=True, slots=True)
class Head:
    """Where the header is: ``above`` lines before it, ``lines`` lines of its own, its cells without outer blanks."""

    delimiter: str
    above: int
    lines: int
    names: tuple[str, ...]

    def found(self, names: tuple[str, ...]) -> int:
        """How many of some names this line holds."""
        return len(set(names) & set(self.names))


def find_head(text: str, settings: InputSettings, report: Report) -> Head:
    """The header in the first lines of a file. Raises Fatal where there is nothing that could be one."""
    needed = wanted(settings.item)
    lines = split_lines(text)
    delimiters, above = _given(lines, settings)
    candidates: list[Head] = []
    for delimiter in delimiters:
        for head in _candidates(lines, delimiter, above=above, quote=settings.format.quote):
            candidates.append(head)
            if settings.format.preamble is not None or head.found(needed) == len(needed):
                break
    if not candidates:
        raise Fatal(report.make("no_header", "the file has no header line", line=1))
    # More of the mapped columns, then more columns; then the upper line, then the usual delimiter, which max keeps.
    best = max(candidates, key=lambda head: (head.found(needed), len(head.names), -head.above))
    if best.found(needed) == 0 and settings.format.preamble is None:
        top = min(head.above for head in candidates)
        best = max((head for head in candidates if head.above == top), key=lambda head: len(head.names))
    return best


def _given(lines: list[str], settings: InputSettings) -> tuple[tuple[str, ...], int]:
    """The delimiters to try and the lines to leave out, from the settings and a first line ``sep=;``."""
    declared = settings.format.delimiter
    above = settings.format.preamble or 0
    mark = _SEP_LINE.fullmatch(lines[0]) if lines else None
    if mark is not None:
        return (declared or mark[1],), max(above, 1)
    if declared is not None:
        return (declared,), above
    return _DELIMITERS, above


def _candidates(lines: list[str], delimiter: str, *, above: int, quote: str) -> Iterator[Head]:
    """The first records that are not blank, as headers."""
    reader = records(lines[above:], delimiter=delimiter, quote=quote, strict=False)
    before = 0
    try:
        for _, record in zip(range(_RECORDS), reader, strict=False):
            names = tuple(map(trimmed, record))
            if any(names):
                yield Head(delimiter, above + before, reader.line_num - before, names)
            before = reader.line_num
    except csv.Error:
        return


def records(lines: list[str], *, delimiter: str, quote: str, strict: bool) -> Records:
    """A reader over lines; an empty ``quote`` means that quotes are characters like others."""
    if not quote:
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=strict)
    return csv.reader(lines, delimiter=delimiter, quotechar=quote, doublequote=True, strict=strict)
