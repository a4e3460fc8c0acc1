"""Putting a plan's report together: from the reading of an input, or of a sealed batch from the ledger alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from payonce.core.model import Batch
from payonce.core.states import BatchState, ItemState
from payonce.intake import Intake
from payonce.ledger.protocol import Ledger
from payonce.service.batchfile import BatchFile
from payonce.service.planning_costs import guarantee_of
from payonce.service.report_plan import Expected, Extremes, PlanReport, Row, expected

# A report is held in memory; an input with more problems than this has one problem, many times.
_MOST_TOLD: Final = 100_000
_OVER: Final = (BatchState.FINISHED, BatchState.CANCELLED)


def blank_report(
    file: BatchFile, *, guarantee: str, account: str | None, items: int, totals: Mapping[str, int]
) -> PlanReport:
    """The report of a batch that is not sealed yet."""
    return PlanReport(
        batch=file.id,
        operation=file.operation,
        provider=str(file.provider["kind"]),
        account=account,
        sealed=False,
        new=False,
        items=items,
        left=items,
        totals=totals,
        guarantee=guarantee,
        expected=Expected(None, "the input has problems"),
        budget=file.limits.budget,
        warnings=file.warnings,
    )


def sealed_report(file: BatchFile, ledger: Ledger, batch: Batch) -> PlanReport:
    """A batch that is sealed already, from the ledger alone."""
    status = ledger.status(file.id)
    left = 0 if batch.state in _OVER else sum(status.count(state) for state in ItemState if state.is_open)
    config = batch.spec.config
    totals = {str(code): int(minor) for code, minor in dict(config.get("totals", {})).items()}
    report = blank_report(
        file,
        guarantee=guarantee_of(str(config.get("guarantee", "")), file.limits),
        account=batch.spec.account,
        items=batch.items,
        totals=totals,
    )
    return replace(
        report,
        sealed=True,
        left=left,
        expected=expected(file.limits, left=left),
        extremes=_sealed_extremes(config.get("extremes")),
        cost=dict(config.get("cost", {})),
    )


def with_input(report: PlanReport, intake: Intake, *, problems: Path | None) -> PlanReport:
    """What the reading found: rows, ignored rows, duplicates, problems, notes, the largest and smallest items.

    ``problems`` is the file that all problems were written to.
    """
    ignored = tuple(Row(row.line, row.why) for row in islice(intake.ignored, _MOST_TOLD))
    notes = tuple(note.message if note.count == 1 else f"{note.message} ({note.count} times)" for note in intake.notes)
    return replace(
        report,
        rows=intake.counts.rows,
        ignored=ignored,
        ignored_count=len(intake.ignored),
        refused=intake.counts.refused,
        duplicates=sum("in every respect" in row.why for row in intake.ignored),
        problems=tuple(sorted(islice(intake.problems, _MOST_TOLD), key=lambda problem: problem.line or 0)),
        problem_count=len(intake.problems),
        problem_codes=intake.problem_codes,
        problems_file=None if problems is None else str(problems),
        warnings=(*report.warnings, *notes),
        extremes=extremes_of(intake),
        shared_targets=intake.shared_targets.count,
    )


def extremes_of(intake: Intake) -> dict[str, Extremes]:
    """The largest and smallest item of each currency."""
    return {
        total.currency: Extremes(
            (total.largest.id, total.largest.money.minor), (total.smallest.id, total.smallest.money.minor)
        )
        for total in intake.totals
    }


def extremes_data(intake: Intake) -> dict[str, Any]:
    """The same as it is sealed, so that a later plan need not read the input."""
    return {code: [list(found.largest), list(found.smallest)] for code, found in extremes_of(intake).items()}


def _sealed_extremes(sealed: Any) -> dict[str, Extremes]:
    if not isinstance(sealed, Mapping):
        return {}  # sealed from Python, or by an earlier version
    return {
        str(code): Extremes((str(large[0]), int(large[1])), (str(small[0]), int(small[1])))
        for code, (large, small) in sealed.items()
    }
