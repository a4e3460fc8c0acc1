"""The command that compares a batch with the provider's statement, and shows what was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.screen import Screen
from payonce.cli.words import some
from payonce.core.errors import UsageError
from payonce.service.opening import opened

if TYPE_CHECKING:
    from payonce.reconcile.report import Report
    from payonce.service.reconciling import Asked

_MOST_SHOWN = 30
_PATH = click.Path(path_type=Path)


@command("reconcile")
@click.argument("batch")
@click.option(
    "--statement", "files", multiple=True, type=_PATH, metavar="FILE", help="The provider's report; may be repeated."
)
@click.option("--from-provider", is_flag=True, help="Ask the provider's look-up, item by item, instead of a file.")
@click.option("--from", "start", metavar="TIME", help="The statement's period begins here (ISO 8601).")
@click.option("--to", "end", metavar="TIME", help="And ends here; a day or a second means to its end.")
@click.option("--map", "mapping", type=_PATH, metavar="FILE.toml", help="A [statement] table for this file's columns.")
@click.option("--coarse", is_flag=True, help="The report has only totals: compare those, by [statement.coarse].")
@click.option("--apply", "write", is_flag=True, help="Write what the statement proves about items into the ledger.")
@click.option("--csv", "folder", type=_PATH, metavar="DIR", help="Findings as CSV files, one for each class.")
@click.option("--html", "page", type=_PATH, metavar="FILE", help="The report as one page to file.")
@click.pass_obj
def reconcile(common: Common, /, batch: str, **given: Any) -> int:
    """Compare BATCH (an id or a batch file) with the provider's statement, entry by entry, to the minor unit.

    Exit 0 where nothing was found, 1 where something was, 2 where the statement cannot be used.
    """
    from payonce.ledger.actors import this_actor
    from payonce.service import reconciling

    screen = Screen(common)
    where = batch_of(common, batch)
    if bool(given["files"]) == bool(given["from_provider"]):
        raise UsageError(
            "name a statement, or ask the provider",
            code="usage",
            hint="--statement FILE, or --from-provider with a batch file",
        )
    question = reconciling.Asked(
        where.batch, tuple(given["files"]), mapping_of(given["mapping"]), time_us(given["start"], end=False),
        time_us(given["end"], end=True, whole=True), given["write"],
    )  # fmt: skip
    if given["coarse"]:
        return _coarse(screen, where.url, question)
    with opened(where.url) as ledger:
        if given["from_provider"]:
            from payonce.service.reconciling_provider import reconcile_provider

            report = reconcile_provider(ledger, Path(batch), question, actor=this_actor())
        else:
            report = reconciling.reconcile_files(ledger, question, actor=this_actor())
    _files(screen, report, folder=given["folder"], page=given["page"], url=where.url)
    show(screen, report)
    return 1 if report.found else 0


def _coarse(screen: Screen, url: str, asked: Asked) -> int:
    """Totals only: no finding is opened, since no item can be named."""
    from payonce.cli.reconcile_coarse import show_coarse
    from payonce.ledger.actors import this_actor
    from payonce.service.reconciling_coarse import reconcile_coarse

    if not asked.files or asked.apply:
        raise UsageError(
            "--coarse compares the totals of a report", code="usage", hint="--coarse --statement FILE, without --apply"
        )
    with opened(url) as ledger:
        report = reconcile_coarse(ledger, asked.batch, asked.files, asked.mapping, actor=this_actor())
    show_coarse(screen, report)
    return 1 if report.found else 0


def mapping_of(path: Path | None) -> dict[str, Any] | None:
    """The [statement] table of a TOML file (a batch file will do); the whole file where it has no such table."""
    if path is None:
        return None
    from payonce.service.tomltext import read_toml

    raw, _ = read_toml(path, what="map file")
    table = raw.get("statement", raw)
    if not isinstance(table, dict) or not table:
        raise UsageError(f"{path} has no [statement] table", code="usage", hint="see docs/reference/statements.md")
    return table


def time_us(text: str | None, *, end: bool, whole: bool = False) -> int | None:
    """A time of an option in microseconds. A day as the end of a period means to the end of that day; with ``whole`` any
    time means to the end of its own resolution, a whole second to the end of that second."""
    if text is None:
        return None
    from payonce.reconcile.times import TimeFault, read_times

    try:
        moment = read_times([text])[0]
    except TimeFault as fault:
        raise UsageError(
            f"{text!r} is no time", code="usage", hint="write 2026-11-30 or 2026-11-30T08:00:00Z"
        ) from fault
    if moment is None:
        return None
    return moment.end_us if end and (whole or moment.resolution_us > 60_000_000) else moment.at_us


def _costs(url: str, report: Report) -> str:
    """What a batch of calls cost, by model, as a section of the page; empty for another batch."""
    if report.operation != "call":
        return ""
    from payonce.service import costs, costs_html

    with opened(url, read_only=True) as ledger:
        return costs_html.section(costs.breakdown(ledger, report.batch))


def _files(screen: Screen, report: Report, *, folder: Path | None, page: Path | None, url: str) -> None:
    if folder is not None:
        from payonce.reconcile.report_csv import write_csv

        written = write_csv(report, folder)
        screen.note(f"{some(len(written), 'CSV file')} in {folder}")
    if page is not None:
        from payonce.reconcile import report_html

        try:
            page.write_text(report_html.page(report, more=_costs(url, report)), encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"cannot write {page}: {error.strerror}", code="file_unwritable", hint="name another file"
            ) from error
        screen.note(f"the report is in {page}")


def show(screen: Screen, report: Report) -> None:
    """The report for people, or as JSON."""
    from payonce.reconcile.report import document

    found = document(report)
    if screen.common.json:
        screen.document(found)
        return
    statement = found["statement"]
    named = ": ".join(filter(None, (statement["report"], ", ".join(statement["files"]))))
    screen.line(f"{report.batch} against {named}")
    # What a provider was asked for begins nowhere: it shows all that was ever executed on the items' targets.
    start = "up" if statement["period"] == "asked" else statement["from"] or "?"
    read = f"{some(statement['rows'], 'row')} read, {statement['rows_used']} used, {statement['rows_ignored']} ignored"
    screen.line(f"{read}; period {start} to {statement['to'] or '?'}")
    for text in statement["assumed"]:
        screen.prose(f"assumed: {text}", style={"fg": "yellow"})
    screen.line()
    rows = [
        [c, b["ledger"], b["explained"], b["statement"], b["not_covered"]] for c, b in found["balance"].items() if c
    ]
    if rows:
        screen.table(["CURRENCY", "LEDGER", "+ FINDINGS", "= STATEMENT", "NOT COVERED"], rows, right=[1, 2, 3, 4])
        screen.line()
    screen.table(
        ["CLASS", "NUMBER"], [[kind, str(count)] for kind, count in found["classes"].items() if count], right=[1]
    )
    _show_findings(screen, found["discrepancies"])
    _show_proofs(screen, found)


def _show_findings(screen: Screen, found: list[dict[str, Any]]) -> None:
    if not found:
        screen.line("nothing found", style={"fg": "green"})
        return
    screen.line()
    rows = [
        [f["class"], f["item"] or "-", f["reference"] or "-", f["ledger_amount"] or f["expected"] or "-",
         f["statement_amount"] or f["found"] or "-", f["statement_currency"] or f["currency"] or "", f["note"]]
        for f in found[:_MOST_SHOWN]
    ]  # fmt: skip
    screen.table(["CLASS", "ITEM", "REFERENCE", "LEDGER", "STATEMENT", "", "WHAT"], rows, right=[3, 4])
    if len(found) > _MOST_SHOWN:
        screen.line(f"and {len(found) - _MOST_SHOWN} more: --json, --csv DIR or --html FILE has them all")


def _show_proofs(screen: Screen, found: dict[str, Any]) -> None:
    arrived = found["arrived"]
    if arrived["recorded"]:
        screen.line(f"the money of {some(arrived['recorded'], 'item')} arrived; written to the ledger")
    elif arrived["items"]:
        screen.note(f"the money of {some(arrived['items'], 'item')} arrived since: --apply writes it")
    for change in found["applied"]:
        screen.line(f"{change['item']}: proven {change['proves'].replace('_', ' ')}; written to the ledger")
    for change in found["not_applied"]:
        screen.warn(f"{change['item']}: {change['why']}")
    open_proofs = [p for p in found["proofs"] if p["proves"] != "returned"] if not found["applied"] else []
    if open_proofs:
        screen.note(f"the statement decides {some(len(open_proofs), 'item')} unknown to the ledger: --apply writes it")
    if found["elsewhere"]:
        screen.note(f"accounted for by another batch of this ledger: {some(len(found['elsewhere']), 'execution')}")
    for miss in found["near_misses"][:_MOST_SHOWN]:
        screen.note(f"{miss['item']}: {miss['note']}; nothing was matched by it")
    if found["undecided"]:
        screen.note(f"not decided by this statement: {some(len(found['undecided']), 'item')} without a known outcome")
