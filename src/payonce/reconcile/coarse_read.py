"""``[statement.coarse]``: reading a report that has only totals, a row a day and model.

Reads what the table names and refuses what it cannot read for certain, as the readers of whole statements do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from payonce.core.errors import ConfigError, MoneyError
from payonce.core.events import iso
from payonce.core.money import currency_code, exponent
from payonce.intake.settings import FileFormat
from payonce.reconcile.coarse import Key, Sum
from payonce.reconcile.coarse_buckets import read_buckets
from payonce.reconcile.errors import refuse
from payonce.reconcile.table import Table, read_table
from payonce.reconcile.times import TimeFault, read_times

_NUMBER: Final = re.compile(r"-?\d{1,18}(?:\.\d{1,30})?(?:[eE][-+]?\d{1,2})?", re.ASCII)
_WIDE: Final = Context(prec=60)


class CoarseTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[statement.coarse]``: columns of a report of totals. ``by`` is the field of the ledger's items that ``value`` is
    compared with: a kept answer field or a column of the input."""

    day: str
    amount: str | None = None
    amount_minor: str | None = None
    currency: str | dict[str, str] = {}
    value: str | None = None
    by: str = "model"
    calls: str | None = None
    time_format: str | None = None
    tolerance: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Totals:
    """A read report: its sums, and what it is."""

    sums: Mapping[Key, Sum]
    files: tuple[str, ...]
    sha256: str
    rows: int


def read_coarse(raw: Mapping[str, Any]) -> CoarseTable:
    """The table, checked. Raises ConfigError naming the setting."""
    try:
        table = msgspec.convert(raw, CoarseTable)
    except msgspec.ValidationError as error:
        raise _bad(f"[statement.coarse]: {error}") from None
    if bool(table.amount) == bool(table.amount_minor):
        raise _bad("[statement.coarse] needs one of amount and amount_minor")
    return table


def tolerance_of(table: CoarseTable) -> dict[str, Decimal]:
    """How far amounts may differ, by currency, in major units. Raises ConfigError."""
    found: dict[str, Decimal] = {}
    for code, text in table.tolerance.items():
        if _NUMBER.fullmatch(text) is None or text.startswith("-"):
            raise _bad(f"[statement.coarse] tolerance {text!r} is no amount")
        try:
            found[currency_code(code)] = Decimal(text)
        except MoneyError as error:
            raise _bad(f"[statement.coarse] tolerance: {error.message}") from None
    return found


def read_totals(paths: Sequence[Path], table: CoarseTable, form: FileFormat) -> Totals:
    """Reads the files as one report. Raises StatementError where a file or a cell of it cannot be used."""
    sums: dict[Key, Sum] = {}
    digests: list[str] = []
    rows = 0
    for path in paths:
        read = read_buckets(path, _needs(table)) or read_table(path, [_needs(table)], form)
        digests.append(read.digest)
        rows += len(read.rows)
        for key, found in _rows(read, table):
            there = sums.get(key)
            sums[key] = found if there is None else _both(there, found)
    if not sums:
        refuse("the report has no usable row", code="no_usable_rows", hint="is it the right file?")
    return Totals(sums, tuple(path.name for path in paths), "+".join(digests), rows)


def _needs(table: CoarseTable) -> tuple[str, ...]:
    currency = table.currency if isinstance(table.currency, str) else None
    named = (table.day, table.amount, table.amount_minor, currency, table.value, table.calls)
    return tuple(dict.fromkeys(name for name in named if name))


def _rows(read: Table, table: CoarseTable) -> list[tuple[Key, Sum]]:
    column = table.amount or table.amount_minor or ""
    if column in read.floats:
        refuse(
            f"{read.file}: column {column!r} holds binary floats, which are no exact money",
            code="float_money", hint="write it as DECIMAL, as text, or in whole minor units", file=read.file, column=column,
        )  # fmt: skip
    amounts = read.cells(column)
    try:
        days = read_times(read.cells(table.day), form=table.time_format)
    except TimeFault as fault:
        line = read.lines[fault.place]
        refuse(
            f"{read.file}, line {line}: {fault}", code="bad_time", hint="declare time_format", file=read.file, line=line
        )
    values = read.cells(table.value) if table.value else [""] * len(amounts)
    calls = read.cells(table.calls) if table.calls else None
    found: list[tuple[Key, Sum]] = []
    for place, text in enumerate(amounts):
        moment, line = days[place], read.lines[place]
        if moment is None or not text:
            refuse(f"{read.file}, line {line}: no day or no amount", code="bad_row", hint="is it a total row?", file=read.file, line=line)  # fmt: skip
        currency = _currency(read, table, place)
        amount = _number(text, read.file, line)
        if table.amount_minor:
            amount = amount.scaleb(-exponent(currency), context=_WIDE)
        count = None
        if calls is not None:
            counted = _number(calls[place] or "0", read.file, line)
            if counted != counted.to_integral_value():
                refuse(f"{read.file}, line {line}: {counted} calls", code="bad_row", hint="check the column", file=read.file, line=line)  # fmt: skip
            count = int(counted)
        found.append((Key(iso(moment.at_us)[:10], values[place], currency), Sum(count, amount)))
    return found


def _currency(read: Table, table: CoarseTable, place: int) -> str:
    try:
        match table.currency:
            case {"value": str(code)}:
                return currency_code(code)
            case str(column):
                return currency_code(read.cells(column)[place])
            case _:
                raise _bad("[statement.coarse] has no currency")
    except MoneyError as error:
        line = read.lines[place]
        refuse(
            f"{read.file}, line {line}: {error.message}", code=error.code, hint=error.hint, file=read.file, line=line
        )


def _number(text: str, file: str, line: int) -> Decimal:
    if _NUMBER.fullmatch(text.strip()) is None:
        refuse(f"{file}, line {line}: {text[:40]!r} is no plain number", code="bad_amount", hint="numbers need a decimal point and no grouping", file=file, line=line)  # fmt: skip
    return Decimal(text.strip())


def _both(one: Sum, other: Sum) -> Sum:
    calls = None if one.calls is None or other.calls is None else one.calls + other.calls
    return Sum(calls, _WIDE.add(one.amount, other.amount))


def _bad(message: str) -> ConfigError:
    return ConfigError(
        message, code="bad_statement_mapping", hint="docs/reference/statements.md describes every setting"
    )
