"""The command that finds what a run without a ledger executed more than once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from payonce.cli.common import Common, command
from payonce.cli.reconcile import time_us
from payonce.cli.screen import Screen
from payonce.core.errors import UsageError
from payonce.core.wording import some

_MOST_SHOWN = 30
_PATH = click.Path(path_type=Path)


@command("audit")
@click.option(
    "--items", "items", required=True, type=_PATH, metavar="FILE", help="The items: a batch file, or an item file."
)
@click.option("--statement", "statements", multiple=True, type=_PATH, metavar="FILE", help="The provider's report.")
@click.option(
    "--from-provider", "provider", type=_PATH, metavar="PROVIDER.toml", help="A batch file whose look-up to ask."
)
@click.option(
    "--map", "mapping", type=_PATH, metavar="FILE.toml", help="[item] and [statement] tables; a batch file will do."
)
@click.option("--operation", default="refund", help="What the items are, where no batch file says it.")
@click.option("--since", metavar="TIME", help="Only executions from here on: earlier ones are other business.")
@click.option("--until", metavar="TIME", help="Only executions before this.")
@click.option("--out", type=_PATH, metavar="FILE.json", help="Keep the audit, for payonce reverse.")
@click.pass_obj
def audit(common: Common, /, **given: Any) -> int:
    """Sort every item of a run that had no ledger: executed once, never, more than once, or with a wrong amount.

    Exit 0 where every item was executed exactly once and nothing else was.
    """
    from payonce.service import auditing

    screen = Screen(common)
    if bool(given["statements"]) == (given["provider"] is not None):
        raise UsageError(
            "name a statement, or a provider to ask",
            code="usage",
            hint="--statement FILE, or --from-provider PROVIDER.toml",
        )
    asked = auditing.Asked(
        given["items"], tuple(given["statements"]), given["provider"], tables_of(given["mapping"]), given["operation"],
        time_us(given["since"], end=False), time_us(given["until"], end=True),
    )  # fmt: skip
    audited = auditing.audit(asked)
    found = auditing.document(audited)
    if given["out"] is not None:
        import orjson

        given["out"].write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n")
    if common.json:
        screen.document(found)
    else:
        _show(screen, found)
    return 0 if audited.found.clean else 1


def tables_of(path: Path | None) -> dict[str, Any] | None:
    """The tables of a map file; a file without any is a [statement] table itself."""
    if path is None:
        return None
    from payonce.service.tomltext import read_toml

    raw, _ = read_toml(path, what="map file")
    return raw if {"statement", "item", "adopt"} & raw.keys() else {"statement": raw}


def _show(screen: Screen, found: dict[str, Any]) -> None:
    screen.note(f"{some(found['rows'], 'row')} read, {found['rows_used']} used, {found['rows_ignored']} ignored")
    for text in found["assumed"]:
        screen.prose(f"assumed: {text}", style={"fg": "yellow"})
    screen.table(["ITEMS", "NUMBER"], [[kind, str(count)] for kind, count in found["items"].items()], right=[1])
    _table(
        screen,
        "executed too often; the earliest stays",
        found["extras"],
        ("item", "reference", "amount", "currency", "created_at"),
    )
    _table(
        screen,
        "executed with another amount",
        found["wrong_amount"],
        ("item", "reference", "asked", "amount", "currency"),
    )
    _table(screen, "explained by no item", found["unexplained"], ("name", "target", "count", "amount", "currency"))
    if found["none"]:
        screen.line()
        shown = ", ".join(found["none"][:_MOST_SHOWN])
        screen.line(f"never executed: {shown}" + (" ..." if len(found["none"]) > _MOST_SHOWN else ""))
    if found["extras"]:
        screen.next_step("payonce audit ... --out audit.json, then payonce reverse audit.json --out reversal.csv")


def _table(screen: Screen, title: str, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    if not rows:
        return
    screen.line()
    screen.line(title)
    cells = [["-" if row[name] is None else str(row[name]) for name in columns] for row in rows[:_MOST_SHOWN]]
    screen.table([name.upper() for name in columns], cells)
    if len(rows) > _MOST_SHOWN:
        screen.line(f"and {len(rows) - _MOST_SHOWN} more: --json has them all")
