"""The command that takes later facts about the money into the ledger, from webhooks kept as files."""

from __future__ import annotations

import os
from pathlib import Path

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.screen import Screen
from payonce.cli.words import some
from payonce.service import settling
from payonce.service.opening import opened


@command("settle")
@click.argument("batch")
@click.option(
    "--events",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file or folder of webhooks; may be given several times.",
)
@click.option(
    "--provider", type=click.Choice(settling.KINDS), help="Whose webhooks they are; else the batch's provider."
)
@click.option("--secret-env", metavar="NAME", help="The environment variable with the signing secret.")
@click.option("--unsigned", is_flag=True, help="Take the files on your word, without a signature.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.pass_obj
def settle(
    common: Common,
    batch: str,
    events: tuple[Path, ...],
    provider: str | None,
    secret_env: str | None,
    unsigned: bool,
    dry_run: bool,
) -> int:
    """Record what webhooks say about the money of BATCH: arrived, failed, came back. Nothing is ever sent again.

    Events may be repeated and out of order. Exits 1 if some came back or need a person's eye.
    """
    from payonce.ledger.actors import this_actor

    screen = Screen(common)
    where = batch_of(common, batch)
    wishes = settling.Wishes(
        provider=provider, secret_variable=secret_env, unsigned=unsigned, dry_run=dry_run, environ=os.environ
    )
    with opened(where.url) as ledger:
        done = settling.settle(ledger, where.batch, events, wishes=wishes, actor=this_actor())
    _tell(screen, done, batch=where.batch, dry_run=dry_run)
    return int(bool(done.notes) or any(done.changed[word] for word in ("failed", "returned")))


def _tell(screen: Screen, done: settling.Settled, *, batch: str, dry_run: bool) -> None:
    if screen.common.json:
        shown = {"batch": batch, "events": done.events, "changed": dict(done.changed), "unchanged": dict(done.left)}
        screen.document({**shown, "notes": done.notes, "dry_run": dry_run})
        return
    screen.line(f"{some(done.events, 'event')} read" + (", nothing written (--dry-run)" if dry_run else ""))
    for name, count in sorted(done.changed.items()):
        screen.line(f"  now {name}: {some(count, 'item')}")
    for why, count in sorted(done.left.items()):
        screen.line(f"  {some(count, 'event')} {why}: nothing to change")
    for note in done.notes:
        screen.warn(note)
