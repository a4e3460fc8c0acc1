"""What calamine does not tell of a worksheet: cells that hold a formula's error, or a formula that nobody computed, which
it gives as empty ones, and rows that are hidden. Taken from the sheet's XML, which is looked through only where a quick
search finds any such thing.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Final
from xml.parsers import expat

from payonce.intake.shown import Fault

_CHUNK: Final = 1 << 20
# A formula, an error, a hidden row; an attribute may stand in either sort of quotes, a name behind a prefix.
_WORTH: Final = re.compile(rb"<(?:\w+:)?f[ />]|\bt=[\"']e[\"']|\bhidden=[\"'](?:1|true)[\"']")
_LONGEST: Final = 64
_DOCUMENT: Final = "/officeDocument"
_PLACE: Final = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_ERROR: Final = "a formula's error; mend the formula and save the file again"
_NOT_COMPUTED: Final = "a formula without a value; open the file in a spreadsheet, which computes it, and save it"


class ScanError(Exception):
    """The workbook's parts cannot be looked through."""


@dataclass(slots=True)
class Scan:
    """What was found, rows and columns from 0. ``faults``: by row, then by column."""

    faults: dict[int, dict[int, Fault]] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)


def scan(data: bytes, sheet: str) -> Scan:
    """Looks one worksheet through. Raises ScanError where the workbook is broken."""
    found = Scan()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            part = _part_of(parts, sheet)
            with parts.open(part) as file:
                if not _worth_it(file):
                    return found
            with parts.open(part) as file:
                _Cells(found).read(file)
    except (
        *(zipfile.BadZipFile, zlib.error, expat.ExpatError, KeyError, IndexError, ValueError),
        *(OSError, EOFError, NotImplementedError, RuntimeError),
    ) as error:
        raise ScanError(str(error)) from None
    return found


def _worth_it(file: IO[bytes]) -> bool:
    kept = b""
    while data := file.read(_CHUNK):
        if _WORTH.search(kept + data):
            return True
        kept = data[-_LONGEST:]
    return False


def _part_of(parts: zipfile.ZipFile, sheet: str) -> str:
    """The name of the part that holds a worksheet: by its relation to the workbook."""
    book = _related(parts, "")[_DOCUMENT][0][1]
    targets = {name: target for found in _related(parts, book).values() for name, target in found}
    for name, attributes in _elements(parts.read(book)):
        if name == "sheet" and attributes.get("name") == sheet:
            (relation,) = [value for key, value in attributes.items() if _local(key) == "id"]
            return targets[relation]
    raise KeyError(sheet)


def _related(parts: zipfile.ZipFile, part: str) -> dict[str, list[tuple[str, str]]]:
    """The parts that one is related to, by the end of the relation's type: its id and the part's name."""
    folder, file = posixpath.split(part)
    found: dict[str, list[tuple[str, str]]] = {}
    for name, attributes in _elements(parts.read(posixpath.join(folder, "_rels", f"{file}.rels"))):
        if name != "Relationship":
            continue
        target = attributes["Target"]
        path = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
        kind = "/" + attributes["Type"].rpartition("/")[2]
        found.setdefault(kind, []).append((attributes["Id"], path))
    return found


def _elements(data: bytes) -> list[tuple[str, dict[str, str]]]:
    """The elements of a small part, in their order: local name and attributes."""
    found: list[tuple[str, dict[str, str]]] = []
    parser = _parser()
    parser.StartElementHandler = lambda name, attributes: found.append((_local(name), attributes))
    parser.Parse(data, True)
    return found


def _parser() -> expat.XMLParserType:
    """A parser that takes no document type: no workbook has one, and entities are its only use."""

    def refuse(*_: object) -> None:
        raise ScanError("it holds a document type")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    return parser


def _local(name: str) -> str:
    return name.rpartition(":")[2]


class _Cells:
    """Reads a worksheet's XML piece by piece and keeps what is wrong with its cells."""

    def __init__(self, found: Scan) -> None:
        self._found = found
        self._row = self._column = -1
        self._kind = ""
        self._text: dict[str, str] = {}
        self._inside: str | None = None

    def read(self, file: IO[bytes]) -> None:
        """Takes all of it. Raises ExpatError where it is no XML."""
        parser = _parser()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        for data in _pieces(file):
            parser.Parse(data)
        parser.Parse(b"", True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match _local(name):
            case "row":
                self._row = int(attributes["r"]) - 1 if "r" in attributes else self._row + 1
                self._column = -1
                if attributes.get("hidden") in ("1", "true"):
                    self._found.hidden.add(self._row)
            case "c":
                self._row, self._column = _place(attributes.get("r"), self._row, self._column + 1)
                self._kind = attributes.get("t", "n")
                self._text = {}
            case "f" | "v" as inside:
                self._inside = inside
                self._text[inside] = ""

    def _characters(self, text: str) -> None:
        if self._inside is not None:
            self._text[self._inside] += text

    def _end(self, name: str) -> None:
        match _local(name):
            case "f" | "v":
                self._inside = None
            case "c":
                fault = self._fault()
                if fault is not None:
                    self._found.faults.setdefault(self._row, {})[self._column] = fault

    def _fault(self) -> Fault | None:
        value = self._text.get("v")
        if self._kind == "e":
            return Fault(value or "#ERROR", _ERROR)
        # A formula whose value is an empty text has one: it says that it is text.
        if "f" in self._text and (value is None or (not value and self._kind != "str")):
            return Fault(f"={self._text['f']}", _NOT_COMPUTED)
        return None


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while data := file.read(_CHUNK):
        yield data


def _place(reference: str | None, row: int, column: int) -> tuple[int, int]:
    """Row and column of a cell, from 0; where nothing says so, the next one."""
    found = _PLACE.fullmatch(reference or "")
    if found is None:
        return row, column
    number = 0
    for letter in found[1]:
        number = number * 26 + ord(letter) - ord("A") + 1
    return int(found[2]) - 1, number - 1
