"""The command that erases personal data and leaves the trail whole."""

from __future__ import annotations

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.screen import Screen
from payonce.cli.words import some


@command("erase")
@click.argument("batch")
@click.argument("items", metavar="[ITEM ...]", nargs=-1)
@click.option("--field", "fields", multiple=True, metavar="NAME", help="Only this input field; may be repeated.")
@click.option("--reason", required=True, help="Why; it goes into the trail.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def erase(common: Common, batch: str, items: tuple[str, ...], fields: tuple[str, ...], reason: str, yes: bool) -> None:
    """Erase input fields, kept payloads and outputs of ITEMs of BATCH, or of all its items. It cannot be undone.

    Ids, amounts, references and digests stay, so that the trail still verifies; an event says who erased what and why.
    """
    from payonce.ledger.actors import this_actor
    from payonce.service import trailing_erase

    screen = Screen(common)
    where = batch_of(common, batch)
    if screen.interactive and not yes:
        what = some(len(items), "item") if items else "all items"
        click.confirm(f"erase personal data of {what} of {where.batch} for good?", abort=True, err=True)
    done = trailing_erase.erase(
        where.url, batch=where.batch, items=items, fields=fields, actor=this_actor(), reason=reason
    )
    if common.json:
        screen.document(done)
    else:
        screen.line(f"erased from {some(int(str(done['items'])), 'item')} of {where.batch}; the trail still verifies")
