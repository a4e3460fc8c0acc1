"""Ids that occur twice, ids that differ only in what people overlook, and targets that several items act on.

An id that occurs twice is named with both lines. Where repeats are allowed, only one that is the same in every respect
is left out; of rows that share an id and differ in anything, none is taken, since no rule says which one is meant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from payonce.intake.hashes import Hashes
from payonce.intake.ids import alike, folded
from payonce.intake.report import Log, Report
from payonce.intake.settings import OnDuplicate
from payonce.intake.spool import Spool
from payonce.intake.suspects import Group, Suspect, Suspects
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
    """Takes in the ids and targets of a reading and, at its end, says what occurs more than once.

    Equal ids are equal when folded, so folded ids alone are watched; only what is found twice is looked at closely.
    """

    def __init__(self, report: Report, *, id_column: str, targets: bool) -> None:
        self._report = report
        self._column = id_column
        self._folded = Hashes()
        self._targets = Hashes() if targets else None
        self._refused: Log[Refused] = Log(Refused)

    def add(self, sound: Sound, refused: Sequence[tuple[int, str]]) -> None:
        """Takes in the items of a block, and line and id of its refused rows."""
        self._folded.add(_folded_hashes(sound.ids))
        if self._targets is not None and sound.targets is not None:
            self._targets.add(list(map(hash, sound.targets)))
        if refused:
            self._folded.add(_folded_hashes([text for _, text in refused]))
            for line, text in refused:
                self._refused.add(Refused(line, text))

    def close(self) -> None:
        """Gives the disk space back."""
        for column in (self._folded, self._targets, self._refused):
            if column is not None:
                column.close()

    def resolve(self, spool: Spool, *, on_duplicate: OnDuplicate) -> Shared:
        """Reports what occurs more than once and drops repeated items from the spool."""
        suspects, count = self._folded.repeated(limit=_SUSPECTS)
        if count:
            with TemporaryDirectory(prefix="payonce-") as folder:
                table = Suspects(Path(folder) / "ids.db")
                try:
                    self._fill(table, spool, suspects if count == len(suspects) else None)
                    self._near(table)
                    spool.drop(self._judge(table, spool, on_duplicate))
                finally:
                    table.close()
        if self._targets is None:
            return Shared(0, ())
        shared, shared_count = self._targets.repeated(limit=_EXAMPLES)
        return Shared(shared_count, self._shared(spool, shared) if shared else ())

    def _fill(self, table: Suspects, spool: Spool, suspects: frozenset[int] | None) -> None:
        encode = msgspec.json.Encoder(order="sorted").encode
        place = 0
        for batch, lines in spool.records():
            hashes = _folded_hashes([record.id for record in batch])
            table.add(
                [
                    Suspect(record.id, place + index, line, hashlib.sha256(encode(record)).digest())
                    for index, (record, line, hashed) in enumerate(zip(batch, lines, hashes, strict=True))
                    if suspects is None or hashed in suspects
                ]
            )
            place += len(batch)
        table.add([Suspect(entry.id, None, entry.line, b"") for entry in self._refused])

    def _judge(self, table: Suspects, spool: Spool, on_duplicate: OnDuplicate) -> bytearray:
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

    def _refuse(self, group: Group, line: int, *, again: bool) -> None:
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

    def _near(self, table: Suspects) -> None:
        count, pair = table.near()
        if not count:
            return
        (first, first_line), (second, second_line) = pair
        # What looks the same on a screen is told apart by its characters' numbers.
        one, other = map(ascii if alike(first) == alike(second) else repr, (first, second))
        self._report.note(
            "near_ids",
            f"the ids {one} (line {first_line}) and {other} (line {second_line}) differ only in case, blanks, "
            "leading zeros or invisible characters; both are taken, as two items",
            line=second_line,
            count=count,
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


def _folded_hashes(ids: Sequence[str]) -> list[int]:
    """The hashes of the folded ids, by fewer steps where ids are as plain as most are."""
    if not ids:
        return []
    joined = "\n".join(ids)
    # Sound ids hold no other white space than blanks, as long as they are ASCII.
    if not joined.isascii() or " " in joined:
        return [hash(folded(text)) for text in ids]
    if joined[:1] == "0" or "\n0" in joined:
        return [hash(text.lstrip("0")) for text in joined.lower().split("\n")]
    lower = joined.lower()
    return list(map(hash, ids if lower == joined else lower.split("\n")))
