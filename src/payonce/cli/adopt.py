"""The command that takes executions found elsewhere into a batch, so that the rest of it can be run."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from payonce.cli.audit import tables_of
from payonce.cli.common import Common, command
from payonce.cli.reconcile import time_us
from payonce.cli.screen import Screen
from payonce.core.errors import InputError
from payonce.core.wording import some
from payonce.service.opening import opened, opened_or_blank, url_of
from payonce.service.report_plan import PlanReport

_PATH = click.Path(path_type=Path)


@command("adopt")
@click.argument("batch_file", metavar="BATCH.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--from",
    "file",
    required=True,
    type=_PATH,
    metavar="FILE",
    help="The old script's log, a statement, or a batch file whose provider to ask.",
)
@click.option("--statement", "as_statement", is_flag=True, help="FILE is the provider's report, not a log.")
@click.option(
    "--map", "mapping", type=_PATH, metavar="FILE.toml", help="An [adopt] table for a log, [statement] for a report."
)
@click.option("--since", metavar="TIME", help="Only executions from here on: earlier ones are other business.")
@click.option("--until", metavar="TIME", help="Only executions before this.")
@click.pass_obj
def adopt(
    common: Common,
    batch_file: Path,
    file: Path,
    as_statement: bool,
    mapping: Path | None,
    since: str | None,
    until: str | None,
) -> int:
    """Take what FILE proves to be executed into BATCH.toml, which is sealed first if need be. Sends nothing.

    What was started but not proven becomes unknown. A file that contradicts the batch is refused whole, with exit 2.
    """
    from payonce.ledger.actors import this_actor
    from payonce.service import adopting, batchfile, planning
    from payonce.service.adopting_found import Asked

    screen = Screen(common)
    loaded = batchfile.load(batch_file)
    asked = Asked(
        loaded.id, file, tables_of(mapping), as_statement, time_us(since, end=False), time_us(until, end=True)
    )
    url = url_of(loaded, common.ledger)
    with opened_or_blank(url) as ledger:
        prepared = asyncio.run(planning.prepare(loaded, ledger, planning.Options(environ=os.environ)))
    _refuse_unsealed(loaded.id, prepared.report, sealed=prepared.report.sealed or prepared.can_seal)
    with opened(url, create=True) as ledger:
        report = prepared.seal(ledger)
        _refuse_unsealed(loaded.id, report, sealed=report.sealed)
        done = adopting.adopt(ledger, asked, actor=this_actor())
    if common.json:
        screen.document(done)
    else:
        counts = done["items"]
        screen.note(f"{some(done['rows'], 'row')} read, {done['rows_used']} used, {done['rows_ignored']} ignored")
        for text in done["assumed"]:
            screen.prose(f"assumed: {text}", style={"fg": "yellow"})
        screen.line(f"{counts['adopted']} adopted, {counts['already']} were there already, {counts['unknown']} unknown, "
                    f"{counts['planned']} still planned")  # fmt: skip
        if done["torn_line"]:
            screen.warn(f"line {done['torn_line']} of {done['file']} was cut off and is set aside")
        for extra in done["duplicates"]:
            screen.warn(f"item {extra['item']} was executed again as {extra['reference']}: a finding was opened")
        if counts["unknown"]:
            screen.line(f"unknown: {adopting.shown(done, 'unknown')}")
            screen.next_step(f"a statement decides them: payonce reconcile {loaded.id} --statement FILE --apply")
    return 1 if done["items"]["unknown"] or done["duplicates"] or done["not_written"] else 0


def _refuse_unsealed(batch: str, report: PlanReport, *, sealed: bool) -> None:
    if not sealed:
        raise InputError(
            f"batch {batch} cannot be sealed: {some(report.problem_count, 'problem')}; nothing was adopted",
            problems=tuple(report.problems), hint="payonce plan shows them all",
        )  # fmt: skip
