"""Commands that steer a batch as a whole: pause, resume, cancel. A running process obeys them within a moment."""

from __future__ import annotations

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.screen import Screen, confirmed
from payonce.service import inspecting
from payonce.service.opening import opened
from payonce.service.operating import Operator


def operator(ledger: object) -> Operator:
    """The person at this terminal, acting on a ledger."""
    from typing import cast

    from payonce.ledger.actors import this_actor
    from payonce.ledger.protocol import Ledger

    return Operator(cast(Ledger, ledger), this_actor())


@command("pause")
@click.argument("batch")
@click.option("--reason", help="Why; it goes into the trail.")
@click.pass_obj
def pause(common: Common, batch: str, reason: str | None) -> None:
    """No new call of BATCH until it is resumed; calls in flight are awaited."""
    where = batch_of(common, batch)
    with opened(where.url) as ledger:
        operator(ledger).pause(where.batch, reason=reason)
        found = inspecting.status(ledger, where.batch)
    _say(common, found, f"{where.batch} is paused; payonce resume {where.batch} lets it go on")


@command("resume")
@click.argument("batch")
@click.option("--reason", help="What has changed; needed where the batch was stopped.")
@click.pass_obj
def resume(common: Common, batch: str, reason: str | None) -> None:
    """Let a paused or stopped BATCH go on. A process that is still running does; otherwise start it again."""
    where = batch_of(common, batch)
    with opened(where.url) as ledger:
        operator(ledger).resume(where.batch, reason=reason)
        found = inspecting.status(ledger, where.batch)
    _say(common, found, f"{where.batch} may go on; if no process runs it: payonce run BATCH.toml")


@command("cancel")
@click.argument("batch")
@click.option("--reason", help="Why; it goes into the trail.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def cancel(common: Common, batch: str, reason: str | None, yes: bool) -> None:
    """Never send what is still planned in BATCH. What is pending is resolved by the next run; this cannot be undone."""
    screen = Screen(common)
    where = batch_of(common, batch)
    with opened(where.url) as ledger:
        planned = inspecting.status(ledger, where.batch)["items"]["planned"]
        if screen.interactive and not yes:
            confirmed(f"skip {planned} planned items of {where.batch} for good?", kept="nothing was changed")
        operator(ledger).cancel(where.batch, reason=reason)
        found = inspecting.status(ledger, where.batch)
    _say(
        common,
        found,
        f"{where.batch} is cancelled; {found['items']['pending']} pending, still to be resolved by a run",
    )


def _say(common: Common, found: dict[str, object], text: str) -> None:
    screen = Screen(common)
    if common.json:
        screen.document(found)
    else:
        screen.prose(text)
