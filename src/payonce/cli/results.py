"""The command that takes what the calls returned out of the ledger."""

from __future__ import annotations

from pathlib import Path

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.screen import Screen
from payonce.cli.words import some
from payonce.service import resulting
from payonce.service.opening import opened


@command("results")
@click.argument("batch")
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to: .jsonl or .csv, - for JSON Lines on standard output.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.pass_obj
def results(common: Common, batch: str, out: Path, force: bool) -> None:
    """What the calls of BATCH returned: one record an item, all items, in input order.

    An item without an output has its state and the reason instead. FILE appears complete or not at all.
    """
    screen = Screen(common)
    where = batch_of(common, batch)
    with opened(where.url, read_only=True) as ledger:
        if str(out) == "-":
            for record in resulting.records(ledger, where.batch):
                if screen.closed:
                    break
                screen.document(record)
            return
        counts = resulting.write(ledger, where.batch, out, force=force)
    if common.json:
        screen.document({"batch": where.batch, "file": str(out), **counts})
    else:
        screen.line(f"wrote {out}: {some(counts['items'], 'item')}, {counts['with_output']} of them with an output")
