"""The command that says what a batch of calls costs, and what by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.screen import Screen
from payonce.cli.words import show_costs
from payonce.service.opening import opened


@command("costs")
@click.argument("batch")
@click.option(
    "--by", default="model", show_default=True, metavar="FIELD", help="A kept field, a column, target or day."
)
@click.option("--html", "page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="As one page.")
@click.pass_obj
def costs(common: Common, batch: str, by: str, page: Path | None) -> None:
    """What the calls of BATCH cost: spent, reserved, left, projected, and by a field of their answers or of the input."""
    from payonce.core.errors import UsageError
    from payonce.service import costs as counting
    from payonce.service import costs_html

    screen = Screen(common)
    where = batch_of(common, batch)
    with opened(where.url, read_only=True) as ledger:
        found = counting.breakdown(ledger, where.batch, by=by)
    if page is not None:
        try:
            page.write_text(costs_html.page(found), encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"cannot write {page}: {error.strerror}", code="file_unwritable", hint="name another file"
            ) from error
        screen.note(f"the report is in {page}")
    if common.json:
        screen.document(found.as_json())
        return
    show_costs(screen, found.summary)
    _groups(screen, found.as_json())


def _groups(screen: Screen, found: Mapping[str, Any]) -> None:
    rows = [
        [
            group["value"] or "-",
            str(group["items"]),
            group["billed"],
            group["currency"],
            group["exact"],
            group["per_item"],
        ]
        for group in (*found["groups"], *({**total, "value": "all"} for total in found["totals"]))
    ]
    if not rows:
        screen.line("nothing was billed yet")
        return
    screen.table([str(found["by"]).upper(), "ITEMS", "BILLED", "", "EXACT", "PER ITEM"], rows, right=[1, 2, 4, 5])
