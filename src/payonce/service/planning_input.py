"""From a batch file to its input: what is read and how, and whether it still is what was sealed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from payonce.core.errors import Problem, SealedError
from payonce.core.model import Batch, Item, NewItem
from payonce.intake.read import read
from payonce.intake.result import Intake
from payonce.intake.settings import Expect, FileFormat, InputSettings, ItemColumns, Query
from payonce.ledger.protocol import Ledger
from payonce.service.batchfile import BatchFile
from payonce.service.batchfile_tables import CurrencyValue, ItemTable
from payonce.service.inspecting import items

_LISTED: Final = 20


class ChangedError(SealedError):
    """The input differs from what was sealed; the first differences are in ``problems``. Nothing was sent."""

    def __init__(self, message: str, *, problems: tuple[Problem, ...], hint: str) -> None:
        super().__init__(message, code="input_changed", hint=hint)
        self.problems = problems


def source_is_gone(file: BatchFile) -> bool:
    """Whether the input is a file that does not exist."""
    return isinstance(file.source, str) and not (file.base / file.source).exists()


def read_input(file: BatchFile, *, skip_bad_rows: bool) -> Intake:
    """Reads and validates the whole input; everything wrong with it is in the result. The caller closes it."""
    return read(input_settings(file, skip_bad_rows=skip_bad_rows), base_dir=file.base, operation=file.operation)


def input_settings(file: BatchFile, *, skip_bad_rows: bool) -> InputSettings:
    """What the intake needs to know of a batch file."""
    source = file.source
    form = file.input
    return InputSettings(
        source=source if isinstance(source, str) else Query(str(source.get("url", "")), str(source.get("query", ""))),
        item=_columns(file.item),
        format=FileFormat(
            encoding=form.encoding,
            delimiter=form.delimiter,
            quote=form.quote,
            decimal=form.decimal,
            thousands=form.thousands,
            date_format=form.date_format,
            sheet=form.sheet,
            preamble=form.preamble,
        ),
        on_duplicate="skip" if file.on_duplicate == "skip" else "error",
        skip_bad_rows=skip_bad_rows,
        max_amount=file.limits.max_amount,
        expect=Expect(file.expect.items, file.expect.total),
    )


def _columns(item: ItemTable) -> ItemColumns:
    currency = item.currency
    return ItemColumns(
        id=item.id,
        target=item.target,
        amount=item.amount,
        amount_minor=item.amount_minor,
        currency=currency if isinstance(currency, str) else None,
        currency_value=currency.value if isinstance(currency, CurrencyValue) else None,
        fields=None if item.fields is None else tuple(item.fields),
    )


def mapped(item: ItemTable) -> dict[str, str]:
    """Which placeholder each mapped column is: ``{"charge_id": "id"}``. A column with two roles counts as the id first."""
    return {column: role for role, column in reversed(_columns(item).roles().items())}


def same_as_sealed(intake: Intake, file: BatchFile, batch: Batch, ledger: Ledger) -> None:
    """Raises where the input or what is done with it is no longer what was sealed, naming the items and fields.

    An input with problems differs too: what was sealed had none. Nothing is changed.
    """
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
    if intake.ok and intake.seal == batch.seal:
        return
    intake.raise_if_bad()
    differences = tuple(islice(_differences(intake, file, ledger), _LISTED + 1))
    if not differences:
        return
    shown = "; ".join(problem.message for problem in differences[:3])
    more = f" (and more than {_LISTED} in all)" if len(differences) > _LISTED else ""
    raise ChangedError(
        f"the input of batch {file.id} has changed since it was sealed: {shown}{more}",
        problems=differences[:_LISTED],
        hint="put the input back as it was, or make a new batch for what is new; nothing was sent",
    )


def _differences(intake: Intake, file: BatchFile, ledger: Ledger) -> Iterator[Problem]:
    """Every item that was changed, removed or added, in that order. The order of the rows is no fact of an item."""
    now = {item.id: item for item in intake.items()}
    for sealed in items(ledger, file.id):
        found = now.pop(sealed.id, None)
        if found is None:
            yield _problem(intake, None, sealed.id, "removed", f"item {sealed.id} is no longer in the input")
            continue
        for name, before, after in _changes(sealed, found):
            text = f"item {sealed.id}: {name} was {before} when it was sealed and is {after} now"
            yield _problem(intake, found.line, sealed.id, "changed", text, column=name)
    for item in now.values():
        yield _problem(intake, item.line, item.id, "added", f"item {item.id} is new in the input")


def _changes(sealed: Item, now: NewItem) -> Iterator[tuple[str, str, str]]:
    """The fields that differ: name, what was sealed, what it is now."""
    pairs = {
        "target": (sealed.target, now.target or now.id),
        "amount": (sealed.money and str(sealed.money), now.money and str(now.money)),
    }
    for name, (before, after) in pairs.items():
        if before != after:
            yield name, str(before), str(after)
    for name in sorted({*sealed.fields, *now.fields}):
        if sealed.fields.get(name) != now.fields.get(name):
            yield name, repr(sealed.fields.get(name)), repr(now.fields.get(name))


def _problem(
    intake: Intake, line: int | None, item: str, code: str, message: str, *, column: str | None = None
) -> Problem:
    return Problem(intake.file, line, column, item, f"item_{code}", message)
