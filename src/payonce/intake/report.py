"""What a reading finds: problems, ignored rows, notes and counts, kept in memory as far as they are few.

A file of ten million rows may have ten million problems; all of them are kept, the rest of them in an unlinked
temporary file. Rows in = items + skipped + refused, always: each row is counted in once, and out once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Final, Generic, TypeVar

import msgspec

from payonce.core.errors import Problem
from payonce.intake.scratch import give_back, scratch_file

T = TypeVar("T")
IN_MEMORY: Final = 1000
SHOWN: Final = 120
# A message that lists many columns is longer than a value.
LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class Ignored:
    """A row that is no item and no problem: blank, above the header, or an allowed duplicate."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth knowing that stops nothing: how often, and the first line that shows it."""

    code: str
    message: str
    count: int = 1
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """``rows`` read = ``items`` + ``skipped`` + ``refused``. The header is no row."""

    rows: int
    items: int
    skipped: int
    refused: int


class Fatal(Exception):
    """The reading cannot go on, for these reasons. Never leaves the intake: they end as its problems."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


class Log(Generic[T]):
    """A list that grows without bound in bounded memory. Iterating gives everything, in order."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._head: list[T] = []
        self._rest: IO[bytes] | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, entry: T) -> None:
        """Appends one entry. Raises OSError where there is no room for the temporary file."""
        self._count += 1
        if len(self._head) < IN_MEMORY:
            self._head.append(entry)
            return
        if self._rest is None:
            self._rest = scratch_file()
        self._rest.write(msgspec.json.encode(entry) + b"\n")

    def first(self, limit: int) -> tuple[T, ...]:
        """The first few; at most those that are in memory."""
        return tuple(self._head[:limit])

    def __iter__(self) -> Iterator[T]:
        yield from self._head
        if self._rest is not None:
            decoder = msgspec.json.Decoder(self._kind)
            self._rest.seek(0)
            for line in self._rest:
                yield decoder.decode(line)
            self._rest.seek(0, 2)

    def written(self) -> None:
        """Everything was added: it is in the file. Raises OSError where there is no room."""
        if self._rest is not None:
            self._rest.flush()

    def close(self) -> None:
        """Gives the temporary file back."""
        if self._rest is not None:
            give_back(self._rest)


def printable(text: str) -> str:
    """A text that can be written anywhere: a lone surrogate, which stands for a byte that was not read, as its code."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def cut(text: str, most: int = SHOWN) -> str:
    """A text short enough to be shown, with its length where it is not all of it."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


@dataclass(slots=True)
class Report:
    """Collects what one reading finds. ``file`` is the name that problems show, ``named_in`` the setting or option that
    names the file."""

    file: str
    problems: Log[Problem] = field(default_factory=lambda: Log(Problem))
    ignored: Log[Ignored] = field(default_factory=lambda: Log(Ignored))
    codes: Counter[str] = field(default_factory=Counter)
    blocking: int = 0
    rows: int = 0
    refused: int = 0
    _notes: dict[str, Note] = field(default_factory=dict)
    _pending: list[Problem] = field(default_factory=list)
    _passed: list[Ignored] = field(default_factory=list)
    named_in: str = "[batch] input"

    def problem(
        self, code: str, message: str, *, line: int | None, column: str | None = None, value: str | None = None
    ) -> None:
        """A problem of one row. The caller counts the row as refused, once."""
        self.codes[code] += 1
        self._pending.append(self.make(code, message, line=line, column=column, value=value))

    def refuse(self, problems: Sequence[Problem]) -> None:
        """The problems of one row, which counts as refused if there are any."""
        self.codes.update(problem.code for problem in problems)
        self._pending += problems
        self.refused += bool(problems)

    def flush(self) -> None:
        """The problems and ignored rows of a stretch are all there: they are kept in the order of their lines."""
        for problem in sorted(self._pending, key=lambda problem: problem.line or 0):
            self.problems.add(problem)
        self._pending.clear()
        for row in sorted(self._passed, key=lambda row: row.line):
            self.ignored.add(row)
        self._passed.clear()

    def block(self, problem: Problem) -> None:
        """A problem of the input as a whole, which skipping rows does not cure."""
        self.flush()
        self.codes[problem.code] += 1
        self.blocking += 1
        self.problems.add(problem)

    def make(
        self, code: str, message: str, *, line: int | None = None, column: str | None = None, value: str | None = None
    ) -> Problem:
        """A problem of this file; a long value is cut for showing."""
        value, column = (None if text is None else printable(cut(text)) for text in (value, column))
        return Problem(self.file, line, column, value, code, printable(cut(message, LONGEST)))

    def ignore(self, line: int, why: str) -> None:
        """A row that was read and is no item; it shows once ``flush`` was called."""
        self._passed.append(Ignored(line, why))

    def note(self, code: str, message: str, *, line: int | None = None, count: int = 1) -> None:
        """Something worth knowing; notes of one code are counted together, the first one's text and line stay."""
        known = self._notes.get(code)
        if known is None:
            self._notes[code] = Note(code, message, count, line)
        else:
            self._notes[code] = replace(known, count=known.count + count)

    @property
    def notes(self) -> tuple[Note, ...]:
        """All notes, in the order in which their codes first came up."""
        return tuple(self._notes.values())

    def close(self) -> None:
        """Gives temporary files back."""
        self.problems.close()
        self.ignored.close()
