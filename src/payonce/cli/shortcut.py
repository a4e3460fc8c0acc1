"""Short commands: refund, payout, invoice. Each writes the batch file it used, and runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from payonce.cli.common import Common, command
from payonce.cli.run import run
from payonce.cli.screen import Screen
from payonce.core.errors import PayonceError, UsageError
from payonce.service import shortcuts

# Kinds whose calls are known without a description of the API.
_KINDS = ("stripe", "adyen", "paypal", "simulator")
_OPTIONS = (
    click.argument("file", type=click.Path(dir_okay=False, path_type=Path)),
    click.option("--provider", "kind", required=True, type=click.Choice(_KINDS), help="Who executes it."),
    click.option("--batch", required=True, metavar="NAME", help="The batch's name; its file is NAME.toml, here."),
    click.option("--id", "id_column", metavar="COLUMN", help="The item's id; found by its name if left out."),
    click.option("--target", metavar="COLUMN", help="What is acted on (charge, payee, customer)."),
    click.option("--amount", metavar="COLUMN", help="The amount in major units."),
    click.option("--currency", metavar="COLUMN", help="The currency."),
    click.option("--all-in", metavar="CODE", help="One currency for all rows, where there is no column."),
    click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the provider."),
    click.option("--rate", metavar="N/s", help="At most so many calls a second."),
    click.option("--yes", "-y", is_flag=True, help="Do not ask before the batch is sealed and sent."),
    click.option("--check", is_flag=True, help="Before it is sealed, read each target at the provider."),
    click.option("--plan-only", is_flag=True, help="Write the batch file and stop."),
)


def _short(operation: str, text: str) -> click.Command:
    def execute(common: Common, /, **said: Any) -> Any:
        screen = Screen(common)
        wanted = _wanted(operation, said)
        path, new = shortcuts.write(wanted, folder=Path.cwd())
        if (guessed := shortcuts.guessed_id(wanted)) is not None:
            screen.note(guessed)
        screen.note(f"batch file: {path.name} (after a crash: payonce run {path.name})")
        if said["plan_only"]:
            if common.json:
                screen.document({"written": str(path)})
            return 0
        context = click.get_current_context()
        try:
            return context.invoke(run, batch_file=path, yes=said["yes"], check=said["check"], skip_bad_rows=False)
        except PayonceError:
            if new and not common.sending and shortcuts.take_back(path, ledger=common.ledger):
                screen.note(f"nothing was sealed, so {path.name} was removed again")
            raise

    execute.__doc__ = text
    made = click.pass_obj(execute)
    for option in reversed(_OPTIONS):
        made = option(made)
    return command(operation, help=text)(made)


def _wanted(operation: str, said: dict[str, Any]) -> shortcuts.Shortcut:
    columns = shortcuts.Columns(
        id=said["id_column"],
        target=said["target"],
        amount=said["amount"],
        currency=said["currency"],
        fixed_currency=said["all_in"],
    )
    return shortcuts.Shortcut(
        operation,
        said["file"],
        said["kind"],
        said["batch"],
        columns=columns,
        provider=dict(_pair(text) for text in said["settings"]),
        rate=said["rate"],
    )


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text!r} has no value", code="usage", hint="like --set environment=test")
    return name.strip(), value


refund = _short("refund", "Refund what FILE lists, once each: the short way, without writing a batch file yourself.")
payout = _short("payout", "Pay out what FILE lists, once each: the short way, without writing a batch file yourself.")
invoice = _short("invoice", "Invoice what FILE lists, once each: the short way, without writing a batch file yourself.")
