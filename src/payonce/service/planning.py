"""Planning a batch file: reads the input, compares it with what is sealed or seals it, and says what will happen.

Sends nothing that executes. Nothing is sealed while a problem is left, nor where another batch acts on the same targets
and nobody allowed it. What is sealed is never changed here: an input that differs is an error that names the items,
unless it only has more of them and they are to be added (``Options.amend``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import ConfigError, SealedError
from payonce.core.model import Batch, BatchSpec, PlainItems
from payonce.intake import InputSettings, Intake
from payonce.ledger.actors import this_actor
from payonce.ledger.protocol import Ledger
from payonce.providers.protocol import Provider
from payonce.providers.registry import build, check_operation
from payonce.service import overlaps, problem_file
from payonce.service.batchfile import BatchFile
from payonce.service.planning_amend import Addition, addition
from payonce.service.planning_checks import check_targets
from payonce.service.planning_costs import cost_of, guarantee_of, warnings_of
from payonce.service.planning_input import (
    input_settings,
    is_as_sealed,
    mapped,
    read_input,
    same_batch,
    same_items,
    source_is_gone,
)
from payonce.service.planning_known import Known
from payonce.service.planning_provider import check_provider
from payonce.service.planning_report import blank_report, sealed_report, with_input
from payonce.service.planning_spec import spec_of, totals_of
from payonce.service.report_plan import PlanReport, expected
from payonce.service.running import check_bound, limits_data

# So often a seal is tried while other batches are sealed in between; each try compares with the new ones.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Options:
    """How a batch is planned. ``allow_overlap`` is the reason why items may act on other batches' targets, ``problems``
    the file that all problems go to, ``environ`` where credentials come from."""

    check: bool = False
    skip_bad_rows: bool = False
    amend: bool = False
    allow_overlap: str | None = None
    problems: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class Prepared:
    """A batch that was read and compared: sealed, or ready to be, or to be added to (``adding``), where ``spec`` and
    ``intake`` are there. Holds temporary files until ``seal`` or ``close``."""

    report: PlanReport
    spec: BatchSpec | None
    intake: Intake | None
    file: BatchFile
    options: Options
    adding: Addition | None = None

    @property
    def can_seal(self) -> bool:
        """Whether there is something to seal, without problems and without overlaps that nobody allowed."""
        return self.spec is not None and self.intake is not None

    def seal(self, ledger: Ledger) -> PlanReport:
        """Seals a new batch with its limits, or adds to a sealed one; nothing is done where nothing can be.

        All or nothing: a crash half-way leaves no batch. Where another process has sealed it meanwhile, what that one
        sealed is compared with this file, and SealedError is raised where they differ. Where other batches were sealed
        meanwhile, the items are compared with these too.
        """
        try:
            for _ in range(_TRIES):
                if self.spec is None or self.intake is None or self.report.overlaps.held:
                    return self.report
                try:
                    return self._write(ledger, self.spec, self.intake)
                except SealedError as raced:
                    if raced.code == "already_sealed":
                        self.report = _compared(self.file, ledger, ledger.batches(self.file.id)[0], self.options)
                        return self.report
                    if raced.code != "batches_changed" or self.adding is not None or self.report.checked is not None:
                        raise  # what was read of the targets was compared with the batches that there were
                    self.report = replace(self.report, overlaps=_overlaps(ledger, self.spec, self.intake, self.options))
            raise SealedError(
                f"batch {self.file.id} could not be sealed: other batches are sealed all the time",
                code="batches_changed",
                hint="run the same command again",
            )
        finally:
            self.close()

    def _write(self, ledger: Ledger, spec: BatchSpec, intake: Intake) -> PlanReport:
        actor, clearance = this_actor(), self.report.overlaps.clearance
        if self.adding is not None:
            ledger.amend(spec, self.adding.items(), seal=intake.seal, actor=actor, clearance=clearance)
            self.report = replace(self.report, sealed=True)
            return self.report
        ledger.seal(spec, PlainItems(intake.rows()), seal=intake.seal, actor=actor, clearance=clearance)
        control = Control(BatchCommand.CONFIGURE, limits=limits_data(self.file.limits))
        ledger.control(spec.id, control, actor=actor)
        self.report = replace(self.report, sealed=True, new=True)
        return self.report

    def close(self) -> None:
        """Gives the temporary files back."""
        if self.intake is not None:
            self.intake.close()
        self.intake = self.spec = self.adding = None


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


def _asked_provider(file: BatchFile, options: Options, *, columns: tuple[str, ...] | None) -> Provider:
    """The provider, which planning asks for the account. Raises ConfigError, which says why credentials are needed."""
    try:
        return provider_of(file, environ=options.environ, columns=columns)
    except ConfigError as error:
        if error.code != "missing_variable":
            raise
        why = "a batch is bound to one account when it is sealed, so planning asks whose credentials these are"
        raise ConfigError(
            error.message, code=error.code, hint=f"{error.hint}; {why}, and sends nothing else"
        ) from error


async def prepare(file: BatchFile, ledger: Ledger, options: Options) -> Prepared:
    """Reads a batch and compares it with the ledger, ready to be sealed; sends nothing but reads.

    Problems of the input and overlaps are in the report. Raises ConfigError for settings that cannot be used,
    SealedError where a sealed batch differs from its file, its items named, and UsageError where there is no input.
    """
    if options.problems is not None:
        problem_file.check_name(options.problems)
    found = ledger.batches(file.id)
    if not found:
        check_operation(str(file.provider["kind"]), file.operation)
    if found and not options.amend:
        return Prepared(await _kept(file, ledger, found[0], options), None, None, file, options)
    if found:
        return await _amended(file, ledger, found[0], options)
    settings = input_settings(file, skip_bad_rows=options.skip_bad_rows)
    with ExitStack() as stack:
        intake = stack.enter_context(read_input(file, settings, problems=options.problems))
        prepared = await _new(file, ledger, intake, settings, options)
        if prepared.can_seal:
            # The items stay in their temporary file until they are sealed from it.
            stack.pop_all()
        return prepared


async def _amended(file: BatchFile, ledger: Ledger, batch: Batch, options: Options) -> Prepared:
    """A sealed batch whose input has more items: they are ready to be added, under the same account and settings."""
    same_batch(file, batch)
    if _is_unchanged(file, batch, options):
        return Prepared(await _kept(file, ledger, batch, options), None, None, file, options)
    settings = _settings(file, batch, options)
    with ExitStack() as stack:
        intake = stack.enter_context(read_input(file, settings, problems=options.problems))
        adding = addition(intake, file, batch, ledger, problems=options.problems)
        report = with_input(sealed_report(file, ledger, batch), intake, problems=options.problems)
        if adding is None:
            return Prepared(report, None, None, file, options)
        report = replace(report, sealed=False, items=intake.counts.items, left=report.left + adding.count)
        report = replace(report, added=adding.count, added_totals=adding.totals, totals=totals_of(intake))
        prepared = await _bound(Prepared(report, None, intake, file, options, adding), ledger, settings, batch)
        if prepared.can_seal:
            stack.pop_all()
        return prepared


async def _kept(file: BatchFile, ledger: Ledger, batch: Batch, options: Options) -> PlanReport:
    """A batch that is sealed already, its provider and its input compared with what was sealed."""
    same_batch(file, batch)
    warning = await check_provider(file, batch, partial(provider_of, file, environ=options.environ))
    report = _compared(file, ledger, batch, options)
    return report if warning is None else replace(report, warnings=(*report.warnings, warning))


def _is_unchanged(file: BatchFile, batch: Batch, options: Options) -> bool:
    return source_is_gone(file) or is_as_sealed(file, _settings(file, batch, options), batch)


def _settings(file: BatchFile, batch: Batch, options: Options) -> InputSettings:
    """How the input of a sealed batch is read: rows that were skipped then are skipped now."""
    skip = options.skip_bad_rows or bool(batch.spec.config.get("skip_bad_rows"))
    return input_settings(file, skip_bad_rows=skip)


def _compared(file: BatchFile, ledger: Ledger, batch: Batch, options: Options) -> PlanReport:
    """A batch that is sealed already: its input is read again only if a byte of it, or what it means, has changed."""
    same_batch(file, batch)
    report = sealed_report(file, ledger, batch)
    if source_is_gone(file):
        warning = f"the input {file.source} is gone; the ledger's own copy of the items is used"
        return replace(report, warnings=(*report.warnings, warning))
    if _is_unchanged(file, batch, options):
        return report
    with read_input(file, _settings(file, batch, options), problems=options.problems) as intake:
        same_items(intake, file, batch, ledger, problems=options.problems)
        return with_input(report, intake, problems=options.problems)


async def _new(file: BatchFile, ledger: Ledger, intake: Intake, settings: InputSettings, options: Options) -> Prepared:
    """A batch that the ledger does not have yet."""
    report = blank_report(file, guarantee="", account=None, items=intake.counts.items, totals=totals_of(intake))
    report = with_input(report, intake, problems=options.problems)
    if not intake.ok:
        return Prepared(report, None, None, file, options)
    return await _bound(Prepared(report, None, intake, file, options), ledger, settings, None)


async def _bound(prepared: Prepared, ledger: Ledger, settings: InputSettings, batch: Batch | None) -> Prepared:
    """Asks the provider who we are, and compares the items with their targets there and with the ledger's batches.

    ``batch`` is the sealed one that is added to: account, mode and settings must be those it was sealed with. What
    cannot be sealed comes back without a spec.
    """
    file, options, intake, report = prepared.file, prepared.options, prepared.intake, prepared.report
    assert intake is not None, "there are items to be sealed"
    new = prepared.adding.newcomers if prepared.adding is not None else overlaps.of_intake(intake)
    provider = _asked_provider(file, options, columns=intake.columns)
    await provider.open()
    try:
        identity = await provider.identify()
        if batch is not None:
            check_bound(batch, identity, digest=provider.provider_digest, table=file.provider)
        declared = provider.declaration
        reads = bool(file.read_targets and declared.preflight)
        takes = expected(file.limits, left=report.left, steps=len(declared.steps) + reads)
        guarantee = guarantee_of(declared.guarantee, file.limits)
        report = replace(report, account=identity.account, guarantee=guarantee, expected=takes)
        spec = spec_of(file, intake, provider, identity, settings, allowed=options.allow_overlap)
        if file.operation == "call" and not report.totals:
            count = report.added or report.items
            cost = cost_of(provider, new.items(), count=count, limits=file.limits, batch=file.id)
            if cost is not None:
                told = (*report.warnings, *warnings_of(cost, file.limits.budget))
                report = replace(report, cost=cost.as_json(), warnings=told)
                spec = replace(spec, config={**spec.config, "cost": cost.as_json()})
        found = overlaps.find(ledger, spec, new, allowed=options.allow_overlap)
        report = replace(report, overlaps=found)
        if options.check and not found.held:
            known = Known(ledger, spec, options.allow_overlap)
            checks, checked, warning = await check_targets(provider, new.items, file, intake.file, known=known)
            warnings = (*report.warnings, warning) if warning else report.warnings
            found = known.merged(found)
            report = replace(report, checks=checks, checked=checked, warnings=warnings, overlaps=found)
    finally:
        await provider.close()
    if report.checks or found.held:
        return Prepared(report, None, None, file, options)
    return replace(prepared, report=report, spec=spec)


def _overlaps(ledger: Ledger, spec: BatchSpec, intake: Intake, options: Options) -> overlaps.Overlaps:
    return overlaps.find(ledger, spec, overlaps.of_intake(intake), allowed=options.allow_overlap)
