"""From a table of texts to rows that mean something: role, standing, ids, an exact signed amount, a time.

Every row of the table ends in exactly one place: used, ignored with the reason, or refused with the reason. One refused
row refuses the statement. Amounts are signed so that an execution is positive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from payonce.core.errors import Problem
from payonce.intake.ids import fault_of
from payonce.intake.report import Ignored
from payonce.reconcile.amounts import Amounts, read_amounts
from payonce.reconcile.credits import check_credits
from payonce.reconcile.direction import signed
from payonce.reconcile.errors import refuse, refuse_all
from payonce.reconcile.layout import Layout, Role, Standing
from payonce.reconcile.mapping import TYPE_NAMES, guessed_role
from payonce.reconcile.row import Row, Rows, Told
from payonce.reconcile.table import Table
from payonce.reconcile.times import Moment, TimeFault, read_times


class _Reading:
    """One table being read with one layout."""

    def __init__(self, table: Table, layout: Layout, operation: str) -> None:
        self.table = table
        self.layout = layout
        self.operation = operation
        self.ignored = list(table.ignored)
        self.problems: list[Problem] = []

    def problem(self, place: int, column: str | None, value: str | None, code: str, message: str) -> None:
        self.problems.append(Problem(self.table.file, self.table.lines[place], column, value, code, message))

    def keep(self, places: Sequence[int]) -> None:
        """Goes on with some of the rows."""
        rows, lines = self.table.rows, self.table.lines
        self.table = replace(self.table, rows=[rows[p] for p in places], lines=[lines[p] for p in places])

    def column(self, names: Sequence[str]) -> list[str]:
        """The first filled of some columns, row by row."""
        present = [self.table.cells(name) for name in names if name in self.table.columns]
        if len(present) == 1:
            return present[0]
        return [next((cell for cell in cells if cell), "") for cells in zip(*present, strict=True)] or [""] * len(
            self.table.rows
        )


def read_rows(table: Table, layout: Layout, operation: str) -> Rows:
    """All rows of a table. Raises StatementError with every row that cannot be read, or where none is of use."""
    reading = _Reading(table, layout, operation)
    roles = layout.roles(operation)
    if roles is None:
        shown = ", ".join(sorted(layout.operations or ()))
        refuse(
            f"{table.file} is a {layout.name}, which shows {shown}, not {operation}s",
            code="wrong_report", hint="take the report that shows what the batch did", file=table.file,
        )  # fmt: skip
    count = len(table.rows) + len(table.ignored)
    _refuse_float_ids(reading)
    _body_only(reading)
    _drop_odd_rows(reading)
    _where(reading)
    amounts = read_amounts(reading.table, layout, reading.problem)
    moments = _moments(reading)
    used = _assemble(reading, roles, amounts, moments)
    if reading.problems:
        refuse_all(tuple(sorted(reading.problems, key=lambda p: p.line or 0)), file=table.file)
    accounts = frozenset(cell for cell in reading.column([layout.account]) if cell) if layout.account else frozenset()
    times = [moment for moment in moments if moment is not None]
    return Rows(
        table.file, table.digest, layout.name, count, tuple(used), tuple(reading.ignored), amounts.net(), accounts,
        (min(t.at_us for t in times), max(t.end_us for t in times)) if times else None, table.declared,
        has_reference=bool(layout.reference),
        told=_told(reading, amounts, moments),
    )  # fmt: skip


def _told(reading: _Reading, amounts: Amounts, moments: Sequence[Moment | None]) -> list[Told]:
    rows, references = reading.table.rows, reading.column(reading.layout.reference)
    facts = zip(rows, amounts.money, amounts.nets, references, moments, strict=True)
    return [Told(tuple(row), m.currency, minor, ref, at) for row, m, minor, ref, at in facts if m is not None]


def _refuse_float_ids(reading: _Reading) -> None:
    layout, table = reading.layout, reading.table
    for name in (*layout.reference, *layout.key, *layout.own, *layout.target):
        if name in table.floats:
            refuse(
                f"{table.file}: column {name!r} holds ids as binary floats; their last digits may be lost",
                code="float_ids", hint="write ids as text", file=table.file, column=name,
            )  # fmt: skip


def _body_only(reading: _Reading) -> None:
    """Reports with row types: only body rows count, and the counts their footers state must be right."""
    layout, table = reading.layout, reading.table
    if layout.row_type is None:
        return
    kinds = [row[0].strip() if row else "" for row in table.rows]
    body = [place for place, kind in enumerate(kinds) if kind in layout.body]
    for place, kind in enumerate(kinds):
        stated = layout.counts.get(kind)
        if stated is not None:
            digits = [cell.strip() for cell in table.rows[place][1:] if cell.strip().isdigit()]
            if digits and int(digits[-1]) != len(body):
                refuse(
                    f"{table.file}, line {table.lines[place]}: the report counts {digits[-1]} rows, the file has {len(body)}",
                    code="incomplete", hint="the file was cut off or joined; fetch it again", file=table.file,
                )  # fmt: skip
        if kind not in layout.body:
            reading.ignored.append(Ignored(table.lines[place], f"row type {kind or 'none'} is no transaction"))
    reading.keep(body)


def _drop_odd_rows(reading: _Reading) -> None:
    """Totals are ignored and named; rows of another width are refused."""
    width = len(reading.table.columns)
    ids = reading.column([*reading.layout.reference, *reading.layout.key, *reading.layout.own])
    kept = []
    for place, row in enumerate(reading.table.rows):
        first = next((cell.strip() for cell in row if cell.strip()), "")
        labels = [text for text in (ids[place] if ids else "", first) if text]
        if any((fault := fault_of(text)) is not None and fault.code == "total_row" for text in labels):
            reading.ignored.append(Ignored(reading.table.lines[place], "a row of totals"))
        elif len(row) < width or any(cell.strip() for cell in row[width:]):
            message = f"has {len(row)} fields, the header {width}"
            reading.problem(place, None, None, "ragged_row", message)
        else:
            kept.append(place)
    reading.keep(kept)


def _where(reading: _Reading) -> None:
    if not reading.layout.where:
        return
    columns = [(reading.table.cells(name), name, value) for name, value in reading.layout.where.items()]
    kept = []
    for place, line in enumerate(reading.table.lines):
        other = next((f"{name} is {cells[place]!r}" for cells, name, value in columns if cells[place] != value), None)
        if other is None:
            kept.append(place)
        else:
            reading.ignored.append(Ignored(line, f"filtered out: {other}"))
    reading.keep(kept)


def _moments(reading: _Reading) -> list[Moment | None]:
    layout, table = reading.layout, reading.table
    present = [name for name in layout.time if name in table.columns]
    if not present:
        return [None] * len(table.rows)
    if layout.time == ("Date", "Time"):
        texts = [f"{day} {clock}".strip() for day, clock in zip(*(table.cells(name) for name in present), strict=True)]
    else:
        texts = reading.column(present)
    zones = table.cells(layout.zone_column) if layout.zone_column in table.columns else None
    try:
        return read_times(texts, form=layout.time_format, zone=layout.zone, zones=zones)
    except TimeFault as fault:
        reading.problem(fault.place, present[0], texts[fault.place], fault.code, fault.message)
        return [None] * len(table.rows)


def _assemble(
    reading: _Reading, roles: Mapping[str, Role], amounts: Amounts, moments: Sequence[Moment | None]
) -> list[Row]:
    layout, table = reading.layout, reading.table
    references, targets = reading.column(layout.reference), reading.column(layout.target)
    parents = table.cells(layout.parent) if layout.parent in table.columns else [""] * len(table.rows)
    keys = [table.cells(name) for name in layout.key if name in table.columns]
    prefix = layout.own_prefix
    own_names = [*layout.own, *(name for name in table.columns if prefix and name.startswith(prefix))]
    owns = [table.cells(name) for name in own_names if name in table.columns]
    kinds = _roles(reading, roles)
    standings = _standings(reading)
    wrong = check_credits(table, layout.credit, reading.problem) if layout.credit is not None else {}
    used: list[Row] = []
    for place, money in enumerate(amounts.money):
        role, why = kinds[place]
        if role is Role.OTHER:
            reading.ignored.append(Ignored(table.lines[place], why))
            continue
        if money is None:
            continue
        if references[place] and (fault := fault_of(references[place])) is not None:
            reading.problem(place, layout.reference[0], references[place], fault.code, f"the reference {fault.message}")
            continue
        used.append(Row(
            table.lines[place], role, standings[place], references[place], parents[place],
            tuple(cells[place] for cells in keys if cells[place]),
            tuple(dict.fromkeys(cells[place] for cells in owns if cells[place])),
            targets[place], money, moments[place], tuple(table.rows[place]), wrong.get(place),
        ))  # fmt: skip
    return signed(used, layout.amount, reading.operation, file=table.file)


def _roles(reading: _Reading, roles: Mapping[str, Role]) -> list[tuple[Role, str]]:
    """The role of every row, and why a row is of no use."""
    layout, table = reading.layout, reading.table
    name = layout.type
    if name is None and layout.name == "[statement]":
        name = type_column(table)
    if name is None or name not in table.columns:
        return [(Role.EXECUTION, "")] * len(table.rows)
    known: dict[str, tuple[Role, str]] = {}
    found: list[tuple[Role, str]] = []
    for place, word in enumerate(table.cells(name)):
        if word not in known:
            role = roles.get(word.lower())
            if role is None and layout.operations is None and not layout.types.get(reading.operation):
                role = guessed_role(word) if not layout.strict_types else None
                role = role or (None if layout.strict_types else Role.EXECUTION)
            if role is None and layout.strict_types:
                reading.problem(place, name, word, "unknown_type", f"[statement.types] does not say what {word!r} is")
            known[word] = (role or Role.OTHER, f"{name} {word!r} is no {reading.operation}")
        found.append(known[word])
    return found


def role_of_words(layout: Layout, operation: str, column: str, words: Sequence[str]) -> dict[str, Role]:
    """The role of each word of a type column. Raises StatementError where the layout must know them all and does not."""
    rows = [[word] for word in words]
    table = Table("", "", (column,), rows, list(range(len(rows))))
    reading = _Reading(table, replace(layout, type=column), operation)
    found = _roles(reading, layout.roles(operation) or {})
    if reading.problems:
        refuse_all(tuple(reading.problems), file="")
    return {word: role for word, (role, _) in zip(words, found, strict=True)}


def standing_of_words(layout: Layout, words: Sequence[str]) -> dict[str, Standing]:
    """The standing of each word of a status column."""
    rows = [[word] for word in words]
    table = Table("", "", (layout.status or "status",), rows, list(range(len(rows))))
    return dict(zip(words, _standings(_Reading(table, layout, "")), strict=True))


def type_column(table: Table) -> str | None:
    """A column that tells fees and returns from executions, if the file has one that nobody named."""
    for name in table.columns:
        if name.lower() in TYPE_NAMES and any(guessed_role(word) for word in set(table.cells(name))):
            return name
    return None


def _standings(reading: _Reading) -> list[Standing]:
    """A status that nobody knows is not final: money is never taken as moved on a guess."""
    layout, table = reading.layout, reading.table
    if layout.status is None or layout.status not in table.columns:
        return [Standing.DONE] * len(table.rows)
    statuses = layout.statuses or DEFAULT_STATUSES
    return [statuses.get(word.lower(), Standing.PENDING) for word in table.cells(layout.status)]


DEFAULT_STATUSES: Mapping[str, Standing] = (
    dict.fromkeys(["completed", "complete", "done", "succeeded", "success", "paid", "settled", "booked", "gebucht", "executed", "ok"], Standing.DONE)
    | dict.fromkeys(["failed", "denied", "canceled", "cancelled", "rejected", "voided", "declined", "expired", "error"], Standing.FAILED)
)  # fmt: skip
