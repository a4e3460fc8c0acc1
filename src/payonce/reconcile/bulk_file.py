"""The outside of a large CSV file: its header, its number of lines, its digest, and picking single rows out of it.

A file is read here without looking at most of it, so it must be plain: UTF-8, one line a row.
"""

from __future__ import annotations

import csv
import hashlib
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
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
# What counts as blank around a cell and is no space: control characters, and no-break spaces in UTF-8.
_ODD_BLANKS: Final = (b"\t", b"\x0b", b"\x0c")
_WIDE_BLANKS: Final = (b"\xc2\xa0", b"\xe2\x80\xaf")


@dataclass(frozen=True, slots=True)
class Shape:
    """A plain file: its layout and header, the lines above its first row, and how many rows its lines must be.

    ``blanks`` says that cells may have blanks around them.
    """

    file: str
    digest: str
    layout: Layout
    head: Head
    skip: int
    rows: int
    type_column: str | None
    blanks: bool = False

    def pick(self, path: Path, numbers: Sequence[int]) -> Table:
        """Some rows by number from 1, in rising order, as a table of the usual kind."""
        texts: list[str] = []
        with path.open("rb") as file:
            before = 0
            for number in numbers:
                line = next(islice(file, number + self.skip - before - 1, None))
                before = number + self.skip
                texts.append(line.decode("utf-8-sig"))
        rows = list(csv.reader(texts, delimiter=self.head.delimiter, strict=True))
        return Table(self.file, self.digest, self.head.names, rows, [number + self.skip for number in numbers])


class NotPlain(Exception):
    """The file is not plain."""


def shape_of(path: Path, layouts: Sequence[Layout], form: FileFormat) -> Shape:
    """Looks at a file. Raises NotPlain."""
    if form.encoding is not None or form.preamble is not None or form.quote != '"':
        raise NotPlain("a declared form")
    with path.open("rb") as file:
        start = file.read(_START)
    try:
        text = start[: start.rfind(b"\n") + 1].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotPlain("no UTF-8") from error
    wanted = [layout.needs for layout in layouts]
    try:
        head = find_header(text, wanted, form, Report(path.name))
    except Fatal as fatal:
        raise NotPlain("no header") from fatal
    needs = choose(head.names, wanted)
    if needs is None or head.above or len(set(head.names)) < len(head.names):
        raise NotPlain("another header")
    layout = next(layout for layout in layouts if layout.needs == needs)
    if layout.name == SIMULATOR.name and "official_price" in head.names:
        raise NotPlain("credits")
    digest, ends, last, blanks = _scan(path, head.delimiter.encode())
    if count_lines(text) != text.count("\n"):
        raise NotPlain("line ends of another kind")
    lines = ends + (0 if last == b"\n" else 1)
    return Shape(path.name, digest, layout, head, head.lines, lines - head.lines, _types(layout, head, text), blanks)


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


def _scan(path: Path, delimiter: bytes) -> tuple[str, int, bytes, bool]:
    """The SHA-256, the number of line feeds, the last byte, and whether cells may have blanks around them. A carriage
    return on its own is not plain, nor is a blank around a cell that is no space."""
    digest, ends, returns, pairs, last, blanks = hashlib.sha256(), 0, 0, 0, b"", False
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
            joined = last + block
            blanks = blanks or _beside(b" ", joined, delimiter)
            odd = _ODD_BLANKS if joined.isascii() else (*_ODD_BLANKS, *_WIDE_BLANKS)
            if any(_beside(blank, joined, delimiter) for blank in odd if blank != delimiter):
                raise NotPlain("odd blanks")
            last = block[-1:]
    if returns != pairs:
        raise NotPlain("bare carriage returns")
    return digest.hexdigest(), ends, last, blanks


def _beside(blank: bytes, block: bytes, delimiter: bytes) -> bool:
    """Whether a blank stands beside a delimiter, a quote or an end of line."""
    if blank not in block:
        return False
    return any(blank + mark in block or mark + blank in block for mark in (delimiter, b'"', b"\n", b"\r"))
