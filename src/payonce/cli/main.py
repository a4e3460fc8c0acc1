"""The entry point: finds the command, runs it, and turns every error into one clear message and the right exit code.

Exit codes are those of docs/reference/exit-codes.md. With ``--json`` standard output holds one JSON document and nothing
else, for errors too. No traceback reaches the screen without ``--debug``.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from payonce.cli.common import Common, LazyGroup

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "demo": (
            "payonce.cli.demo:demo",
            "A full run on the built-in provider: killed, resumed, compared with its truth.",
        ),
        "init": ("payonce.cli.setup:init", "Write a commented batch file and a sample input."),
    },
    "Run": {
        "plan": ("payonce.cli.plan:plan", "Read, validate and seal a batch; sends nothing."),
        "run": ("payonce.cli.run:run", "Run or resume a batch; the only command a crash needs."),
        "work": ("payonce.cli.work:work", "Join a sealed batch and work until it is done."),
    },
    "Short ways": {
        "refund": ("payonce.cli.shortcut:refund", "Refund what a file lists; writes the batch file it used."),
        "payout": ("payonce.cli.shortcut:payout", "Pay out what a file lists; writes the batch file it used."),
        "invoice": ("payonce.cli.shortcut:invoice", "Invoice what a file lists; writes the batch file it used."),
    },
    "Look": {
        "status": ("payonce.cli.look:status", "Counts per state, money, rate and time left."),
        "items": ("payonce.cli.look:items", "The items of a batch, one a line."),
        "show": ("payonce.cli.look:show", "One item's whole history."),
        "statement": ("payonce.cli.statement:statement", "Fetch the provider's own account of what it did."),
        "settle": ("payonce.cli.settle:settle", "Record what webhooks say about the money."),
        "costs": ("payonce.cli.costs:costs", "What a batch of calls cost, and what by."),
        "results": ("payonce.cli.results:results", "What the calls returned, in input order."),
    },
    "Steer": {
        "pause": ("payonce.cli.steer:pause", "No new calls until it is resumed."),
        "resume": ("payonce.cli.steer:resume", "Let a paused or stopped batch go on."),
        "cancel": ("payonce.cli.steer:cancel", "Never send what is still planned."),
        "retry": ("payonce.cli.decide:retry", "Put refused or skipped items back to planned."),
        "resolve": ("payonce.cli.decide:resolve", "Say what became of an unknown item."),
    },
    "Prove": {
        "reconcile": ("payonce.cli.reconcile:reconcile", "Compare a batch with the provider's statement."),
        "findings": ("payonce.cli.reconcile_findings:findings", "Findings of a batch, and what became of them."),
        "audit": ("payonce.cli.audit:audit", "Find duplicates of a run that had no ledger."),
        "reverse": ("payonce.cli.reverse:reverse", "Write the batch that undoes the extras."),
        "adopt": ("payonce.cli.adopt:adopt", "Take executions found elsewhere into the ledger."),
        "trail": ("payonce.cli.trail:trail", "The audit trail: verify, prove, checkpoint, export."),
    },
    "Set up": {
        "providers": ("payonce.cli.setup:providers", "What each adapter promises about its provider."),
        "doctor": ("payonce.cli.doctor:doctor", "Check ledger, disk, clock, credentials and versions."),
        "simulate": ("payonce.cli.simulate:simulate", "Serve the built-in provider over HTTP."),
        "ledger": ("payonce.cli.ledger:ledger", "Look after a ledger that was restored or copied."),
    },
}


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked:
        return
    from importlib.metadata import version

    click.echo(f"payonce {version('payonce')}")
    ctx.exit()


cli = LazyGroup(
    "payonce",
    places=COMMANDS,
    help="Runs batches that move money: every item is paid for exactly once, whatever crashes, with the proof.",
    epilog="payonce COMMAND --help says more about a command.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and exit.",
        )
    ],
)


def main(args: list[str] | None = None) -> NoReturn:
    """Runs one command and exits the process with its code."""
    given = sys.argv[1:] if args is None else args
    code = invoke(given)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def invoke(args: list[str]) -> int:
    """Runs one command and returns its exit code; every error has been reported when this returns."""
    common = Common.of_environment()
    # Options may be wrong before --json was parsed; a program that asked for JSON gets JSON all the same.
    common.json = "--json" in args
    common.debug = "--debug" in args
    try:
        code = cli.main(args, prog_name="payonce", standalone_mode=False, obj=common)
        return code if isinstance(code, int) else 0
    except BaseException as error:
        from payonce.cli.failure import report

        return report(error, common)
