"""The [statement] table of a batch or map file: which column of the provider's report is what.

Turns the table into a layout and checks it; opens nothing. A setting that is not known is an error that names the
nearest one, so that a misspelt column never silently means an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any, Final, Literal, NoReturn

import msgspec

from payonce.core import durations
from payonce.core.errors import ConfigError
from payonce.core.money import currency_code
from payonce.intake.settings import FileFormat
from payonce.reconcile.layout import Amount, Credit, Layout, Role, Standing

# What the words of a type column mean where the table does not say.
_ROLE_WORDS: Final = (
    (Role.FEE, re.compile(r"\b(fee|fees|commission|charge fee|gebühr|gebuehr)\b")),
    (Role.REVERSAL, re.compile(r"(fail|revers|return|bounc|cancel|chargeback|storno|rücklast)")),
    (Role.FX, re.compile(r"(conversion|fx|exchange)")),
    (Role.HOLD, re.compile(r"\b(hold|release|reserve)\b")),
)
TYPE_NAMES: Final = ("type", "kind", "transaction type", "transaction_type", "record type", "category")


class CreditTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[statement.credit]: the columns of official price and credit, and the multiplier: a number, a column, or
    ``{column = "model", values = {"model-a" = "1.1"}}``."""

    official_price: str
    credit: str
    multiplier: str | dict[str, Any]
    decimals: int | None = None
    rounding: Literal["half_even", "half_up", "down", "up", "floor", "ceiling"] = "half_even"


class StatementTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[statement]: each setting names a column unless it says otherwise."""

    reference: str | None = None
    key: str | None = None
    own_reference: str | None = None
    target: str | None = None
    parent: str | None = None
    amount: str | None = None
    amount_minor: str | None = None
    debit: str | None = None
    credit_amount: str | None = None
    currency: str | dict[str, str] | None = None
    fee: str | None = None
    net: str | None = None
    time: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    zone: str | None = None
    account: str | None = None
    type: str | None = None
    types: dict[str, Literal["execution", "reversal", "fee", "fx", "hold", "other"]] = msgspec.field(
        default_factory=dict
    )
    status: str | None = None
    statuses: dict[str, Literal["done", "pending", "failed"]] = msgspec.field(default_factory=dict)
    sign: Literal["positive", "negative"] | None = None
    where: dict[str, str] = msgspec.field(default_factory=dict)
    lag: str | None = None
    rounding: Literal["half_even", "half_up", "down", "up", "floor", "ceiling"] | None = None
    credit: CreditTable | None = None
    coarse: dict[str, Any] | None = None
    encoding: str | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    thousands: str | None = None
    sheet: str | None = None
    preamble: int | None = None
    report: str | None = None
    equal_rows: Literal["once", "all"] | None = None


def read_mapping(raw: Mapping[str, Any]) -> StatementTable:
    """The table, checked. Raises ConfigError naming the setting."""
    known = [field.name for field in msgspec.structs.fields(StatementTable)]
    for name in raw:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            _bad(
                f"[statement] {name}: no such setting",
                f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}",
            )
    try:
        table = msgspec.convert(raw, StatementTable)
    except msgspec.ValidationError as error:
        _bad(f"[statement]: {error}", "docs/reference/statements.md describes every setting")
    return table


def form_of(table: StatementTable | None) -> FileFormat:
    """How the file is written, as far as the table says."""
    if table is None:
        return FileFormat()
    return FileFormat(
        encoding=table.encoding, delimiter=table.delimiter, decimal=table.decimal, thousands=table.thousands,
        sheet=table.sheet, preamble=table.preamble,
    )  # fmt: skip


def layout_of(table: StatementTable) -> Layout | None:
    """The layout that the table describes; None where it names no columns (it then only adjusts a known report).

    Raises ConfigError where it names some and lacks others.
    """
    if not _names_columns(table):
        return None
    amount = _amount(table)
    column, value = _currency(table)
    credit = _credit(table.credit) if table.credit is not None else None
    return Layout(
        name="[statement]",
        needs=_needs(table, amount, column, credit),
        amount=amount,
        reference=_one(table.reference),
        key=_one(table.key),
        own=_one(table.own_reference),
        target=_one(table.target),
        parent=table.parent,
        currency=column,
        currency_value=value,
        fee=table.fee,
        net=table.net,
        time=_one(table.time),
        time_format=table.time_format,
        zone=table.time_zone,
        zone_column=table.zone,
        account=table.account,
        type=table.type,
        types={"*": {word.lower(): Role(role) for word, role in table.types.items()}},
        strict_types=bool(table.types),
        status=table.status,
        statuses={word.lower(): Standing(standing) for word, standing in table.statuses.items()},
        decimal=table.decimal,
        thousands=table.thousands,
        where=table.where,
        lag_us=duration_us(table.lag),
        credit=credit,
        rounding=table.rounding,
    )


def adjusted(layout: Layout, table: StatementTable) -> Layout:
    """A known report with what the table says about it: how times and numbers are written, a filter, a lag."""
    return replace(
        layout,
        time_format=table.time_format or layout.time_format,
        zone=table.time_zone or layout.zone,
        decimal=table.decimal or layout.decimal,
        thousands=layout.thousands if table.thousands is None else table.thousands,
        where=table.where or layout.where,
        lag_us=layout.lag_us if table.lag is None else duration_us(table.lag),
        currency_value=_currency(table)[1] if table.currency is not None else layout.currency_value,
        credit=layout.credit if table.credit is None else _credit(table.credit),
        rounding=table.rounding or layout.rounding,
    )


def guessed_role(word: str) -> Role | None:
    """What a word of a type column means in plain English or German; None where it says nothing."""
    lower = word.lower().replace("_", " ")
    return next((role for role, pattern in _ROLE_WORDS if pattern.search(lower)), None)


def duration_us(text: str | None) -> int:
    """A duration such as ``90s``, ``3h`` or ``2d`` in microseconds; 0 for none. Raises ConfigError."""
    if text is None:
        return 0
    try:
        return durations.duration_us(text)
    except ValueError as error:
        _bad(f"[statement] lag = {text!r} is no duration: {error}", 'write lag = "3h"')


def _names_columns(table: StatementTable) -> bool:
    """Whether the table describes a file of its own, and not only how a known report is written."""
    if table.reference or table.key or table.own_reference or table.target:
        return True
    if table.amount or table.amount_minor or table.debit:
        _bad("[statement] has no column to tell executions apart", 'add reference = "COLUMN" (or key, own_reference)')
    return False


def _needs(table: StatementTable, amount: Amount, currency: str | None, credit: Credit | None) -> tuple[str, ...]:
    """Every column that the table names: a file that lacks one of them is another file."""
    named = [
        table.reference, table.key, table.own_reference, table.target, table.parent, amount.column, amount.credit, currency,
        table.fee, table.net, table.time, table.zone, table.account, table.type, table.status, *table.where,
        *(_columns(credit) if credit else ()),
    ]  # fmt: skip
    return tuple(dict.fromkeys(name for name in named if name))


def _amount(table: StatementTable) -> Amount:
    outflow = {None: None, "positive": 1, "negative": -1}[table.sign]
    if sum(bool(name) for name in (table.amount, table.amount_minor, table.debit)) != 1:
        _bad(
            "[statement] needs exactly one of amount, amount_minor and debit", 'write amount = "COLUMN" for major units'
        )
    if table.debit:
        return Amount(table.debit, credit=table.credit_amount)
    return Amount(table.amount or table.amount_minor or "", unit="major" if table.amount else "minor", outflow=outflow)


def _currency(table: StatementTable) -> tuple[str | None, str | None]:
    match table.currency:
        case str(column):
            return column, None
        case {"value": str(code)}:
            return None, currency_code(code)
        case _:
            _bad("[statement] has no currency", 'write currency = "COLUMN", or currency = {value = "USD"}')


def _credit(table: CreditTable) -> Credit:
    column: str | None = None
    constant: str | None = None
    values: dict[str, str] = {}
    match table.multiplier:
        case {"column": str(name), **rest}:
            column = name
            given = rest.get("values", {})
            values = {str(k): _number(str(v)) for k, v in given.items()} if isinstance(given, dict) else {}
        case str(text) if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
            constant = text
        case str(name):
            column = name
        case _:
            _bad(
                "[statement.credit] multiplier",
                'write multiplier = "1.1", a column, or {column = "...", values = {...}}',
            )
    return Credit(table.official_price, table.credit, column, constant, values, table.decimals, table.rounding)


def _number(text: str) -> str:
    try:
        Decimal(text)
    except InvalidOperation:
        _bad(f"[statement.credit] multiplier {text!r} is no number", 'write it as text: "1.1"')
    return text


def _columns(credit: Credit) -> list[str]:
    return [name for name in (credit.official, credit.credit, credit.multiplier) if name]


def _one(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def _bad(message: str, hint: str) -> NoReturn:
    raise ConfigError(message, code="bad_statement_mapping", hint=hint)
