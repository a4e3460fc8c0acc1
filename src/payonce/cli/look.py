"""Commands that look: status, items, show. They open the ledger read-only, beside a running process."""

from __future__ import annotations

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.history import happened, header
from payonce.cli.screen import Screen
from payonce.cli.words import ITEM_STATES, STATE_STYLE, batch_state, clock, counts, show_status
from payonce.core.states import ItemState
from payonce.service import inspecting
from payonce.service.addresses import ledger_url
from payonce.service.opening import opened
from payonce.service.report import item_json


@command("status")
@click.argument("batch", required=False)
@click.pass_obj
def status(common: Common, batch: str | None) -> None:
    """Counts per state, money per currency, rate and time left of BATCH (an id or a batch file); of all without one."""
    screen = Screen(common)
    if batch is None:
        _all(screen, common)
        return
    where = batch_of(common, batch)
    with opened(where.url, read_only=True) as ledger:
        found = inspecting.status(ledger, where.batch)
    if common.json:
        screen.document(found)
    else:
        show_status(screen, found)


def _all(screen: Screen, common: Common) -> None:
    with opened(ledger_url(common.ledger), read_only=True) as ledger:
        found = inspecting.batches(ledger)
    if common.json:
        screen.document(found)
        return
    if not found["batches"]:
        screen.line("no batches yet; payonce plan BATCH.toml seals one")
        return
    rows = [
        [
            b["batch"],
            batch_state(b),
            counts(b["items"]),
            ", ".join(f"{m['committed']} {c}" for c, m in b["money"].items()),
        ]
        for b in found["batches"]
    ]
    screen.table(["BATCH", "STATE", "ITEMS", "COMMITTED"], rows)


@command("items")
@click.argument("batch")
@click.option("--state", "states", multiple=True, type=click.Choice(ITEM_STATES), help="Only these; may be repeated.")
@click.option("--code", "codes", multiple=True, metavar="CODE", help="Only items with this code; may be repeated.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@click.option("--after", "after_n", type=click.IntRange(min=0), default=0, help="Go on after this number (column N).")
@click.pass_obj
def items(
    common: Common, batch: str, states: tuple[str, ...], codes: tuple[str, ...], limit: int | None, after_n: int
) -> None:
    """The items of BATCH in input order, one a line."""
    screen = Screen(common)
    where = batch_of(common, batch)
    shown = 0
    with opened(where.url, read_only=True) as ledger:
        wanted = [ItemState(state) for state in states]
        # A filter by code looks at every item: the limit then counts what is shown, not what is read.
        pages = inspecting.items(ledger, where.batch, states=wanted, after_n=after_n, limit=None if codes else limit)
        for item in pages:
            if codes and item.code not in codes:
                continue
            if screen.closed or (limit is not None and shown == limit):
                break
            shown += 1
            if common.json:
                screen.document(item_json(item))
                continue
            if shown == 1:
                screen.line(f"{'N':>7}  {'STATE':<9}  {'AMOUNT':>15}  ITEM", style={"dim": True})
            amount = str(item.money) if item.money else "-"
            about = " ".join(filter(None, (item.reference, item.code, item.message)))
            screen.line(
                f"{item.n:>7}  {item.state.value:<9}  {amount:>15}  {item.id}" + (f"  {about}" if about else "")
            )
    if not shown:
        screen.note("no such items")


@command("show")
@click.argument("batch")
@click.argument("item")
@click.pass_obj
def show(common: Common, batch: str, item: str) -> None:
    """Where ITEM of BATCH stands, what comes next, and its history, a line an event; everything there is with --json."""
    screen = Screen(common)
    where = batch_of(common, batch)
    with opened(where.url, read_only=True) as ledger:
        found = inspecting.show(ledger, where.batch, item)
    if common.json:
        screen.document(found)
        return
    facts = found["item"]
    screen.line(f"{facts['item']}: {facts['state']}", style=STATE_STYLE.get(facts["state"]))
    for name, value in header(found):
        screen.line(f"  {name:<11} {value}")
    for name, value in facts["fields"].items():
        screen.detail(f"  {name} = {value}")
    screen.line()
    for event in found["events"]:
        screen.line(f"{event['seq']:>8}  {clock(event.get('at'))}  {event.get('type', '?'):<12} {happened(event)}")
