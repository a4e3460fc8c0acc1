"""How a plan looks on the screen: what is wrong on standard error, what it comes to on standard output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from payonce.cli.failure import place
from payonce.cli.screen import Screen
from payonce.cli.words import seconds, some
from payonce.core.errors import Problem
from payonce.core.money import format_minor
from payonce.service.durations import money_text
from payonce.service.report_plan import PlanReport

_MOST_SHOWN = 20


def show_plan(screen: Screen, report: PlanReport) -> None:
    """A plan for people. What holds it up comes last, with the next step."""
    for warning in report.warnings:
        screen.warn(warning)
    if report.problem_count:
        rows = f": {report.refused} of {some(report.rows or 0, 'row')}" if report.refused else ""
        screen.error(f"{some(report.problem_count, 'problem')} in the input of batch {report.batch}{rows}")
        show_problems(screen, report.problems, report.problem_codes, written=bool(report.problems_file))
        if report.problems_file:
            screen.note(f"  all of them are in {report.problems_file}")
    if report.problems and not report.sealed and not report.guarantee:
        screen.next_step("put them right and run the command again; nothing was sealed")
        return
    _show_sums(screen, report)
    if report.checks:
        screen.error(f"{some(len(report.checks), 'item')} not as the provider shows it")
        show_problems(screen, report.checks, _codes(report.checks))
        screen.next_step("put them right and run the command again; nothing was sealed")
    if report.overlaps.held:
        show_overlaps(screen, report)
        screen.next_step("look into them; --allow-overlap --reason TEXT seals it all the same; nothing was sealed")


def _show_sums(screen: Screen, report: PlanReport) -> None:
    screen.prose(f"batch      {report.batch} ({_state(report)})", style={"bold": True})
    account = f", account {report.account}" if report.account else ""
    screen.prose(f"what       {report.operation} through {report.provider}{account}")
    left = "" if report.left == report.items else f", {report.left} of them still to do"
    screen.prose(f"items      {report.items}{left}")
    screen.prose(f"total      {money_text(report.totals)}")
    _show_cost(screen, report.cost)
    for code, found in sorted(report.extremes.items()):
        large, small = found.largest, found.smallest
        screen.prose(
            f"           {code}: largest {format_minor(large[1], code)} ({large[0]}), "
            f"smallest {format_minor(small[1], code)} ({small[0]})"
        )
    if report.added:
        done = "added" if report.sealed else "to be added"
        screen.prose(f"{'added':10} {some(report.added, 'item')} {done}, {money_text(report.added_totals)}")
    for code, (total, budget) in report.over_budget.items():
        screen.warn(
            f"the total of {format_minor(total, code)} {code} is above the budget of {format_minor(budget, code)}: "
            "the run will stop there"
        )
    _show_rows(screen, report)
    if report.checked is not None:
        screen.prose(f"checked    {some(report.checked, 'item')} at the provider")
    if report.expected.seconds is not None:
        screen.prose(f"takes      about {seconds(report.expected.seconds)} ({report.expected.basis})")
    screen.prose(f"guarantee  {report.guarantee}")


def _show_cost(screen: Screen, cost: Mapping[str, Any]) -> None:
    """What the calls may cost, where their price is known only afterwards."""
    for code in sorted({*cost.get("estimated", {}), *cost.get("at_most", {})}):
        roughly, most = cost["estimated"].get(code), cost["at_most"].get(code)
        parts = [f"about {roughly} {code}"] if roughly else []
        parts += [f"at most {most} {code}"] if most else []
        screen.prose(f"cost       {', '.join(parts)} ({cost['basis']})")


def _state(report: PlanReport) -> str:
    if report.sealed:
        return "sealed" if report.new or report.added else "already sealed, unchanged"
    return "sealed; the new items are not added yet" if report.added else "not sealed yet"


def _show_rows(screen: Screen, report: PlanReport) -> None:
    """Duplicates, overlaps, and rows that are no items."""
    if report.duplicates:
        screen.prose(f"duplicates {some(report.duplicates, 'identical row')} left out")
    if report.shared_targets:
        screen.prose(f"targets    {some(report.shared_targets, 'target')} with several items, one at a time")
    overlaps = report.overlaps
    if overlaps.count:
        allowed = f"; allowed: {overlaps.allowed}" if overlaps.allowed else ""
        screen.prose(
            f"overlaps   {some(overlaps.count, 'item')} with what {', '.join(overlaps.batches)} acts on{allowed}"
        )
    if report.refused:
        counts = f"{report.items} items + {report.ignored_count} ignored + {report.refused} refused"
        screen.prose(f"rows       {report.rows} = {counts}")
    if report.ignored_count:
        more = "" if screen.common.verbose else "; --verbose lists them"
        screen.prose(f"ignored    {some(report.ignored_count, 'row')}{more}")
        for row in report.ignored[:_MOST_SHOWN]:
            screen.detail(f"  line {row.line}: {row.why}")


def show_overlaps(screen: Screen, report: PlanReport) -> None:
    """The first items on targets that another batch acts on."""
    found = report.overlaps
    screen.error(f"{some(found.count, 'item')} on targets that another batch has acted on")
    for overlap in found.first:
        screen.complaint(f"line {overlap.line}" if overlap.line else "", overlap.message)
    if found.count > len(found.first):
        screen.complaint("", f"and {found.count - len(found.first)} more")


def show_problems(
    screen: Screen, problems: Sequence[Problem], codes: Mapping[str, int], *, written: bool = False
) -> None:
    """The first problems with their places, by kind and each kind with its count: every kind is shown at least once."""
    shares = _shares(codes)
    for code, share in shares.items():
        if len(codes) > 1:
            screen.complaint("", f"{code}: {codes[code]}")
        for problem in islice((problem for problem in problems if problem.code == code), share):
            screen.complaint(place(problem), problem.message)
    more = sum(codes.values()) - sum(shares.values())
    if more > 0:
        screen.complaint("", f"and {more} more" + ("" if written else "; --problems FILE writes all of them"))


def _shares(codes: Mapping[str, int]) -> dict[str, int]:
    """How many of each kind are shown: what rare kinds do not need is left to the others."""
    shares: dict[str, int] = {}
    room, left = _MOST_SHOWN, len(codes)
    for code, count in sorted(codes.items(), key=lambda entry: entry[1]):
        shares[code] = min(count, max(1, room // left))
        room, left = room - shares[code], left - 1
    return {code: shares[code] for code in codes}


def _codes(problems: Sequence[Problem]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for problem in problems:
        counts[problem.code] = counts.get(problem.code, 0) + 1
    return counts
