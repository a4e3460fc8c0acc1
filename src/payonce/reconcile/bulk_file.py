"""The outside of a large CSV file: its header, its number of lines, its digest, and picking single rows out of it.

A file is read here without looking at most of it, so it must be plain: UTF-8, one line a row.
"""

from __future__ import annotations

import csv
import hashlib
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from payonce.intake.head import Head
from payonce.intake.rawtext import count_lines
from payonce.intake.report import Fatal, Report
from payonce.intake.settings import FileFormat
from payonce.reconcile.layout import Layout
from payonce.reconcile.mapping import TYPE_NAMES
from payonce.reconcile.reports import SIMULATOR
from payonce.reconcile.rows import type_column
from payonce.reconcile.table import Table, choose, find_header

_START: Final = 1 << 18
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Shape:
    """A plain file: its layout and header, the lines above its first row, and how many rows its lines must be."""

    file: str
    digest: str
    layout: Layout
    head: Head
    skip: int
    rows: int
    type_column: str | None

    def pick(self, path: Path, numbers: Sequence[int]) -> Table:
        """Some rows by number from 1, in rising order, as a table of the usual kind."""
        texts: list[str] = []
        wanted = iter(numbers)
        target = next(wanted, None)
        if target is not None:
            with path.open(encoding="utf-8-sig", newline="") as file:
                for line, text in enumerate(file, 1 - self.skip):
                    if line == target:
                        texts.append(text)
                        target = next(wanted, None)
                        if target is None:
                            break
        rows = list(csv.reader(texts, delimiter=self.head.delimiter, strict=True))
        return Table(self.file, self.digest, self.head.names, rows, [number + self.skip for number in numbers])


class NotPlain(Exception):
    """The file is not plain."""


def shape_of(path: Path, layouts: Sequence[Layout]) -> Shape:
    """Looks at a file. Raises NotPlain."""
    with path.open("rb") as file:
        start = file.read(_START)
    try:
        text = start[: start.rfind(b"\n") + 1].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotPlain("no UTF-8") from error
    wanted = [layout.needs for layout in layouts]
    try:
        head = find_header(text, wanted, FileFormat(), Report(path.name))
    except Fatal as fatal:
        raise NotPlain("no header") from fatal
    needs = choose(head.names, wanted)
    if needs is None or head.above:
        raise NotPlain("another header")
    layout = next(layout for layout in layouts if layout.needs == needs)
    if layout.name == SIMULATOR.name and "official_price" in head.names:
        raise NotPlain("credits")
    digest, ends, last = _scan(path)
    if count_lines(text) != text.count("\n"):
        raise NotPlain("line ends of another kind")
    lines = ends + (0 if last == b"\n" else 1)
    return Shape(path.name, digest, layout, head, head.lines, lines - head.lines, _types(layout, head, text))


def _types(layout: Layout, head: Head, text: str) -> str | None:
    """The type column: the layout's, or, as in small files, one that nobody named and that tells fees from executions."""
    if layout.type is not None:
        return layout.type if layout.type in head.names else None
    if layout.name != "[statement]":
        return None
    named = [name for name in head.names if name.lower() in TYPE_NAMES]
    if named:
        rows = list(csv.reader(text.splitlines()[head.lines :], delimiter=head.delimiter))
        if type_column(Table("", "", head.names, rows, list(range(len(rows))))) is None:
            raise NotPlain("a type column that only the whole file explains")
        return named[0]
    return None


def _scan(path: Path) -> tuple[str, int, bytes]:
    """The SHA-256, the number of line feeds, and the last byte. A carriage return on its own is not plain."""
    digest, ends, returns, pairs, last = hashlib.sha256(), 0, 0, 0, b""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        for start in range(0, len(view), _BLOCK):
            block = view[start : start + _BLOCK]
            digest.update(block)
            ends += block.count(b"\n")
            if b"\r" in block:
                returns += block.count(b"\r")
                pairs += block.count(b"\r\n") + (last == b"\r" and block[:1] == b"\n")
            elif last == b"\r" and block[:1] == b"\n":
                pairs += 1
            last = block[-1:]
    if returns != pairs:
        raise NotPlain("bare carriage returns")
    return digest.hexdigest(), ends, last
