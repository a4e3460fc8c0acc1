"""The command that shows the findings of a batch and takes them through their life."""

from __future__ import annotations

from typing import Any

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.screen import Screen
from payonce.core.errors import UsageError
from payonce.service.opening import opened


@command("findings")
@click.argument("batch")
@click.option("--state", type=click.Choice(["open", "acknowledged", "resolved"]), help="Only these.")
@click.option("--acknowledge", type=int, metavar="ID", help="Somebody is looking into this one.")
@click.option("--resolve", type=int, metavar="ID", help="This one is settled.")
@click.option("--reason", help="Why; it goes into the trail.")
@click.pass_obj
def findings(
    common: Common, batch: str, state: str | None, acknowledge: int | None, resolve: int | None, reason: str | None
) -> int:
    """The findings of BATCH, by whatever they were opened, or one step in the life of one of them.

    Exit 1 while some are open.
    """
    from payonce.ledger.actors import this_actor
    from payonce.service import reconciling_findings as life

    screen = Screen(common)
    where = batch_of(common, batch)
    if acknowledge is not None and resolve is not None:
        raise UsageError("one step at a time", code="usage", hint="--acknowledge ID or --resolve ID")
    chosen = acknowledge if acknowledge is not None else resolve
    if chosen is not None:
        to = "acknowledged" if acknowledge is not None else "resolved"
        with opened(where.url) as ledger:
            row = life.step(ledger, where.batch, chosen, state=to, reason=reason or "", actor=this_actor())
        if common.json:
            screen.document({"batch": where.batch, "findings": [row]})
        else:
            screen.line(f"finding {chosen} is {to}")
        return 0
    with opened(where.url, read_only=True) as ledger:
        found = life.findings(ledger, where.batch)
    shown = [row for row in found if state is None or row["state"] == state]
    _show(screen, where.batch, shown)
    return 1 if any(row["state"] == "open" for row in found) else 0


def _show(screen: Screen, batch: str, found: list[dict[str, Any]]) -> None:
    if screen.common.json:
        screen.document({"batch": batch, "findings": found})
        return
    if not found:
        screen.line("no findings")
        return
    rows = [
        [str(f["id"]), f["state"], f["class"], f["item"] or "-", str(f.get("reference") or "-"), f["opened_at"][:19],
         str(f["steps"][-1]["reason"] if f["steps"] else f.get("note", ""))]
        for f in found
    ]  # fmt: skip
    screen.table(["ID", "STATE", "CLASS", "ITEM", "REFERENCE", "OPENED", "WHY"], rows, right=[0])
