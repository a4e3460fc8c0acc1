"""The command that reads, checks and seals a batch."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from payonce.cli.common import Common, command
from payonce.cli.plan_view import show_plan
from payonce.cli.screen import Screen
from payonce.service import batchfile, planning
from payonce.service.opening import opened, opened_or_blank, url_of
from payonce.service.overlaps import reason_of

_OPTIONS = (
    click.option(
        "--check", is_flag=True, help="Before sealing, read each target at the provider, where it can be read."
    ),
    click.option("--skip-bad-rows", is_flag=True, help="Seal the rows without problems and list the others."),
    click.option(
        "--allow-overlap", is_flag=True, help="Act on targets that another batch has acted on; needs --reason."
    ),
    click.option("--reason", metavar="TEXT", help="Why the overlap is right; it goes into the trail."),
    click.option(
        "--problems",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write all problems of the input to FILE (.csv or .jsonl).",
    ),
)


def planning_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that plans a batch."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def options_of(said: dict[str, Any], *, amend: bool = False) -> planning.Options:
    """What these options mean. Raises UsageError where an overlap is allowed without a reason."""
    return planning.Options(
        check=said["check"],
        skip_bad_rows=said["skip_bad_rows"],
        amend=amend,
        allow_overlap=reason_of(said["allow_overlap"], said["reason"]),
        problems=said["problems"],
        environ=os.environ,
    )


@command("plan")
@click.argument("batch_file", metavar="BATCH.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--amend", is_flag=True, help="Add the input's new items to the sealed batch; nothing else may differ.")
@planning_options
@click.pass_obj
def plan(common: Common, /, batch_file: Path, amend: bool, **said: Any) -> int:
    """Read, validate and seal BATCH.toml: totals, duplicates, expected duration, what a crash will leave to you.

    Sends nothing. With a problem, or with items on targets that another batch has acted on, nothing is sealed and the
    exit code is 2.
    """
    screen = Screen(common)
    options = options_of(said, amend=amend)
    file = batchfile.load(batch_file)
    common.named = (file.id, str(batch_file))
    url = url_of(file, common.ledger)
    with opened_or_blank(url) as ledger:
        prepared = asyncio.run(planning.prepare(file, ledger, options))
    report = prepared.report
    if prepared.can_seal:
        with opened(url, create=True) as ledger:
            report = prepared.seal(ledger)
    if common.json:
        screen.document(report.as_json())
    else:
        show_plan(screen, report)
    return 0 if report.sealed else 2
