"""Shared by the intake's tests: one call from a file's text to its reading, and the cases' files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from payonce.core.errors import Problem
from payonce.intake import FileFormat, InputSettings, Intake, ItemColumns, read

CASES = Path(__file__).parents[2] / "data" / "cases"
FORMAT_NAMES = set(FileFormat.__dataclass_fields__)
ITEM_NAMES = set(ItemColumns.__dataclass_fields__)
USUAL: dict[str, Any] = {"id": "ref", "amount": "amount", "currency": "currency"}


def read_file(path: Path, *, operation: str = "refund", **settings: Any) -> Intake:
    """Reads a file; settings of [item] and [input] and of the reading itself by their names."""
    item = {name: value for name, value in settings.items() if name in ITEM_NAMES} or USUAL
    file_format = {name: value for name, value in settings.items() if name in FORMAT_NAMES}
    other = {name: value for name, value in settings.items() if name not in ITEM_NAMES | FORMAT_NAMES}
    made = InputSettings(source=path.name, item=ItemColumns(**item), format=FileFormat(**file_format), **other)
    intake = read(made, base_dir=path.parent, operation=operation)
    counts = intake.counts
    assert counts.rows == counts.items + counts.skipped + counts.refused, counts
    assert intake.ok or len(intake.problems), "a refused input without a problem"
    return intake


def case(name: str, **settings: Any) -> Intake:
    """Reads one of the cases' files."""
    return read_file(CASES / name, **settings)


def codes(intake: Intake) -> dict[int | None, str]:
    """The first problem's code by line."""
    found: dict[int | None, str] = {}
    for problem in intake.problems:
        found.setdefault(problem.line, problem.code)
    return found


def only_problem(intake: Intake) -> Problem:
    """The one problem of an input."""
    problems = list(intake.problems)
    assert len(problems) == 1, problems
    return problems[0]


def amounts(intake: Intake) -> dict[str, str]:
    """The items' amounts by id."""
    return {item.id: str(item.money) for item in intake.items()}
