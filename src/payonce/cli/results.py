"""The command that takes what the calls returned out of the ledger."""

from __future__ import annotations

from pathlib import Path

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.screen import Screen
from payonce.cli.words import some
from payonce.core.errors import UsageError
from payonce.service.opening import opened


@command("results")
@click.argument("batch")
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to: .jsonl, .csv or .parquet, - for JSON Lines on standard output.",
)
@click.option("--select", metavar="JMESPATH", help="Only this part of each output.")
@click.option("--follow", is_flag=True, help="JSON Lines on standard output, each item as it is decided, to the end.")
@click.option("--after", "after_seq", type=click.IntRange(min=0), default=0, help="Follow on after this seq.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.pass_obj
def results(
    common: Common, batch: str, out: Path | None, select: str | None, follow: bool, after_seq: int, force: bool
) -> None:
    """What the calls of BATCH returned: one record an item, all items, in input order.

    An item without an output has its state and the reason instead. FILE appears complete or not at all. --follow shows
    each item once it is decided, committed before it is shown, until the batch is finished.
    """
    from payonce.service import resulting

    screen = Screen(common)
    where = batch_of(common, batch)
    to_screen = str(out) == "-"
    if (out is None and not follow) or (follow and out is not None and not to_screen):
        raise UsageError(
            "say where the results go", code="usage", hint="--out FILE, --out - or --follow (to standard output)"
        )
    reader = resulting.Reader(where.url, select=select)
    with opened(where.url, read_only=True) as ledger:
        if follow or to_screen:
            from payonce.service.results_follow import follow as following

            found = (
                following(ledger, where.batch, reader, after_seq=after_seq)
                if follow
                else resulting.records(ledger, where.batch, reader)
            )
            for record in found:
                if screen.closed:
                    break
                screen.document(record)
            return
        assert out is not None, "it was checked above"
        counts = resulting.write(ledger, where.batch, out, reader, force=force)
    if common.json:
        screen.document({"batch": where.batch, "file": str(out), **counts})
    else:
        screen.line(f"wrote {out}: {some(counts['items'], 'item')}, {counts['with_output']} of them with an output")
