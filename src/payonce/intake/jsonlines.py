"""JSON Lines: one object a line. Ids, targets, amounts and currencies are taken by name, all else is carried as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from payonce.intake.block import Block
from payonce.intake.columns import Layout, layout
from payonce.intake.jsonvalues import BadJson, decode_all, decode_one
from payonce.intake.rawtext import Segment, TextFile, split_lines
from payonce.intake.report import Fatal, Report
from payonce.intake.settings import TEMPLATE_NAMES, InputSettings

# Names beyond so many are carried all the same, but no longer listed.
MOST_NAMES: Final = 5000


class JsonLines:
    """One reading of a JSON Lines file. ``columns`` are the names of all objects together, as they first come up."""

    def __init__(self, path: Path, settings: InputSettings, *, report: Report) -> None:
        self._settings = settings
        self._report = report
        self._file = TextFile(path, report, encoding=settings.format.encoding)
        self._names: dict[str, None] = {}
        self._layout: Layout | None = None
        self._roles = settings.item.roles()
        self._mapped = frozenset(self._roles.values())
        self._carried = None if settings.item.fields is None else frozenset(settings.item.fields) - self._mapped

    @property
    def columns(self) -> tuple[str, ...]:
        """All names found so far, in the order in which they first came up."""
        return tuple(self._names)

    @property
    def digest(self) -> str:
        """The SHA-256 of the file's bytes."""
        return self._file.digest

    def blocks(self) -> Iterator[Block]:
        """All sound objects. Raises Fatal where the file as a whole cannot be used."""
        for segment in self._file.segments():
            objects, lines = self._objects(segment)
            if objects:
                self._check_names(objects, lines[0])
                yield self._block(objects, lines)

    def _objects(self, segment: Segment) -> tuple[list[dict[str, Any]], Sequence[int]]:
        text = segment.text
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        if segment.line == 1 and text.lstrip().startswith("["):
            raise Fatal(
                self._report.make(
                    "wrong_format",
                    "the file is one JSON list; JSON Lines holds one object a line (jq -c '.[]' makes that of a list)",
                    line=1,
                )
            )
        count = text.count("\n") + (not text.endswith("\n"))
        if not segment.doubtful:
            objects = decode_all(text.removesuffix("\n"), count)
            if objects is not None:
                self._report.rows += count
                return objects, range(segment.line, segment.line + count)
        return self._one_by_one(text, segment.line)

    def _one_by_one(self, text: str, first: int) -> tuple[list[dict[str, Any]], list[int]]:
        objects: list[dict[str, Any]] = []
        lines: list[int] = []
        for number, line in enumerate(split_lines(text), first):
            self._report.rows += 1
            if not line.strip():
                self._report.ignore(number, "blank")
                continue
            try:
                objects.append(decode_one(line.rstrip("\n")))
                lines.append(number)
            except BadJson as bad:
                self._report.refused += 1
                self._report.problem(bad.code, bad.message, line=number, value=line.strip())
        return objects, lines

    def _check_names(self, objects: list[dict[str, Any]], line: int) -> None:
        """New names are checked as a file's header is; the mapped ones must come up in the first objects."""
        fresh = dict.fromkeys(name for names in set(map(tuple, objects)) for name in names if name not in self._names)
        if not fresh and self._layout is not None:
            return
        if self._layout is None:
            # Sorted by the first object that has them, so that messages list them as the file does.
            fresh = dict.fromkeys(name for found in objects for name in found)
        if len(self._names) > MOST_NAMES:
            fresh = {name: None for name in fresh if name in TEMPLATE_NAMES}
        self._names.update(fresh)
        self._layout = layout(tuple(self._names), self._settings, report=self._report, line=line)

    def _block(self, objects: list[dict[str, Any]], lines: Sequence[int]) -> Block:
        def column(role: str) -> list[Any] | None:
            name = self._roles.get(role)
            return None if name is None else [found.get(name) for found in objects]

        return Block(
            lines,
            column("id") or [],
            column("target"),
            column("amount") or column("amount_minor"),
            column("currency"),
            self._fields(objects),
            typed=True,
        )

    def _fields(self, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if self._carried is not None:
            carried = self._carried
            return [{name: value for name, value in found.items() if name in carried} for found in objects]
        for found in objects:
            for name in self._mapped:
                found.pop(name, None)
        return objects
