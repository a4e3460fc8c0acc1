"""How a comparison of totals is shown: named coarse, because it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from payonce.cli.screen import Screen
from payonce.cli.words import some

if TYPE_CHECKING:
    from payonce.service.reconciling_coarse import CoarseReport


def show_coarse(screen: Screen, report: CoarseReport) -> None:
    """The report for people, or as JSON."""
    found = report.as_json()
    if screen.common.json:
        screen.document(found)
        return
    screen.line(f"{report.batch} against {', '.join(report.totals.files)}: coarse, totals by day and {report.by} only")
    screen.line()
    rows = [_row(line) for line in (*found["days"], *({**line, "day": "all"} for line in found["totals"]))]
    header = ["DAY", report.by.upper(), "LEDGER", "CALLS", "STATEMENT", "CALLS", "", "RESULT"]
    screen.table(header, rows, right=[2, 3, 4, 5])
    screen.note("totals that agree prove nothing about a single call; a report with a row a call does")
    if report.unknown:
        screen.note(f"{some(report.unknown, 'item')} of unknown outcome may be in the statement's totals")


def _row(line: dict[str, Any]) -> list[str]:
    told = [line["ledger_calls"], line["statement_calls"]]
    ours, theirs = ("-" if count is None else str(count) for count in told)
    return [line["day"], line["value"] or "-", line["ledger_amount"], ours, line["statement_amount"], theirs,
            line["currency"], line["result"]]  # fmt: skip
