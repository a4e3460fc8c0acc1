"""Ids that occur twice, ids that differ only in what people overlook, and targets that several items act on.

An id that occurs twice is named with both lines. Where repeats are allowed, only one that is the same in every respect
is left out; of rows that share an id and differ in anything, none is taken, since no rule says which one is meant.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from payonce.intake.hashes import Hashes
from payonce.intake.ids import folded
from payonce.intake.report import Log, Report
from payonce.intake.settings import OnDuplicate
from payonce.intake.spool import Spool
from payonce.intake.validate import Sound

# Beyond so many suspects every item is looked at; a set of them would no longer be small.
_SUSPECTS: Final = 300_000
_EXAMPLES: Final = 1000
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that was refused though its id is sound: it still counts where ids are compared."""

    line: int
    id: str


@dataclass(frozen=True, slots=True)
class Shared:
    """Targets that more than one item acts on: how many, and the first few with their lines."""

    count: int
    examples: tuple[tuple[str, tuple[int, ...]], ...]


class Duplicates:
    """Takes in the ids and targets of a reading and, at its end, says what occurs more than once."""

    def __init__(self, report: Report, *, id_column: str, targets: bool) -> None:
        self._report = report
        self._column = id_column
        self._ids = Hashes()
        self._folded = Hashes()
        self._targets = Hashes() if targets else None
        self._refused: Log[Refused] = Log(Refused)

    def add(self, sound: Sound, refused: Sequence[tuple[int, str]]) -> None:
        """Takes in the items of a block, and line and id of its refused rows."""
        ids = [*sound.ids, *(text for _, text in refused)]
        hashes = list(map(hash, ids))
        self._ids.add(hashes)
        self._folded.add(_folded_hashes(ids, hashes) if ids else [])
        if self._targets is not None and sound.targets is not None:
            self._targets.add(list(map(hash, sound.targets)))
        for line, text in refused:
            self._refused.add(Refused(line, text))

    def close(self) -> None:
        """Gives the disk space back."""
        for column in (self._ids, self._folded, self._targets, self._refused):
            if column is not None:
                column.close()

    def resolve(self, spool: Spool, *, on_duplicate: OnDuplicate) -> Shared:
        """Reports what occurs more than once and drops repeated items from the spool."""
        suspects, count = self._ids.repeated(limit=_SUSPECTS)
        near, near_count = self._folded.repeated(limit=_EXAMPLES)
        shared, shared_count = self._targets.repeated(limit=_EXAMPLES) if self._targets else (frozenset(), 0)
        if near_count > count or near - suspects:
            self._near(spool, near)
        if count:
            with TemporaryDirectory(prefix="payonce-") as folder:
                table = _Table(Path(folder) / "ids.db")
                try:
                    self._fill(table, spool, suspects if count == len(suspects) else None)
                    spool.drop(self._judge(table, spool, on_duplicate))
                finally:
                    table.close()
        return Shared(shared_count, self._shared(spool, shared) if shared else ())

    def _fill(self, table: _Table, spool: Spool, suspects: frozenset[int] | None) -> None:
        encode = msgspec.json.Encoder(order="sorted").encode
        place = 0
        for batch, lines in spool.records():
            rows = [
                (record.id, place + index, line, hashlib.sha256(encode(record)).digest())
                for index, (record, line) in enumerate(zip(batch, lines, strict=True))
                if suspects is None or hash(record.id) in suspects
            ]
            table.add(rows)
            place += len(batch)
        table.add([(entry.id, None, entry.line, b"") for entry in self._refused])

    def _judge(self, table: _Table, spool: Spool, on_duplicate: OnDuplicate) -> bytearray:
        """Which items are left out, each with its problem or its ignored row."""
        dropped = bytearray(spool.count)
        for group in table.groups():
            skip = group.same and on_duplicate == "skip"
            for number, (place, line) in enumerate(table.rows(group.coded)):
                if place is not None and (number or not group.same):
                    dropped[place] = 1
                    self._report.refused += not skip
                if skip and number:
                    self._report.ignore(line, f"the same as line {group.first} in every respect")
                elif number or not group.same:
                    self._refuse(group, line, again=number > 0)
            self._report.flush()
        return dropped

    def _refuse(self, group: _Group, line: int, *, again: bool) -> None:
        if group.same:
            why = f"stands in line {group.first} already, with the same content; remove this row, or allow such rows with "
            why += '[batch] on_duplicate = "skip"'
        elif again:
            why = f"stands in line {group.first} too, with other content; one id is one item, so none of them is taken"
        else:
            why = (
                f"stands in line {group.second} again, with other content; one id is one item, so none of them is taken"
            )
        value = group.coded.decode("utf-8")
        self._report.problem("duplicate_id", f"the id {why}", line=line, column=self._column, value=value)

    def _near(self, spool: Spool, near: frozenset[int]) -> None:
        seen: dict[str, tuple[str, int]] = {}
        for text, line in _ids(spool):
            key = folded(text)
            if hash(key) not in near:
                continue
            other = seen.setdefault(key, (text, line))
            if other[0] != text:
                self._report.note(
                    "near_ids",
                    f"the ids {other[0]!r} (line {other[1]}) and {text!r} (line {line}) differ only in case, blanks, leading "
                    "zeros or invisible characters; both are taken, as two items",
                    line=line,
                )

    def _shared(self, spool: Spool, shared: frozenset[int]) -> tuple[tuple[str, tuple[int, ...]], ...]:
        lines: dict[str, list[int]] = {}
        for batch, starts in spool.records():
            for record, line in zip(batch, starts, strict=True):
                if hash(record.target) in shared:
                    known = lines.setdefault(record.target, [])
                    if len(known) < _SHOWN:
                        known.append(line)
        return tuple((target, tuple(known)) for target, known in lines.items() if len(known) > 1)[:_SHOWN]


def _ids(spool: Spool) -> Iterator[tuple[str, int]]:
    for batch, lines in spool.records():
        yield from zip((record.id for record in batch), lines, strict=True)


def _folded_hashes(ids: Sequence[str], hashes: list[int]) -> list[int]:
    """The hashes of the folded ids, by fewer steps where ids are as plain as most are."""
    joined = "\n".join(ids)
    if not joined.isascii() or len(joined.split()) != len(ids):
        return [hash(folded(text)) for text in ids]
    lower = joined.lower()
    if joined[:1] == "0" or "\n0" in joined:
        return [hash(text.lstrip("0")) for text in lower.split("\n")]
    return hashes if lower == joined else list(map(hash, lower.split("\n")))


@dataclass(frozen=True, slots=True)
class _Group:
    """The rows of one id: whether all have the same content, and the lines of the first two."""

    coded: bytes
    same: bool
    first: int
    second: int


class _Table:
    """The suspects in a SQLite file, so that even millions of them fit; unique to one reading and thrown away."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=OFF")
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.execute("CREATE TABLE seen (id BLOB NOT NULL, place INTEGER, line INTEGER NOT NULL, content BLOB)")
        self._db.execute("BEGIN")

    def add(self, rows: Sequence[tuple[str, int | None, int, bytes]]) -> None:
        """Appends rows; ids are kept as UTF-8 bytes, which SQLite compares exactly."""
        coded = [(text.encode("utf-8"), place, line, content) for text, place, line, content in rows]
        self._db.executemany("INSERT INTO seen VALUES (?, ?, ?, ?)", coded)

    def groups(self) -> Iterator[_Group]:
        """The ids that occur more than once, in the order of their first lines."""
        self._db.execute("CREATE INDEX by_id ON seen (id, line)")
        found = self._db.execute(
            "SELECT id, count(DISTINCT content) = 1 AND count(place) = count(*), min(line) FROM seen"
            " GROUP BY id HAVING count(*) > 1 ORDER BY min(line)"
        )
        for coded, same, first in found:
            (second,) = self._db.execute(
                "SELECT line FROM seen WHERE id = ? ORDER BY line LIMIT 1, 1", (coded,)
            ).fetchone()
            yield _Group(coded, bool(same), first, second)

    def rows(self, coded: bytes) -> Iterator[tuple[int | None, int]]:
        """Place and line of each row of an id, in the order of the lines."""
        return iter(self._db.execute("SELECT place, line FROM seen WHERE id = ? ORDER BY line", (coded,)))

    def close(self) -> None:
        """Closes the file; the caller removes it."""
        self._db.close()
