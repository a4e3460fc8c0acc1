"""Planning a batch file: reads the input, compares it with what is sealed or seals it, and says what will happen.

Sends nothing that executes. Nothing is sealed while a problem is left. A batch that is sealed already is never changed here:
an input that differs from it is an error that names the items.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import SealedError
from payonce.core.model import Batch, BatchSpec
from payonce.core.states import BatchState, ItemState
from payonce.intake import InputSettings, Intake
from payonce.ledger.actors import this_actor
from payonce.ledger.protocol import Ledger
from payonce.providers.protocol import Identity, Provider
from payonce.providers.registry import build
from payonce.service.batchfile import BatchFile
from payonce.service.planning_checks import check_targets
from payonce.service.planning_input import (
    input_settings,
    is_as_sealed,
    mapped,
    read_input,
    reading_digest,
    same_batch,
    same_items,
    source_is_gone,
)
from payonce.service.report_plan import Expected, PlanReport, Row, expected
from payonce.service.running import limits_data

# A report is held in memory; an input with more problems than this has one problem, many times.
_MOST_TOLD: Final = 100_000
_OVER = (BatchState.FINISHED, BatchState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Options:
    """How a batch is planned. ``environ`` is where credentials come from."""

    check: bool = False
    skip_bad_rows: bool = False
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class Prepared:
    """A batch that was read and compared, sealed or ready to be. Holds temporary files until ``seal`` or ``close``."""

    report: PlanReport
    spec: BatchSpec | None
    intake: Intake | None
    file: BatchFile
    options: Options

    @property
    def can_seal(self) -> bool:
        """Whether it is new and without problems."""
        return self.spec is not None and self.intake is not None

    def seal(self, ledger: Ledger) -> PlanReport:
        """Seals a new batch with its limits; nothing is done to one that is sealed already or has problems.

        All or nothing: a crash half-way leaves no batch. Where another process has sealed it meanwhile, what that one
        sealed is compared with this file, and SealedError is raised where they differ.
        """
        try:
            if self.spec is None or self.intake is None:
                return self.report
            actor = this_actor()
            try:
                ledger.seal(self.spec, self.intake.items(), seal=self.intake.seal, actor=actor)
            except SealedError as raced:
                if raced.code != "already_sealed":
                    raise
                self.report = _compared(self.file, ledger, ledger.batches(self.file.id)[0], self.options)
                return self.report
            limits = limits_data(self.file.limits)
            ledger.control(self.spec.id, Control(BatchCommand.CONFIGURE, limits=limits), actor=actor)
            self.report = replace(self.report, sealed=True, new=True)
            return self.report
        finally:
            self.close()

    def close(self) -> None:
        """Gives the temporary files back."""
        if self.intake is not None:
            self.intake.close()
        self.intake = self.spec = None


def provider_of(file: BatchFile, *, environ: Mapping[str, str], columns: tuple[str, ...] | None = None) -> Provider:
    """The provider of a batch file, not opened. Raises ConfigError naming the setting, never a credential."""
    return build(
        str(file.provider["kind"]),
        file.provider,
        operation=file.operation,
        batch=file.id,
        columns=columns,
        environ=environ,
        mapped=mapped(file.item),
        concurrency=file.limits.concurrency,
        base=str(file.base),
    )


async def prepare(file: BatchFile, ledger: Ledger, options: Options) -> Prepared:
    """Reads a batch and compares it with the ledger, ready to be sealed; sends nothing but reads.

    Problems of the input are in the report. Raises ConfigError for settings that cannot be used, SealedError where a
    sealed batch differs from its file, its items named, and UsageError where there is no input.
    """
    found = ledger.batches(file.id)
    batch = found[0] if found else None
    if batch is not None:
        return Prepared(_compared(file, ledger, batch, options), None, None, file, options)
    settings = input_settings(file, skip_bad_rows=options.skip_bad_rows)
    with ExitStack() as stack:
        intake = stack.enter_context(read_input(file, settings))
        prepared = await _new(file, intake, settings, options)
        if prepared.can_seal:
            # The items stay in their temporary file until they are sealed from it.
            stack.pop_all()
        return prepared


def _compared(file: BatchFile, ledger: Ledger, batch: Batch, options: Options) -> PlanReport:
    """A batch that is sealed already: its input is read again only if a byte of it, or what it means, has changed."""
    same_batch(file, batch)
    report = _sealed_report(file, ledger, batch)
    if source_is_gone(file):
        warning = f"the input {file.source} is gone; the ledger's own copy of the items is used"
        return replace(report, warnings=(*report.warnings, warning))
    skip = options.skip_bad_rows or bool(batch.spec.config.get("skip_bad_rows"))
    settings = input_settings(file, skip_bad_rows=skip)
    if is_as_sealed(file, settings, batch):
        return report
    with read_input(file, settings) as intake:
        same_items(intake, file, batch, ledger)
        return _with_input(report, intake)


async def _new(file: BatchFile, intake: Intake, settings: InputSettings, options: Options) -> Prepared:
    """A batch that the ledger does not have yet."""
    totals = {total.currency: total.total.minor for total in intake.totals}
    if not intake.ok:
        return Prepared(
            _with_input(_report(file, "", None, intake.counts.items, totals), intake), None, None, file, options
        )
    provider = provider_of(file, environ=options.environ, columns=intake.columns)
    await provider.open()
    try:
        identity = await provider.identify()
        guarantee = provider.declaration.guarantee
        report = _with_input(_report(file, guarantee, identity.account, intake.counts.items, totals), intake)
        steps = len(provider.declaration.steps)
        report = replace(report, expected=expected(file.limits, left=report.items, steps=steps))
        if options.check:
            checks, checked, warning = await check_targets(provider, intake, file)
            warnings = (*report.warnings, warning) if warning else report.warnings
            report = replace(report, checks=checks, checked=checked, warnings=warnings)
        digest = reading_digest(file, settings, source=intake.source_digest or None)
        reading = {"reading": digest, "skip_bad_rows": options.skip_bad_rows}
        spec = _spec(file, intake, provider, identity, reading)
    finally:
        await provider.close()
    return (
        Prepared(report, None, None, file, options) if report.checks else Prepared(report, spec, intake, file, options)
    )


def _spec(
    file: BatchFile, intake: Intake, provider: Provider, identity: Identity, reading: Mapping[str, Any]
) -> BatchSpec:
    """What is sealed beside the items. The provider's table is as it was written: no credential is in it."""
    target, item_id = file.item.target, file.item.id
    config: dict[str, Any] = {
        "provider_digest": provider.provider_digest,
        "guarantee": provider.declaration.guarantee,
        "provider": dict(file.provider),
        "statement": dict(file.statement),
        "item": {role: column for column, role in mapped(file.item).items()},
        "columns": list(intake.columns),
        "totals": {total.currency: total.total.minor for total in intake.totals},
        **reading,
    }
    return BatchSpec(
        file.id,
        file.operation,
        str(file.provider["kind"]),
        namespace=file.namespace,
        account=identity.account,
        mode=identity.mode,
        targets=target is not None and target != item_id,
        source=intake.file,
        source_digest=intake.source_digest or None,
        config=config,
    )


def _report(file: BatchFile, guarantee: str, account: str | None, items: int, totals: Mapping[str, int]) -> PlanReport:
    return PlanReport(
        batch=file.id,
        operation=file.operation,
        provider=str(file.provider["kind"]),
        account=account,
        sealed=False,
        new=False,
        items=items,
        left=items,
        totals=totals,
        guarantee=guarantee,
        expected=Expected(None, "the input has problems"),
        budget=file.limits.budget,
        warnings=file.warnings,
    )


def _sealed_report(file: BatchFile, ledger: Ledger, batch: Batch) -> PlanReport:
    """A batch that is sealed already, from the ledger alone."""
    status = ledger.status(file.id)
    left = 0 if batch.state in _OVER else sum(status.count(state) for state in ItemState if state.is_open)
    config = batch.spec.config
    totals = {str(code): int(minor) for code, minor in dict(config.get("totals", {})).items()}
    report = _report(file, str(config.get("guarantee", "")), batch.spec.account, batch.items, totals)
    return replace(report, sealed=True, left=left, expected=expected(file.limits, left=left))


def _with_input(report: PlanReport, intake: Intake) -> PlanReport:
    """What the reading found: rows, ignored rows, duplicates, problems, notes."""
    ignored = tuple(Row(row.line, row.why) for row in islice(intake.ignored, _MOST_TOLD))
    notes = tuple(note.message if note.count == 1 else f"{note.message} ({note.count} times)" for note in intake.notes)
    return replace(
        report,
        rows=intake.counts.rows,
        ignored=ignored,
        ignored_count=len(intake.ignored),
        duplicates=sum("duplicate" in row.why for row in intake.ignored),
        problems=tuple(sorted(islice(intake.problems, _MOST_TOLD), key=lambda problem: problem.line or 0)),
        problem_count=len(intake.problems),
        warnings=(*report.warnings, *notes),
    )
