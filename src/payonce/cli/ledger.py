"""Commands that look after a ledger as a whole."""

from __future__ import annotations

import click

from payonce.cli import words
from payonce.cli.common import Common, LazyGroup, command
from payonce.cli.screen import Screen
from payonce.service.addresses import ledger_url

ledger = LazyGroup(
    "ledger",
    places={
        "Commands": {
            "accept": ("payonce.cli.ledger:accept", "Go on with a restored, moved or copied ledger."),
            "copy": ("payonce.cli.ledger:copy", "Move all batches to another store."),
            "tidy": ("payonce.cli.ledger:tidy", "Take away files of large outputs that a crash left."),
        }
    },
    help="Look after a ledger as a whole: one that was restored or copied, or that goes to another store.",
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
    from payonce.service.addresses import shown_ledger

    url = ledger_url(common.ledger)
    accept_place(url, reason=reason, actor=this_actor())
    screen = Screen(common)
    if common.json:
        screen.document({"ledger": shown_ledger(url), "accepted": True})
    else:
        screen.line(f"{shown_ledger(url)} is the one to go on with from now on")


@command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.pass_obj
def copy(common: Common, source: str, target: str) -> None:
    """Move all batches of the ledger FROM to a new ledger TO: sqlite:PATH, jsonl:PATH or postgresql://...

    Nothing may be at TO, and no run may be under way. The trail goes over byte for byte and is verified there. From then
    on FROM can only be read. All of it or nothing; cut short, the same command goes on.
    """
    from payonce.service.copying import copy_to

    done = copy_to(source, target)
    screen = Screen(common)
    if common.json:
        screen.document(done)
    else:
        batches = words.some(done["batches"], "batch") if done["batches"] == 1 else f"{done['batches']} batches"
        held = words.some(done["checkpoints"], "checkpoint")
        screen.prose(
            f"{batches}, {words.some(done['items'], 'item')}, {words.some(done['events'], 'event')} are in {done['to']}"
        )
        screen.prose(f"trail   verified, against {held} that had been kept")
        screen.prose(f"next    use {done['to']} from now on; {done['from']} can only be read")


@command("tidy")
@click.option("--dry-run", is_flag=True, help="List them; take nothing away.")
@click.pass_obj
def tidy(common: Common, dry_run: bool) -> None:
    """Take away files of large outputs that nothing in the ledger refers to, which a crash before a commit leaves.

    Refused while a process writes outputs. No output of a committed item is ever taken away.
    """
    from payonce.service import large_outputs
    from payonce.service.opening import opened

    url = ledger_url(common.ledger)
    with opened(url) as ledger:
        found = large_outputs.tidy(ledger, url, remove=not dry_run)
    screen = Screen(common)
    if common.json:
        names = [str(path) for path in found.paths]
        screen.document({"files": names, "bytes": found.size, "removed": not dry_run})
        return
    for path in found.paths if dry_run else ():
        screen.line(str(path))
    done = "nothing refers to" if dry_run else "taken away:"
    screen.prose(f"{done} {words.some(len(found.paths), 'file')} of {found.size} bytes")
