"""Which time some files of one report cover: what they declare, what somebody said, or what their rows show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from payonce.reconcile.errors import refuse
from payonce.reconcile.model import Coverage
from payonce.reconcile.row import Rows
from payonce.reconcile.times import TimeFault, read_times


class Period(Protocol):
    """The period that was asked for, where somebody said so, and when the statement is read."""

    @property
    def from_us(self) -> int | None: ...
    @property
    def to_us(self) -> int | None: ...
    @property
    def now_us(self) -> int | None: ...


def coverage_of(read: Sequence[Rows], wanted: Period, lag_us: int) -> tuple[Coverage, str]:
    """The period: what the files declare, else what was said, else from the first to the last row time."""
    spans: list[tuple[int, int]] = []
    sources: set[str] = set()
    for rows in read:
        declared = declared_span(rows)
        if declared is not None:
            spans.append(declared)
            sources.add("file")
        elif wanted.from_us is not None and wanted.to_us is not None:
            spans.append((wanted.from_us, wanted.to_us))
            sources.add("stated")
        elif rows.moments is not None:
            spans.append(rows.moments)
            sources.add("rows")
        else:
            return Coverage(wanted.from_us, wanted.to_us, lag_us, complete=False), "none"
    spans.sort()
    gaps: list[tuple[int, int]] = []
    end = spans[0][1]
    for start, stop in spans[1:]:
        if start > end:
            gaps.append((end, start))
        end = max(end, stop)
    begin = spans[0][0] if wanted.from_us is None else max(spans[0][0], wanted.from_us)
    end = end if wanted.to_us is None else min(end, wanted.to_us)
    if begin >= end:
        refuse(
            "the statement covers nothing of the period that was asked for",
            code="wrong_period", hint="take the statement of the time in which the batch ran",
        )  # fmt: skip
    return Coverage(begin, end, lag_us, gaps=tuple(gaps), read_us=wanted.now_us), "+".join(sorted(sources))


def declared_span(rows: Rows) -> tuple[int, int] | None:
    """The period that a file itself says it covers; None where it says none."""
    start, stop = rows.declared.get("from"), rows.declared.get("to")
    if not stop:
        return None
    try:
        last = read_times([stop])[0]
        first = read_times([start])[0] if start else None
    except TimeFault:
        return None
    if last is None:
        return None
    begin = first.at_us if first is not None else rows.moments[0] if rows.moments else None
    # A whole day as the end means all of that day, a whole second all of that second.
    return None if begin is None else (begin, last.end_us)
