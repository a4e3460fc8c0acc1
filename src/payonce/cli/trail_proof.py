"""The commands that hand the trail out, and that check what was handed out without any ledger."""

from __future__ import annotations

from pathlib import Path

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.screen import Screen
from payonce.cli.words import some
from payonce.service.addresses import ledger_url

_FILE = click.Path(dir_okay=False, path_type=Path)


@command("prove")
@click.argument("batch")
@click.argument("item")
@click.option("--out", metavar="FILE", type=_FILE, help="Where to; else standard output.")
@click.option("--key", metavar="FILE", help="The private key that signs; with --checkpoint, the public key.")
@click.option("--checkpoint", "kept", metavar="FILE", type=_FILE, help="Prove under the last checkpoint of FILE.")
@click.pass_obj
def prove(common: Common, batch: str, item: str, out: Path | None, key: str | None, kept: Path | None) -> None:
    """Write the proof of ITEM of BATCH: its events, and why they are in the signed trail. One JSON document."""
    import orjson

    from payonce.core.errors import UsageError
    from payonce.service import trailing

    screen = Screen(common)
    where = batch_of(common, batch)
    document = trailing.prove(where.url, batch=where.batch, item=item, key=key, kept=kept)
    if out is None:
        screen.document(document)
        return
    try:
        out.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        raise UsageError(
            f"cannot write {out}: {error.strerror}", code="file_unwritable", hint="check the folder and the disk"
        ) from error
    if common.json:
        screen.document({"file": str(out), "events": len(document["events"])})
    else:
        screen.line(f"wrote {out}: {some(len(document['events']), 'event')} of {item}")


@command("verify-proof")
@click.argument("file", type=_FILE)
@click.option("--key", required=True, metavar="PUB", help="The public key or its file.")
@click.pass_obj
def verify_proof(common: Common, file: Path, key: str) -> int:
    """Check a proof that somebody gave you. Needs the public key and nothing else. Exit code 1 if it does not hold."""
    from payonce.core.errors import UsageError
    from payonce.service import trailing

    screen = Screen(common)
    try:
        found = trailing.check_proof(file, key)
    except UsageError as error:
        if error.code not in ("bad_proof", "untrusted", "bad_note"):
            raise
        found = {"ok": False, "code": error.code, "message": error.message}
    if common.json:
        screen.document(found)
    elif found["ok"]:
        screen.line(
            f"the proof holds: item {found['item']} of batch {found['batch']} is {found['state']}",
            style={"fg": "green"},
        )
        for name, value in (found["commit"] or {}).items():
            screen.line(f"  {name:<16} {value}")
        screen.line(f"  signed by        {found['signed_by']} over {some(found['checkpoint_events'], 'event')}")
    else:
        screen.line(found["message"], style={"fg": "red", "bold": True})
    return 0 if found["ok"] else 1


@command("export")
@click.argument("batch", required=False)
@click.option("--out", required=True, metavar="FILE", type=_FILE, help="Where to: .jsonl or .parquet.")
@click.option("--key", metavar="FILE", help="The private key that signs; else LEDGER.key.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.pass_obj
def export(common: Common, batch: str | None, out: Path, key: str | None, force: bool) -> None:
    """Write the events of BATCH, or of the whole ledger, with totals and a signed checkpoint, verifiable offline."""
    from payonce.service import trailing_export

    screen = Screen(common)
    where = batch_of(common, batch) if batch is not None else None
    url = where.url if where else ledger_url(common.ledger)
    order = trailing_export.Order(where.batch if where else None, out, key, force)
    made = trailing_export.write(url, order)
    if common.json:
        screen.document(made)
    else:
        screen.line(f"wrote {out}: {made['events']} of {some(made['of'], 'event')}")


@command("verify-export")
@click.argument("file", type=_FILE)
@click.option("--key", required=True, metavar="PUB", help="The public key or its file.")
@click.pass_obj
def verify_export(common: Common, file: Path, key: str) -> int:
    """Check an export with the public key alone: every event, that none is missing, and the totals."""
    from payonce.service import trailing_export

    screen = Screen(common)
    found = trailing_export.check(file, key)
    if common.json:
        screen.document(found)
        return 0 if found["ok"] else 1
    if found["ok"]:
        screen.line("the export holds", style={"fg": "green"})
        for batch, totals in found["totals"].items():
            money = ", ".join(f"{amount} {currency}" for currency, amount in totals["committed"].items())
            screen.line(f"  {batch}: {totals['items']['committed']} of {totals['items']['total']} committed, {money}")
    for fault in found["faults"]:
        screen.line(fault["message"], style={"fg": "red", "bold": True})
    return 0 if found["ok"] else 1
