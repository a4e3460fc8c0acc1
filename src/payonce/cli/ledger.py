"""Commands that look after a ledger as a whole."""

from __future__ import annotations

import click

from payonce.cli.common import Common, LazyGroup, command
from payonce.cli.screen import Screen
from payonce.service.addresses import ledger_url

ledger = LazyGroup(
    "ledger",
    places={"Commands": {"accept": ("payonce.cli.ledger:accept", "Go on with a restored, moved or copied ledger.")}},
    help="Look after a ledger that was restored, moved or copied.",
)


@command("accept")
@click.option("--reason", required=True, help="Why this ledger is the right one; it goes into the trail.")
@click.pass_obj
def accept(common: Common, reason: str) -> None:
    """Go on with a ledger that was restored from a backup, moved or copied.

    Only one copy may live. A restored ledger may not know the latest executions: compare it with the provider first.
    """
    from payonce.ledger.actors import this_actor
    from payonce.ledger.connect import accept_place

    url = ledger_url(common.ledger)
    accept_place(url, reason=reason, actor=this_actor())
    screen = Screen(common)
    if common.json:
        screen.document({"ledger": url, "accepted": True})
    else:
        screen.line(f"{url} is the one to go on with from now on")
