"""A provider's statement, read: one or more files of one report, with what they cover and what became of every row.

Refuses what it cannot read for certain; a statement in a wrong format, of another operation, or without a single usable
row is an error with its reason and never an empty account.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from payonce.intake.settings import FileFormat
from payonce.reconcile import reports, typed
from payonce.reconcile.bulk import Left
from payonce.reconcile.coverage import coverage_of
from payonce.reconcile.errors import refuse
from payonce.reconcile.layout import Layout
from payonce.reconcile.mapping import StatementTable, adjusted, form_of, layout_of
from payonce.reconcile.model import Coverage, Entry
from payonce.reconcile.netting import Netted, net
from payonce.reconcile.row import Row, Rows
from payonce.reconcile.rows import read_rows
from payonce.reconcile.table import Table, choose, read_table, suited
from payonce.reconcile.uniting import unite

# The readers of typed files register themselves.
assert typed.read_json is not None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a statement is read for. ``from_us`` and ``to_us`` bound the period, where somebody said so; ``now_us`` is the
    time at which it is read, and no statement covers anything after it. ``option`` is what names the files."""

    operation: str
    mapping: StatementTable | None = None
    from_us: int | None = None
    to_us: int | None = None
    now_us: int | None = None
    option: str = "--statement"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, whole. ``rows`` = ``used`` + the ignored ones; ``ignored`` says why, by file and line. ``net`` is what
    the files' rows come to altogether, whatever they are; ``assumed`` is what was taken for granted in putting several together."""

    layout: str
    sha256: str
    files: tuple[str, ...]
    rows: int
    used: int
    ignored: tuple[tuple[str, str], ...]
    entries: tuple[Entry, ...]
    coverage: Coverage
    net: Mapping[str, int] = field(default_factory=dict)
    accounts: frozenset[str] = frozenset()
    loose: tuple[tuple[str, Row], ...] = ()
    period: str = "rows"
    assumed: tuple[str, ...] = ()


def read_statement(paths: Sequence[Path], wanted: Wanted) -> Statement:
    """Reads the files of one statement. Raises StatementError (a file that cannot be used, with every reason) and
    ConfigError (a mapping that cannot be used)."""
    if not paths:
        refuse("no statement file was named", code="no_statement", hint="--statement FILE")
    layouts = layouts_for(wanted.mapping)
    read: list[Rows] = []
    digests: set[str] = set()
    lag_us = 0
    for path in paths:
        table = read_table(path, [layout.needs for layout in layouts], form_of(wanted.mapping), option=wanted.option)
        if table.digest in digests:
            continue  # the very same file named twice says everything once
        digests.add(table.digest)
        layout = _layout(table, layouts)
        read.append(read_rows(table, layout, wanted.operation))
        lag_us = max(lag_us, layout.lag_us)
    _one_report(read)
    return _statement(read, wanted, lag_us)


def layouts_for(mapping: StatementTable | None) -> list[Layout]:
    """The layouts that a file may have: the mapping's own, else all known reports, adjusted by the mapping."""
    own = layout_of(mapping) if mapping is not None else None
    if own is not None:
        return [own]
    known = _known(mapping)
    return [adjusted(layout, mapping) for layout in known] if mapping is not None else list(known)


def form_for(path: Path, mapping: StatementTable | None) -> FileFormat:
    """How a text file is written, as far as the mapping and its suffix say."""
    return suited(form_of(mapping), path)


def of_left(left: Left, wanted: Wanted) -> Statement:
    """The statement of what a bulk comparison left over, with the whole file's rows, period and sums."""
    rows = read_rows(left.table, left.layout, wanted.operation)
    rows = replace(rows, count=left.rows, net=left.net, moments=left.moments, accounts=left.accounts)
    statement = _statement([rows], wanted, left.layout.lag_us, clean=sum(number for number, _ in left.clean.values()))
    ignored = [(str(line), why) for line, why in left.named] or [(f"{count} rows", why) for why, count in left.ignored]
    return replace(statement, used=left.used, ignored=(*statement.ignored, *ignored))


def _known(mapping: StatementTable | None) -> Sequence[Layout]:
    if mapping is None or mapping.report is None:
        return reports.REPORTS
    named = [layout for layout in reports.REPORTS if layout.name.startswith(mapping.report.lower())]
    if not named:
        names = ", ".join(layout.name for layout in reports.REPORTS)
        refuse(f"there is no report {mapping.report!r}", code="unknown_report", hint=f"there are {names}")
    return named


def _layout(table: Table, layouts: Sequence[Layout]) -> Layout:
    needs = choose(table.columns, [layout.needs for layout in layouts])
    layout = next(layout for layout in layouts if layout.needs == needs)
    if layout is reports.SIMULATOR and "official_price" in table.columns:
        return replace(layout, credit=reports.SIMULATOR_CALLS)
    return layout


def _one_report(read: Sequence[Rows]) -> None:
    kinds = {rows.layout for rows in read}
    if len(kinds) > 1:
        refuse(
            f"the files are different reports: {', '.join(sorted(kinds))}",
            code="mixed_reports", hint="one report at a time: two would show the same money twice",
        )  # fmt: skip


def _statement(read: Sequence[Rows], wanted: Wanted, lag_us: int, *, clean: int = 0) -> Statement:
    united = unite(read, equal_rows=wanted.mapping.equal_rows if wanted.mapping is not None else None)
    coverage, source = coverage_of(read, wanted, lag_us)
    netted: Netted = net(united.rows, from_us=coverage.from_us, to_us=coverage.to_us)
    if not clean and not any(entry.legs or entry.returned or entry.pending or entry.failed for entry in netted.entries):
        why = next(
            (ignored.why for rows in read for ignored in rows.ignored if "header" not in ignored.why), "it has no rows"
        )
        refuse(
            f"no row of {', '.join(rows.file for rows in read)} is of use for a {wanted.operation}: {why}",
            code="no_usable_rows",
            hint="is it the right report, period and account?",
        )
    several = len(read) > 1
    ignored = [
        (f"{rows.file}:{entry.line}" if several else str(entry.line), entry.why)
        for rows in read
        for entry in rows.ignored
    ]
    ignored += [(name, f"the same row is in {twin}") for name, twin in united.repeated]
    return Statement(
        layout=read[0].layout,
        sha256=_digest(read),
        files=tuple(rows.file for rows in read),
        rows=sum(rows.count for rows in read),
        used=len(united.rows),
        ignored=tuple(ignored),
        entries=tuple(netted.entries),
        coverage=coverage,
        net=dict(united.net) if several else dict(read[0].net),
        accounts=frozenset(account for rows in read for account in rows.accounts),
        loose=tuple(netted.loose),
        period=source,
        assumed=tuple(united.assumed),
    )


def _digest(read: Sequence[Rows]) -> str:
    """One file's own digest; of several, the digest over theirs, whatever their order."""
    if len(read) == 1:
        return read[0].digest
    return hashlib.sha256("\n".join(sorted(rows.digest for rows in read)).encode()).hexdigest()
