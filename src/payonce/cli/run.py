"""The command that runs or resumes a batch: the only one a crash needs."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from payonce.cli.common import Common, command
from payonce.cli.plan import options_of, planning_options
from payonce.cli.plan_view import show_plan
from payonce.cli.progress import Progress
from payonce.cli.screen import Screen, confirmed
from payonce.cli.summary import outcome_json, show_outcome
from payonce.cli.words import show_costs, some
from payonce.core.errors import InputError
from payonce.core.model import Status
from payonce.core.states import BatchState
from payonce.engine.run import RunOutcome
from payonce.service import batchfile, inspecting, planning, running, trailing_run, trailing_settings
from payonce.service.batchfile import BatchFile
from payonce.service.opening import opened, opened_or_blank, url_of
from payonce.service.overlaps import OverlapError
from payonce.service.report_plan import PlanReport

if TYPE_CHECKING:
    from payonce.providers.protocol import Provider
    from payonce.service.reconciling_run import Reconciled

_MOST_LISTED = 20


@command("run")
@click.argument("batch_file", metavar="BATCH.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--yes", "-y", is_flag=True, help="Do not ask before a new batch is sealed and sent.")
@click.option(
    "--reconcile/--no-reconcile", default=None, help="At the end, ask the provider about every item (or do not)."
)
@planning_options
@click.pass_obj
def run(common: Common, /, batch_file: Path, yes: bool, reconcile: bool | None, **said: Any) -> int:
    """Run or resume BATCH.toml. Whatever ended the last run, the same command goes on with it.

    A batch that is not sealed yet is planned first; on a terminal the plan is shown and you are asked. At the end the
    provider's own account of it is compared with the ledger, where the provider can be asked.
    """
    screen = Screen(common)
    _end_on_sigterm()
    options = options_of(said)
    file = batchfile.load(batch_file)
    url = url_of(file, common.ledger)
    trail = trailing_settings.read(file)
    checkpoints = trailing_run.Checkpoints.of(url, trail)
    common.named = (file.id, str(batch_file))
    checked = _plan(screen, file, url, options, ask=not yes)
    made: list[Provider] = []

    def provider() -> Provider:
        made.append(planning.provider_of(file, environ=os.environ))
        return made[-1]

    with Progress(common) as progress:
        task = running.RunPlan(
            ledger=url,
            batch=file.id,
            limits=file.limits,
            provider=provider,
            progress=progress,
            payloads=trail.payloads,
            beside=checkpoints.beside if checkpoints is not None else None,
            read_targets=file.read_targets and not checked,
            table=file.provider,
        )
        common.sending = True
        outcome = running.run_sealed(task)
        common.sending = False
        progress.finish(outcome.status)
    # A finished batch that is run again makes no call at all, unless somebody asks for it.
    wanted = reconcile if reconcile is not None or made else False
    proof = _reconciled(url, batch_file, outcome, file.id, wished=wanted)
    ended = Ended(file.id, str(batch_file), url, outcome, progress.last, checkpoints, proof)
    _tell(screen, ended)
    return ended.exit_code


def _reconciled(
    url: str, batch_file: Path, outcome: RunOutcome, batch: str, *, wished: bool | None
) -> Reconciled | None:
    """What the provider shows of the batch at its end; None where it is not asked."""
    from payonce.service.reconciling_run import after_run

    stopped = outcome.exit_code == 4 and outcome.state not in (BatchState.FINISHED, BatchState.CANCELLED)
    if wished is False or outcome.exit_code in (3, 75) or (stopped and not wished):
        return None
    try:
        return after_run(url, batch_file, batch=batch, wished=bool(wished))
    except KeyboardInterrupt:
        return None  # the run itself is over, and stays as it is


def _end_on_sigterm() -> None:
    """Until the engine watches signals itself, SIGTERM ends the command as Ctrl-C does: exit code 75, nothing sent."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended: its outcome, and the last counts seen where the ledger could not give them any more."""

    batch: str
    file: str
    ledger: str
    outcome: RunOutcome
    last: Status | None
    checkpoints: trailing_run.Checkpoints | None = None
    reconciled: Reconciled | None = None

    @property
    def exit_code(self) -> int:
        """The run's own, or, where that is good, the reconciliation's."""
        found = self.reconciled.exit_code if self.reconciled is not None else 0
        return max(self.outcome.exit_code, found)

    @property
    def status(self) -> Status | None:
        """The counts at the end, or the last ones seen."""
        return self.outcome.status or self.last


def _plan(screen: Screen, file: BatchFile, url: str, options: planning.Options, *, ask: bool) -> bool:
    """Seals the batch if need be; whether all of its targets were read just now. Raises InputError where it cannot be
    sealed; UsageError where the person says no."""
    with opened_or_blank(url) as ledger:
        prepared = asyncio.run(planning.prepare(file, ledger, options))
    report, shown = prepared.report, False
    if not report.sealed and prepared.can_seal and ask and screen.interactive:
        show_plan(screen, report)
        shown = True
        confirmed("seal and send this batch?", kept="nothing was sealed and nothing was sent")
    if not report.sealed and not prepared.can_seal:
        raise _held_up(file, report)
    with opened(url, create=True) as ledger:
        sealed = prepared.seal(ledger)
        started = any(batch.started_us is not None for batch in ledger.batches(file.id))
    if not sealed.sealed:
        raise _held_up(file, sealed)
    checked = sealed.new and sealed.checked is not None
    if shown:
        return checked
    for warning in sealed.warnings:
        screen.warn(warning)
    screen.note(f"{file.id}: {sealed.left} of {some(sealed.items, 'item')} to do")
    if not started:
        screen.note(f"guarantee  {sealed.guarantee}")
    return checked


def _held_up(file: BatchFile, report: PlanReport) -> InputError | OverlapError:
    """Why a batch was not sealed."""
    if report.overlaps.held:
        return OverlapError(
            file.id,
            report.overlaps,
            file=file.source if isinstance(file.source, str) else file.source.shown,
            hint="look into them; --allow-overlap --reason TEXT runs it all the same; nothing was sent",
        )
    return InputError(
        f"batch {file.id} cannot be sealed: {some(report.problem_count + len(report.checks), 'problem')}; nothing was sent",
        problems=(*report.problems, *report.checks),
        hint="put them right and run the command again",
    )


def _tell(screen: Screen, ended: Ended) -> None:
    unknown, open_ = _left(ended)
    made, proof = ended.checkpoints, ended.reconciled
    outcome = replace(ended.outcome, exit_code=ended.exit_code)
    if screen.common.json:
        document = outcome_json(outcome, batch=ended.batch, status=ended.status, unknown=unknown, findings=open_)
        document["reconciliation"] = proof.document if proof is not None else None
        document["cost"] = _costs(ended)
        screen.document({**document, "checkpoints": made.shown} if made is not None and made.shown else document)
    else:
        about = {"batch": ended.batch, "file": ended.file}
        show_outcome(
            screen, outcome, **about, status=ended.status, unknown=unknown, findings=open_,
            reconciled=proof.document if proof is not None else None,
        )  # fmt: skip
        show_costs(screen, _costs(ended))
        for text in made.shown if made is not None else ():
            screen.line(text)
    for warning in made.warnings if made is not None else ():
        screen.warn(warning)


def _costs(ended: Ended) -> dict[str, Any]:
    """What a batch of calls cost; empty for another, and where the ledger cannot be read."""
    from payonce.core.errors import PayonceError
    from payonce.service.costs import summary

    if ended.status is None:
        return {}
    try:
        with opened(ended.ledger, read_only=True) as ledger:
            return summary(ledger, ended.status)
    except PayonceError:
        return {}


def _left(ended: Ended) -> tuple[list[dict[str, Any]], int | None]:
    """What is left to a person: the first unknown items and how many findings are open.

    None of both where the ledger cannot be read, which has been said by then.
    """
    from payonce.core.errors import PayonceError
    from payonce.core.states import ItemState
    from payonce.service.report import item_json

    try:
        with opened(ended.ledger, read_only=True) as ledger:
            found = inspecting.items(ledger, ended.batch, states=[ItemState.UNKNOWN], limit=_MOST_LISTED)
            return [item_json(item) for item in found], inspecting.findings_open(ledger, ended.batch)
    except PayonceError:
        return [], None
