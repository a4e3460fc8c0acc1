"""The command that fetches the provider's own account of what it did."""

from __future__ import annotations

import os
from pathlib import Path

import click

from payonce.cli.common import Common, command
from payonce.cli.reconcile import time_us
from payonce.cli.screen import Screen
from payonce.cli.words import some
from payonce.service import batchfile, statements


@command("statement")
@click.argument("batch_file", metavar="BATCH.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write (.jsonl)."
)
@click.option("--of", "kind", type=click.Choice(["refunds", "balance"]), default="balance", help="Which list.")
@click.option("--from", "start", metavar="TIME", help="Only what was made from then on (ISO 8601).")
@click.option("--to", "end", metavar="TIME", help="And before then; a day means to its end.")
@click.pass_obj
def statement(common: Common, batch_file: Path, out: Path, kind: str, start: str | None, end: str | None) -> None:
    """Fetch what the provider of BATCH.toml says it did, for: payonce reconcile BATCH --statement FILE."""
    screen = Screen(common)
    file = batchfile.load(batch_file)
    rows = statements.fetch(
        file,
        out,
        kind=kind,
        from_us=time_us(start, end=False),
        to_us=time_us(end, end=True),
        environ=os.environ,
    )
    if common.json:
        screen.document({"rows": rows, "written": str(out)})
        return
    screen.line(f"{some(rows, 'row')} in {out}")
    screen.note(f"compare: payonce reconcile {batch_file} --statement {out}")
