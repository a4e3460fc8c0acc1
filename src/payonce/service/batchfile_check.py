"""Checks the tables of a batch file against their structs and collects every fault, each with its place.

One wrong setting never hides another: a person who has to fix a file should see the whole list at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec

from payonce.core.errors import ConfigError, Problem
from payonce.service.tomltext import line_of

T = TypeVar("T", bound=msgspec.Struct)
_AT_PATH = re.compile(r" - at `\$(.*)`$")


class BatchFileError(ConfigError):
    """The batch file has faults; all that could be found at once are in ``problems``. Nothing was sent."""

    def __init__(self, message: str, *, problems: tuple[Problem, ...], hint: str = "") -> None:
        super().__init__(message, code="bad_batch_file", hint=hint)
        self.problems = problems


class Faults:
    """The faults of one file while it is being checked."""

    def __init__(self, *, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._found: list[Problem] = []

    def add(self, message: str, *, table: str, key: str | None = None, value: object = None, code: str) -> None:
        """Notes a fault. ``value`` is shown, so it must not be a credential."""
        place = f"{table}.{key}" if key else table
        line = line_of(self._text, table=table, key=key)
        shown = None if value is None else str(value)
        self._found.append(Problem(self._file, line, place, shown, code, message))

    def raise_if_any(self) -> None:
        """Raises BatchFileError with everything found, in the order of the file's lines."""
        if not self._found:
            return
        found = tuple(sorted(self._found, key=lambda problem: problem.line or 0))
        first = found[0]
        where = f"{self._file}, line {first.line}" if first.line else self._file
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise BatchFileError(
            f"{where}: {first.column}: {first.message}{more}",
            problems=found,
            hint="every setting is described in docs/reference/batch-file.md",
        )


def check_names(names: Iterable[str], known: Iterable[str], *, table: str, faults: Faults) -> None:
    """Adds a fault for each name that is not known, with the nearest one that is. ``table`` empty: names of tables."""
    choices = sorted(known)
    for name in names:
        if name in choices:
            continue
        near = get_close_matches(name, choices, n=1, cutoff=0.6)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(choices)}"
        if table:
            faults.add(f"no such setting; {advice}", table=table, key=name, code="unknown_setting")
        else:
            faults.add(f"no such table; {advice}", table=name, code="unknown_setting")


def read_table(raw: Mapping[str, Any], struct: type[T], *, table: str, faults: Faults) -> T | None:
    """The table as its struct; every fault is added. A faulty setting counts as not stated, so that the others are
    still checked; None where one that must be stated is missing or faulty."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    check_names(raw, fields, table=table, faults=faults)
    values: dict[str, Any] = {}
    sound = True
    for name, field in fields.items():
        if name not in raw:
            if field.required:
                sound = False
                faults.add(f"missing; expected {allowed(field.type)}", table=table, key=name, code="missing_setting")
            continue
        try:
            values[name] = msgspec.convert(raw[name], type=field.type, strict=True)
        except msgspec.ValidationError as error:
            sound = sound and not field.required
            why = f"expected {allowed(field.type)}" if allowed(field.type) else _plain(error)
            faults.add(f"{raw[name]!r} does not fit; {why}", table=table, key=name, value=raw[name], code="bad_setting")
    return struct(**values) if sound else None


def allowed(kind: Any) -> str:
    """What a setting may be, as its struct describes it; empty where it does not."""
    if get_origin(kind) is Annotated:
        base, *extras = get_args(kind)
        for extra in reversed(extras):
            if isinstance(extra, msgspec.Meta) and extra.description:
                return extra.description
        return allowed(base)
    if get_origin(kind) in (Union, UnionType):
        return next((text for part in get_args(kind) if (text := allowed(part))), "")
    return ""


def _plain(error: msgspec.ValidationError) -> str:
    return _AT_PATH.sub("", str(error)).lower()
