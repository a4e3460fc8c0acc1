"""The commands of the trail: its key, checkpoints, and finding out whether anybody changed it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from payonce.cli.common import Common, LazyGroup, command
from payonce.cli.screen import Screen
from payonce.cli.words import some
from payonce.service.addresses import ledger_url

trail = LazyGroup(
    "trail",
    places={
        "Commands": {
            "verify": ("payonce.cli.trail:verify", "Find any event that was changed, removed, inserted or moved."),
            "checkpoint": ("payonce.cli.trail:checkpoint", "Sign how far the trail has come, to be kept elsewhere."),
            "key": ("payonce.cli.trail:key", "Make the key that signs checkpoints, or replace it."),
            "prove": ("payonce.cli.trail_proof:prove", "Write the proof of one item."),
            "verify-proof": ("payonce.cli.trail_proof:verify_proof", "Check a proof; needs no ledger."),
            "export": ("payonce.cli.trail_proof:export", "Write the trail to a file that is verifiable offline."),
            "verify-export": ("payonce.cli.trail_proof:verify_export", "Check an export; needs no ledger."),
            "erase": ("payonce.cli.trail_erase:erase", "Erase personal fields and payloads; the trail stays whole."),
        }
    },
    help="The audit trail: who did what, provably.",
)
_FILE = click.Path(dir_okay=False, path_type=Path)


@command("verify")
@click.option("--checkpoints", "files", multiple=True, metavar="FILE", type=_FILE, help="Kept checkpoints; repeatable.")
@click.option("--since", metavar="FILE", type=_FILE, help="Only what came after the last checkpoint of FILE.")
@click.option("--key", metavar="PUB", help="The public key or its file; else the one beside the ledger.")
@click.pass_obj
def verify(common: Common, files: tuple[Path, ...], since: Path | None, key: str | None) -> int:
    """Verify the ledger's trail: hashes, kept checkpoints, and that the events explain every state and amount.

    Names what was changed. Exit code 1 if anything was found. Changes nothing and may run beside a batch.
    """
    from payonce.service import trailing

    screen = Screen(common)
    url = ledger_url(common.ledger)
    found = trailing.verify_trail(url, trailing.Against(key, files, since)).as_json()
    if common.json:
        screen.document(found)
    else:
        _show(screen, found)
    return 0 if found["ok"] else 1


def _show(screen: Screen, found: Mapping[str, Any]) -> None:
    what = f"{some(found['events'], 'event')} and {some(found['items'], 'item')}"
    if found["since"]:
        behind = some(max(0, found["events"] - found["since"]), "event")
        what = f"{behind} after the checkpoint over {found['since']}"
    against = f", {some(found['checkpoints'], 'checkpoint')}" if found["checkpoints"] else ""
    if found["ok"]:
        screen.line(f"sound: {what}{against}", style={"fg": "green"})
        screen.line(f"  root {found['root']}")
    else:
        screen.line(f"{some(len(found['faults']), 'fault')} in {what}{against}", style={"fg": "red", "bold": True})
    for fault in found["faults"]:
        screen.line(f"  {fault['code']:<16} {fault['message']}")
    for sentence in found["not_checked"]:
        screen.note(f"not checked: {sentence}")


@command("checkpoint")
@click.option("--key", metavar="FILE", help="The private key; else LEDGER.key.")
@click.option("--out", metavar="FILE", type=_FILE, help="Append it to FILE; else to LEDGER.checkpoints.")
@click.pass_obj
def checkpoint(common: Common, key: str | None, out: Path | None) -> None:
    """Sign how far the trail has come and print it. Keep it where nobody who can write the ledger can."""
    from payonce.core.errors import UsageError
    from payonce.service import trailing
    from payonce.trail.publish import ToFile, publish

    screen = Screen(common)
    url = ledger_url(common.ledger)
    signed = trailing.make_checkpoint(url, key=key)
    place = out or trailing.Places.of(url).checkpoints
    for fault in publish(signed, [ToFile(place)], show=screen.line):
        raise UsageError(fault, code="file_unwritable", hint="name another file: --out FILE")
    if common.json:
        there = signed.checkpoint
        screen.document({"size": there.size, "root": there.root.hex(), "checkpoint": str(signed), "file": str(place)})
    else:
        screen.line(str(signed).rstrip())
        screen.note(f"appended to {place}")


@command("key")
@click.option("--out", metavar="FILE", type=_FILE, help="Where to; else LEDGER.key.")
@click.option("--rotate", is_flag=True, help="Replace the key; a checkpoint signed by both hands the trust on.")
@click.option("--reason", help="Why; it goes into the trail.")
@click.pass_obj
def key(common: Common, out: Path | None, rotate: bool, reason: str | None) -> None:
    """Make the key that signs checkpoints. Its public half goes to FILE.pub: give that to whoever will check."""
    from payonce.service import trailing_keys

    screen = Screen(common)
    url = ledger_url(common.ledger)
    made = trailing_keys.make(url, out=out, rotate=rotate, reason=reason)
    for warning in made["warnings"]:
        screen.warn(warning)
    if common.json:
        screen.document(made)
        return
    screen.line(made["public"])
    screen.note(f"the private key is {made['file']}; whoever has it can sign: keep it from those who write the ledger")
    if made["checkpoint"]:
        screen.line()
        screen.line(made["checkpoint"].rstrip())
        screen.note(f"the old key is {made['old']}; publish the checkpoint above, which both keys signed")
