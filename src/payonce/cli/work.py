"""The command that joins a sealed batch and works until it is done: as many processes and hosts as there are."""

from __future__ import annotations

import os
from pathlib import Path

import click

from payonce.cli.common import Common, command
from payonce.cli.ended import Ended, end_on_sigterm, tell
from payonce.cli.progress import Progress
from payonce.cli.screen import Screen
from payonce.service import batchfile, planning, running, trailing_run, trailing_settings
from payonce.service.opening import opened, url_of


@command("work")
@click.argument("batch_file", metavar="BATCH.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def work(common: Common, /, batch_file: Path) -> int:
    """Join the sealed batch of BATCH.toml and work on it until it is done, beside any other process.

    Never plans, seals or asks, and does not read the input: the items come from the ledger. Ends with the batch's exit code.
    """
    screen = Screen(common)
    end_on_sigterm()
    file = batchfile.load(batch_file)
    url = url_of(file, common.ledger)
    trail = trailing_settings.read(file)
    checkpoints = trailing_run.Checkpoints.of(url, trail)
    common.named = (file.id, str(batch_file))
    with opened(url, read_only=True) as ledger:  # a ledger that is not there is the caller's mistake, not a fault of it
        running.find_batch(ledger.batches(file.id), file.id)
    with Progress(common) as progress:
        task = running.RunPlan(
            ledger=url,
            batch=file.id,
            limits=file.limits,
            provider=lambda: planning.provider_of(file, environ=os.environ),
            progress=progress,
            payloads=trail.payloads,
            beside=checkpoints.beside if checkpoints is not None else None,
            read_targets=file.read_targets,
            table=file.provider,
        )
        common.sending = True
        outcome = running.run_sealed(task)
        common.sending = False
        progress.finish(outcome.status)
    tell(screen, Ended(file.id, str(batch_file), url, outcome, progress.last, checkpoints))
    return outcome.exit_code
