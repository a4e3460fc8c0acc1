"""Commands before the first batch: init, providers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from payonce.cli.common import Common, command
from payonce.cli.screen import Screen
from payonce.service import initialising, ready


@command("init")
@click.argument(
    "folder", required=False, default=".", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path)
)
@click.option("--template", metavar="NAME", help=f"Paid calls through {', '.join(ready.NAMES)}.")
@click.pass_obj
def init(common: Common, folder: Path, template: str | None) -> None:
    """Write a commented batch file and a sample input into DIR (by default here). Nothing is overwritten."""
    screen = Screen(common)
    paths = initialising.write(folder, template)
    if common.json:
        screen.document({"written": [str(path) for path in paths]})
        return
    for path in paths:
        screen.line(f"wrote {path}")
    if template is None:
        screen.note(f"try it: payonce simulate & payonce run {paths[0]}")
    else:
        screen.note(f"put your key into the environment, then: payonce plan {paths[0]}")


@command("providers")
@click.argument("kind", required=False)
@click.pass_obj
def providers(common: Common, kind: str | None) -> None:
    """What each adapter promises about its provider: keys, look-up, limits, and what a crash leaves to you.

    Without KIND one line for each; with it everything, and the sources.
    """
    from payonce.service.declaring import declarations

    screen = Screen(common)
    found = declarations(kind)
    if common.json:
        screen.document({"providers": found})
        return
    if kind is None:
        rows = [[one["kind"], one["operation"], *_glance(one)] for one in found]
        screen.table(["KIND", "OPERATION", "KEYS", "LOOK-UP", "READS TARGETS", "SETTLES"], rows)
        screen.note("payonce providers KIND says everything, with sources, and what a crash leaves to you")
        return
    for number, declared in enumerate(found):
        if number:
            screen.line()
        _declaration(screen, declared)


def _glance(declared: dict[str, Any]) -> list[str]:
    """What matters most of a declaration, in a word each."""
    from payonce.service.declaring import OPEN

    if declared["kind"] in OPEN:
        return ["as you declare it"] * 3 + ["-"]
    return [
        str(declared["key_retention"] or "no"),
        "yes" if declared["lookup"] else "no",
        "yes" if declared["preflight"] else "no",
        "later" if declared["settles_later"] else "at once",
    ]


def _declaration(screen: Screen, declared: dict[str, Any]) -> None:
    operation = "" if declared["operation"] == "any" else f": {declared['operation']}"
    screen.line(f"{declared['kind']}{operation}", style={"bold": True})
    for name, value in declared.items():
        if name in ("kind", "operation") or value in (None, "", [], {}):
            continue
        if isinstance(value, list):
            for number, entry in enumerate(value):
                screen.line(f"  {name if number == 0 else '':<14} {entry}")
        else:
            screen.line(f"  {name:<14} {_word(value)}")


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
