"""The command that writes the batch which undoes executions that were made too often."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from payonce.cli.common import Common, command
from payonce.cli.screen import Screen
from payonce.cli.words import some
from payonce.core.errors import UsageError
from payonce.service.addresses import ledger_url
from payonce.service.opening import named, opened

_PATH = click.Path(path_type=Path)


@command("reverse")
@click.argument("source", metavar="BATCH|AUDIT.json")
@click.option(
    "--out", required=True, type=_PATH, metavar="FILE", help="The list (.csv); the batch file is put beside it."
)
@click.option(
    "--provider", "how", type=_PATH, metavar="HOW.toml", help="A [provider] table: how one execution is undone."
)
@click.option("--collect", is_flag=True, help="HOW.toml makes an invoice: collect the money back instead of undoing.")
@click.option("--kind", help="The provider's kind, where an audit does not say it (stripe).")
@click.pass_obj
def reverse(common: Common, source: str, out: Path, how: Path | None, collect: bool, kind: str | None) -> int:
    """Write the batch that undoes the extras of BATCH (found by reconcile) or AUDIT.json (made by audit --out).

    What any batch of the ledger is committed with stays; of an item without that, the earliest execution. Nothing is sent:
    payonce run does that, under the same contract.
    """
    from payonce.service import reversing

    screen = Screen(common)
    sealed: Mapping[str, Any] = {}
    account: str | None = None
    if collect and how is None:
        raise UsageError("collecting needs a provider", code="usage", hint="--provider HOW.toml with an invoice call")
    if source.endswith(".json"):
        found, name, operation = reversing.extras_of_audit(Path(source))
        url = ledger_url(common.ledger)
        try:
            with opened(url) as ledger:
                left = reversing.still_open(found, ledger)
        except UsageError as error:
            if error.code == "no_reference":
                raise
            # A run without a ledger often has none here either: then nothing was reversed with one.
            left = reversing.still_open(found, None)
    else:
        where = named(source, common.ledger)
        with opened(where.url) as ledger:
            found, name, operation = reversing.extras_of_batch(ledger, where.batch)
            left = reversing.still_open(found, ledger)
            spec = ledger.batches(where.batch)[0].spec
            kind = kind or spec.provider
            sealed, account = spec.config.get("provider", {}), spec.account
    written = reversing.write(
        left, out, name=name, operation=operation, how=reversing.How(kind, how, collect, sealed, account)
    )
    if common.json:
        screen.document(
            {"items": written.items, "by_call": written.by_call, "already": list(written.already), "kept": list(written.kept), "totals": dict(written.totals),
             "list": str(written.list_file) if written.list_file else None,
             "batch_file": str(written.batch_file) if written.batch_file else None}
        )  # fmt: skip
        return 0
    _show(screen, written)
    return 0


def _show(screen: Screen, written: object) -> None:
    from payonce.service.reversing import Written

    assert isinstance(written, Written), "what reversing.write gives"
    if written.already:
        screen.note(f"{some(len(written.already), 'execution')} left out: in a reversal of this ledger already")
    if written.kept:
        screen.note(f"{some(len(written.kept), 'execution')} left out: an item of this ledger is committed with it")
    if not written.items:
        screen.line("nothing to reverse")
        return
    totals = ", ".join(f"{amount} {currency}" for currency, amount in written.totals.items())
    screen.line(f"{some(written.items, 'execution')} to undo, {totals}: {written.list_file}")
    if written.by_call < written.items and written.batch_file is not None:
        screen.line(f"{written.items - written.by_call} of them cannot be undone by a call: the list is for people")
    if written.batch_file is None:
        screen.line("the provider cannot undo these by a call that is known: the file is a work list")
        screen.next_step("--provider HOW.toml says how; with --collect it makes invoices")
    else:
        screen.next_step(f"look at {written.batch_file}, then payonce run {written.batch_file}")
