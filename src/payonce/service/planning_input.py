"""From a batch file to its input: what is read and how, and whether it still is what was sealed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from payonce.core.errors import Problem, SealedError
from payonce.core.model import Batch
from payonce.intake import Difference, InputSettings, Intake, ItemColumns, compare, read, source_digest
from payonce.intake.ids import folded
from payonce.ledger.protocol import Ledger
from payonce.service import problem_file
from payonce.service.batchfile import BatchFile
from payonce.service.inspecting import items

_LISTED: Final = 20
_SHOWN: Final = 60


class ChangedError(SealedError):
    """The input differs from what was sealed; the first differences are in ``problems``. Nothing was sent."""

    def __init__(self, message: str, *, problems: tuple[Problem, ...], hint: str) -> None:
        super().__init__(message, code="input_changed", hint=hint)
        self.problems = problems


def source_is_gone(file: BatchFile) -> bool:
    """Whether the input is a file that does not exist."""
    return isinstance(file.source, str) and not (file.base / file.source).exists()


def input_settings(file: BatchFile, *, skip_bad_rows: bool) -> InputSettings:
    """What the intake needs to know of a batch file."""
    return InputSettings(
        source=file.source,
        item=file.item,
        format=file.format,
        on_duplicate=file.on_duplicate,
        skip_bad_rows=skip_bad_rows,
        max_amount=file.limits.max_amount,
        expect=file.expect,
    )


def read_input(file: BatchFile, settings: InputSettings, *, problems: Path | None = None) -> Intake:
    """Reads and validates the whole input; everything wrong with it is in the result, and in the file ``problems``.

    The caller closes it.
    """
    intake = read(settings, base_dir=file.base, operation=file.operation)
    if problems is not None:
        try:
            problem_file.write(problems, intake.problems)
        except BaseException:
            intake.close()
            raise
    return intake


def reading_digest(file: BatchFile, settings: InputSettings, *, source: str | None) -> str | None:
    """A digest of the input's bytes and of everything that decides what they mean; None where there are no bytes to
    look at. The same digest means the same items, without reading them again."""
    if source is None:
        return None
    return hashlib.sha256(f"{source} {file.operation} {settings!r}".encode()).hexdigest()


def is_as_sealed(file: BatchFile, settings: InputSettings, batch: Batch) -> bool:
    """Whether input file and settings are, byte for byte, those that the batch was sealed from."""
    sealed = batch.spec.config.get("reading")
    now = reading_digest(file, settings, source=source_digest(settings, base_dir=file.base))
    return sealed is not None and sealed == now


def mapped(item: ItemColumns) -> dict[str, str]:
    """Which placeholder each mapped column is: ``{"charge_id": "id"}``. A column with two roles counts as the id first."""
    return {column: role for role, column in reversed(item.roles().items())}


def same_batch(file: BatchFile, batch: Batch) -> None:
    """Raises SealedError where what is done with the items is no longer what was sealed."""
    spec = batch.spec
    for name, sealed, now in (
        ("operation", spec.operation, file.operation),
        ("namespace", spec.namespace, file.namespace),
        ("provider kind", spec.provider, str(file.provider["kind"])),
    ):
        if sealed != now:
            raise SealedError(
                f"batch {file.id} was sealed with {name} {sealed!r}, and the file now says {now!r}",
                code="other_batch",
                hint="put the file back as it was, or give the new batch another id",
            )


def same_items(intake: Intake, file: BatchFile, batch: Batch, ledger: Ledger, *, problems: Path | None = None) -> None:
    """Raises where the input is no longer what was sealed, naming the items and fields, all of them in ``problems``.

    An input with problems differs too: what was sealed had none. Order alone is no difference. Nothing is changed.
    """
    difference = difference_of(intake, file, batch, ledger)
    if difference is None:
        return
    try:
        raise changed(intake.file, file, difference, problems=problems)
    finally:
        difference.close()


def difference_of(intake: Intake, file: BatchFile, batch: Batch, ledger: Ledger) -> Difference | None:
    """What differs between the input and what was sealed; None where nothing does. The caller closes it.

    Raises InputError where the input has problems.
    """
    intake.raise_if_bad()
    if intake.seal == batch.seal:
        return None
    difference = compare(items(ledger, file.id), intake)
    if difference:
        return difference
    difference.close()
    return None


def changed(source: str, file: BatchFile, difference: Difference, *, problems: Path | None) -> ChangedError:
    """The error that names what differs: how much of each sort, and the first of it. All of it goes into the file
    ``problems``, where there is to be one."""
    counts = {
        "changed": difference.changed_items,
        "removed": len(difference.removed),
        "added": len(difference.added),
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    first = tuple(_problems(source, difference, limit=_LISTED))
    if problems is not None:
        problem_file.write(problems, _problems(source, difference, limit=None))
    hint = "put the input back as it was, or make a new batch for what is new; nothing was sent"
    if not counts["changed"] and not counts["removed"]:
        hint = f"payonce plan {file.path.name} --amend adds the new items; nothing was sent"
    if len(first) < len(difference.changed) + counts["removed"] + counts["added"]:
        hint += "; all differences are in " + str(problems) if problems else "; --problems FILE writes all differences"
    return ChangedError(
        f"the input of batch {file.id} has changed since it was sealed ({told}): {first[0].message}",
        problems=first,
        hint=hint,
    )


def _problems(file: str, difference: Difference, *, limit: int | None) -> Iterator[Problem]:
    """The first differences of each sort, or all of them, each with its item."""
    for c in islice(difference.changed, limit):
        what = f"item {c.id}: {c.field} was {_shown(c.sealed)} when it was sealed and is {_shown(c.now)} now"
        yield Problem(file, c.line, c.field, c.id, "item_changed", what)
    known: dict[str, str] = {}
    for place, gone in enumerate(islice(difference.removed, limit)):
        if place < _LISTED:
            known[folded(gone)] = gone
        yield Problem(file, None, None, gone, "item_removed", f"item {gone} is no longer in the input")
    for item in islice(difference.added, limit):
        yield Problem(file, item.line, None, item.id, "item_added", _new(item.id, known.get(folded(item.id))))


def _new(item: str, like: str | None) -> str:
    """That an item is new, and which one that is gone it was perhaps meant to be: ids are compared exactly."""
    if like is None:
        return f"item {item} is new in the input"
    return f"item {item!a} is new in the input; it is not {like!a}, which is gone and looks much the same"


def _shown(value: str | None) -> str:
    if not value:
        return "not there" if value is None else "empty"
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
