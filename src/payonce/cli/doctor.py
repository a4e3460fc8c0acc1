"""The command that checks what a run will need."""

from __future__ import annotations

import os
from pathlib import Path

import click

from payonce.cli.common import Common, command
from payonce.cli.screen import Screen
from payonce.service import batchfile
from payonce.service import doctor as service
from payonce.service.addresses import ledger_url
from payonce.service.opening import url_of


@command("doctor")
@click.argument("batch_file", required=False, metavar="[BATCH.toml]", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def doctor(common: Common, batch_file: Path | None) -> int:
    """Check versions, disk, ledger, clock and spool; with BATCH.toml also its settings and credentials. Sends nothing.

    Exit code 1 if something is wrong.
    """
    screen = Screen(common)
    file = batchfile.load(batch_file) if batch_file else None
    url = url_of(file, common.ledger) if file else ledger_url(common.ledger)
    found = service.examine(url, file, os.environ)
    if common.json:
        screen.document(found)
        return 0 if found["ok"] else 1
    for check in found["checks"]:
        mark = click.style("ok   ", fg="green") if check["ok"] else click.style("wrong", fg="red", bold=True)
        screen.line(f"{mark}  {check['name']:<10}  {check['detail']}")
        if check["hint"]:
            screen.line(f"{'':19}next: {check['hint']}")
    return 0 if found["ok"] else 1
