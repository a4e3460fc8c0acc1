"""The demo command: shows, on real processes, that a killed run pays nothing twice and loses nothing."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import click

from payonce.cli.common import Common, command
from payonce.cli.screen import Screen
from payonce.core.money import format_minor


@command("demo")
@click.option("--items", type=click.IntRange(2, 100_000), default=200, show_default=True, help="How many refunds.")
@click.option("--kill-at", type=click.IntRange(min=1), help="Kill after so many executions; two in five by default.")
@click.pass_obj
def demo(common: Common, items: int, kill_at: int | None) -> int:
    """Start the built-in provider and a run, kill the run at item K, start it again, and compare the provider's true
    executions with the ledger. Everything stays in a new folder payonce-demo.
    """
    from payonce.service import demo as service

    screen = Screen(common)
    found = service.run(items=items, kill_at=kill_at, parent=Path.cwd(), say=screen.note)
    if common.json:
        screen.document(found.as_json())
        return 0 if found.sound else 1
    screen.line()
    rows = [
        ["items in the batch", str(found.items)],
        ["executed by the provider", str(found.executed)],
        ["executed more than once", str(found.duplicates)],
        ["agree with the ledger", str(found.matched)],
    ]
    screen.table(["AFTER THE SECOND RUN", "COUNT"], rows, right=[1])
    asked, paid = (format_minor(minor, "USD") for minor in (found.planned_minor, found.executed_minor))
    screen.line(f"money: {asked} USD asked, {paid} USD executed")
    if not found.sound:
        screen.error(f"not as promised: see the logs in {found.folder}")
        return 1
    screen.line("every item was paid for exactly once", style={"fg": "green"})
    screen.line(f"proof.json proves it of {found.proved} to anybody who has the public key payonce.db.key.pub")
    screen.line("look around:")
    screen.line(f"  cd {shlex.quote(str(found.folder))}")
    for command_ in (
        "status batch.toml",
        "items batch.toml --limit 5",
        "show batch.toml RR-0001",
        "trail verify",
        "trail verify-proof proof.json --key payonce.db.key.pub",
    ):
        screen.line(f"  {_program()} {command_}")
    return 0


def _program() -> str:
    """How this program is called from any folder: by its name where the PATH finds it, else by its whole path."""
    called = Path(sys.argv[0])
    if called.name != "payonce":
        return f"{shlex.quote(sys.executable)} -m payonce"
    found = shutil.which("payonce")
    if found is not None and Path(found).resolve() == called.resolve():
        return "payonce"
    return shlex.quote(str(called.absolute()))
