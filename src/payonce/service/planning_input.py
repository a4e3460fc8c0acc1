"""From a batch file to its input: what is read and how, and whether it still is what was sealed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from payonce.core.errors import Problem, SealedError
from payonce.core.model import Batch
from payonce.intake import Difference, InputSettings, Intake, ItemColumns, compare, read, source_digest
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


def same_items(intake: Intake, file: BatchFile, batch: Batch, ledger: Ledger) -> None:
    """Raises where the input is no longer what was sealed, naming the items and fields.

    An input with problems differs too: what was sealed had none. Order alone is no difference. Nothing is changed.
    """
    difference = difference_of(intake, file, batch, ledger)
    if difference is None:
        return
    try:
        raise changed(intake.file, file, difference)
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


def changed(source: str, file: BatchFile, difference: Difference) -> ChangedError:
    """The error that names what differs: how much of each sort, and the first of it."""
    counts = {
        "changed": difference.changed_items,
        "removed": len(difference.removed),
        "added": len(difference.added),
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    problems = _problems(source, difference)
    hint = "put the input back as it was, or make a new batch for what is new; nothing was sent"
    if not counts["changed"] and not counts["removed"]:
        hint = f"payonce plan {file.path.name} --amend adds the new items; nothing was sent"
    return ChangedError(
        f"the input of batch {file.id} has changed since it was sealed ({told}): {problems[0].message}",
        problems=problems,
        hint=hint,
    )


def _problems(file: str, difference: Difference) -> tuple[Problem, ...]:
    """The first differences of each sort, each with its item."""
    changed = (
        Problem(
            file, c.line, c.field, c.id, "item_changed",
            f"item {c.id}: {c.field} was {_shown(c.sealed)} when it was sealed and is {_shown(c.now)} now",
        )
        for c in difference.changed.first(_LISTED)
    )  # fmt: skip
    removed = (
        Problem(file, None, None, item, "item_removed", f"item {item} is no longer in the input")
        for item in difference.removed.first(_LISTED)
    )
    added = (
        Problem(file, item.line, None, item.id, "item_added", f"item {item.id} is new in the input")
        for item in difference.added.first(_LISTED)
    )
    return (*changed, *removed, *added)


def _shown(value: str | None) -> str:
    return "not there" if value is None else value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
