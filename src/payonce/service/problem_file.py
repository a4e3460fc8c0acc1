"""All problems of an input as a file: CSV or JSON Lines, by its name's ending."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from payonce.core.errors import Problem, UsageError

COLUMNS: Final = ("file", "line", "column", "value", "code", "message")
_SUFFIXES: Final = (".csv", ".jsonl")


def check_name(path: Path) -> None:
    """Raises UsageError where the problems cannot go there: before the input is read, which may take a while.

    A file that is there is replaced only where it is an earlier list of problems: a slip of the keyboard must not cost
    anybody an input.
    """
    if path.suffix not in _SUFFIXES:
        raise UsageError(
            f"{path}: problems are written as .csv or .jsonl",
            code="unknown_format",
            hint="like --problems problems.csv",
        )
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(
            f"{path} cannot be written", code="file_unwritable", hint="name a file in a folder that exists"
        )
    try:
        head = path.open("rb").read(200)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unwritable(path, error) from None
    known = (",".join(COLUMNS).encode(), b'{"file":')
    if head and not head.removeprefix(b"\xef\xbb\xbf").startswith(known):
        raise UsageError(
            f"{path} is there already and is no list of problems", code="file_exists", hint="name another file"
        )


def write(path: Path, problems: Iterable[Problem]) -> None:
    """Writes all of them, in order; the file appears whole or not at all. Raises UsageError where it cannot."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.suffix == ".csv":
            with part.open("w", encoding="utf-8", newline="") as file:
                table = csv.writer(file)
                table.writerow(COLUMNS)
                table.writerows([getattr(problem, name) for name in COLUMNS] for problem in problems)
        else:
            with part.open("wb") as lines:
                for problem in problems:
                    line = {name: getattr(problem, name) for name in COLUMNS}
                    lines.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written: {error.strerror}", code="file_unwritable", hint="name another file")
