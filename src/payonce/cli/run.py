"""The command that runs or resumes a batch: the only one a crash needs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from payonce.cli.common import Common, command
from payonce.cli.ended import Ended, end_on_sigterm, tell
from payonce.cli.plan import options_of, planning_options
from payonce.cli.plan_view import show_plan
from payonce.cli.progress import Progress
from payonce.cli.screen import Screen, confirmed
from payonce.cli.words import some
from payonce.core.errors import InputError
from payonce.core.states import BatchState
from payonce.engine.run import RunOutcome
from payonce.service import batchfile, planning, running, trailing_run, trailing_settings
from payonce.service.batchfile import BatchFile
from payonce.service.opening import opened, opened_or_blank, url_of
from payonce.service.overlaps import OverlapError
from payonce.service.report_plan import PlanReport

if TYPE_CHECKING:
    from payonce.providers.protocol import Provider
    from payonce.service.reconciling_run import Reconciled


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
    end_on_sigterm()
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
    if checkpoints is not None and proof is not None:
        checkpoints.after(url)
    ended = Ended(file.id, str(batch_file), url, outcome, progress.last, checkpoints, proof)
    tell(screen, ended)
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
