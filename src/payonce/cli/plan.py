"""The command that reads, checks and seals a batch, and how a plan looks on the screen."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from payonce.cli.common import Common, command
from payonce.cli.failure import place
from payonce.cli.screen import Screen
from payonce.cli.words import seconds
from payonce.core.errors import Problem
from payonce.core.money import format_minor
from payonce.service import batchfile, planning
from payonce.service.addresses import ledger_url
from payonce.service.durations import money_text
from payonce.service.opening import opened
from payonce.service.report_plan import PlanReport

_MOST_SHOWN = 50


@command("plan")
@click.argument("batch_file", metavar="BATCH.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--check", is_flag=True, help="Also read each item's target at the provider, where it can be read.")
@click.option("--skip-bad-rows", is_flag=True, help="Seal the rows without problems and list the others.")
@click.pass_obj
def plan(common: Common, batch_file: Path, check: bool, skip_bad_rows: bool) -> int:
    """Read, validate and seal BATCH.toml: totals, duplicates, expected duration, what a crash will leave to you.

    Sends nothing. With a problem nothing is sealed and the exit code is 2.
    """
    screen = Screen(common)
    file = batchfile.load(batch_file)
    options = planning.Options(check=check, skip_bad_rows=skip_bad_rows, environ=os.environ)
    with opened(ledger_url(common.ledger, file.ledger), create=True) as ledger:
        prepared = asyncio.run(planning.prepare(file, ledger, options))
        report = prepared.seal(ledger)
    if common.json:
        screen.document(report.as_json())
    else:
        show_plan(screen, report)
    return 0 if report.sealed else 2


def show_plan(screen: Screen, report: PlanReport) -> None:
    """A plan for people: problems and warnings on standard error, what it comes to on standard output."""
    for warning in report.warnings:
        screen.warn(warning)
    if report.problems:
        screen.error(f"{report.problem_count} problems in the input of batch {report.batch}")
        show_problems(screen, report.problems, report.problem_count)
    if report.checks:
        screen.error(f"{len(report.checks)} items do not fit what the provider shows")
        show_problems(screen, report.checks, len(report.checks))
    if (report.problems and not report.sealed) or report.checks:
        screen.next_step("put them right and run the command again; nothing was sealed")
        return
    _show_sums(screen, report)


def _show_sums(screen: Screen, report: PlanReport) -> None:
    state = "sealed" if report.sealed else "not sealed yet"
    screen.line(f"batch      {report.batch} ({state})", style={"bold": True})
    account = f", account {report.account}" if report.account else ""
    screen.line(f"what       {report.operation} through {report.provider}{account}")
    left = "" if report.left == report.items else f", {report.left} of them still to do"
    screen.line(f"items      {report.items}{left}")
    screen.line(f"total      {money_text(report.totals)}")
    for code, (total, budget) in report.over_budget.items():
        screen.warn(
            f"the total of {format_minor(total, code)} {code} is above the budget of {format_minor(budget, code)}: "
            "the run will stop there"
        )
    if report.duplicates:
        screen.line(f"duplicates {report.duplicates} identical rows left out")
    if report.ignored_count:
        screen.line(
            f"ignored    {report.ignored_count} rows" + ("" if screen.common.verbose else "; --verbose lists them")
        )
        for row in report.ignored[:_MOST_SHOWN]:
            screen.detail(f"  line {row.line}: {row.why}")
    if report.checked is not None:
        screen.line(f"checked    {report.checked} items at the provider")
    if report.expected.seconds is not None:
        screen.line(f"takes      about {seconds(report.expected.seconds)} ({report.expected.basis})")
    screen.line(f"guarantee  {report.guarantee}")


def show_problems(screen: Screen, problems: tuple[Problem, ...], count: int) -> None:
    """Problems with their places, the first few dozens of them."""
    for problem in problems[:_MOST_SHOWN]:
        screen.complaint(place(problem), problem.message)
    if count > _MOST_SHOWN:
        screen.complaint("", f"and {count - _MOST_SHOWN} more; --json lists them")
