"""Reads an input: validates every row, decides how its numbers are written, and hands over sound items or problems.

A reading assumes the number format that the first rows suggest; where the whole file then says otherwise, it is read
once more with the format that it proves. No content ends in an exception: what is wrong is a problem of the result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from payonce.core.errors import UsageError
from payonce.intake.numbers import number_format
from payonce.intake.reading import Reading
from payonce.intake.report import Report
from payonce.intake.result import Intake
from payonce.intake.settings import InputSettings, Query


def read(settings: InputSettings, *, base_dir: Path, operation: str) -> Intake:
    """Reads and validates an input; relative paths start from ``base_dir``.

    Everything wrong with the input is in the result's ``problems``; ``ok`` says whether it may be sealed. Memory stays
    flat: items, ignored rows and problems wait in temporary files. Raises UsageError only where those find no room.
    """
    name = source_name(settings)
    try:
        return _settle(settings, Report(name), base_dir=base_dir, operation=operation)
    except OSError as error:
        raise UsageError(
            f"the items of {name} could not be kept in a temporary file: {error.strerror}",
            code="no_temporary_space",
            hint="set TMPDIR to a folder with room for the input, twice over",
        ) from None


def source_name(settings: InputSettings) -> str:
    """How problems name the input: the path as given, or the query's address without its credentials."""
    if isinstance(settings.source, Query):
        return settings.source.shown
    return settings.source


def _settle(settings: InputSettings, report: Report, *, base_dir: Path, operation: str) -> Intake:
    declared = number_format(decimal=settings.format.decimal, thousands=settings.format.thousands)
    first = Reading(settings, report, base_dir=base_dir, operation=operation, number=declared)
    with closing_on_error(first):
        intake = first.run()
        proven = None if declared or not intake.source_digest else first.proven()
    if proven is None:
        return intake
    intake.close()
    second = Reading(settings, Report(report.file), base_dir=base_dir, operation=operation, number=proven, before=first)
    with closing_on_error(second):
        return second.run()


@contextmanager
def closing_on_error(reading: Reading) -> Iterator[None]:
    """Gives a reading's temporary files back if it does not come to its end."""
    try:
        yield
    except BaseException:
        reading.close()
        raise


def source_digest(settings: InputSettings, *, base_dir: Path) -> str | None:
    """The SHA-256 of an input file's bytes, to see quickly that it is still what was sealed.

    None for a query, and for a file that is not there or cannot be read.
    """
    if isinstance(settings.source, Query):
        return None
    try:
        with (base_dir / settings.source).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return None
