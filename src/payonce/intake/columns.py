"""Checks the columns of an input against the mapping, and the mapping against the operation. Reads no row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from payonce.core.errors import Problem
from payonce.intake.amounts import AmountFault, read_currency
from payonce.intake.ids import alike
from payonce.intake.report import Fatal, Report, cut
from payonce.intake.settings import MONEY_OPERATIONS, TEMPLATE_NAMES, FileFormat, InputSettings, ItemColumns

_LISTED: Final = 30


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of an input, in its order, and which of them are carried into the items, sorted by name."""

    columns: tuple[str, ...]
    fields: tuple[str, ...]

    def position(self, column: str) -> int:
        """Where a column stands, from 0."""
        return self.columns.index(column)


def wanted(item: ItemColumns) -> tuple[str, ...]:
    """The columns that must exist, each once."""
    return tuple(dict.fromkeys([*item.roles().values(), *item.needs, *(item.fields or ())]))


def check_mapping(settings: InputSettings, report: Report, *, operation: str) -> None:
    """Raises Fatal where the operation needs what the mapping does not give."""
    item = settings.item
    amount = item.amount or item.amount_minor
    currency = item.currency or item.currency_value
    problems = []
    if operation in MONEY_OPERATIONS and amount is None:
        problems.append(
            report.make("no_amount_column", f'{operation} needs [item] amount = "COLUMN" (or amount_minor = "COLUMN")')
        )
    if currency is None and (amount is not None or operation in MONEY_OPERATIONS):
        problems.append(
            report.make("no_currency", 'an amount needs [item] currency = "COLUMN", or currency = {value = "USD"}')
        )
    constant = None if item.currency_value is None else read_currency(item.currency_value)
    if isinstance(constant, AmountFault):
        problems.append(report.make(constant.code, f"[item] currency {constant.message}", value=item.currency_value))
    problems += _unusable(settings.format, report)
    if problems:
        raise Fatal(*problems)


def _unusable(file_format: FileFormat, report: Report) -> Iterator[Problem]:
    """Settings that no file can have. Batch files are checked before; this is for those who set them by hand."""
    delimiter, quote = file_format.delimiter, file_format.quote
    if delimiter is not None and (len(delimiter) != 1 or delimiter in "\r\n" or delimiter == quote):
        yield report.make("bad_setting", "[input] delimiter must be one character, and not the quote", value=delimiter)
    if len(quote) > 1 or quote in ("\r", "\n"):
        yield report.make("bad_setting", "[input] quote must be one character, or empty", value=quote)
    if file_format.decimal not in (None, ".", ","):
        yield report.make("bad_setting", '[input] decimal must be "." or ","', value=file_format.decimal)
    thousands = file_format.thousands
    if thousands is not None and (len(thousands) > 1 or thousands.isalnum() or thousands == (file_format.decimal or 0)):
        yield report.make(
            "bad_setting", "[input] thousands must be one character beside the decimal one", value=thousands
        )


def layout(names: Sequence[str], settings: InputSettings, *, report: Report, line: int | None) -> Layout:
    """The layout of an input with these columns. Blank names are columns that nothing can name: they are left out.

    Raises Fatal with everything that is wrong: missing, repeated and reserved columns.
    """
    item = settings.item
    problems = [*_missing(names, wanted(item), report, line), *_repeated(names, report, line)]
    problems += _reserved(names, item, report, line)
    if problems:
        raise Fatal(*problems)
    unnamed = [str(place) for place, name in enumerate(names, 1) if not name]
    if unnamed:
        report.note("unnamed_column", f"columns without a name are not carried: number {', '.join(unnamed)}", line=line)
    mapped = set(item.roles().values())
    carried = item.fields if item.fields is not None else [name for name in names if name and name not in mapped]
    return Layout(tuple(names), tuple(sorted(set(carried) - mapped)))


def _missing(names: Sequence[str], needed: Iterable[str], report: Report, line: int | None) -> list[Problem]:
    there = [name for name in names if name]
    problems = []
    needed = tuple(needed)
    # Where nothing fits at all, this is perhaps not the header.
    where = (
        "" if line is None or set(needed) & set(there) else "; [input] preamble = N says that N lines stand above them"
    )
    for column in needed:
        if column in there:
            continue
        advice = _advice(column, there)
        problems.append(
            report.make(
                "missing_column",
                f"column {column!r} is missing; {advice}the columns found are {listed(there)}{where}",
                line=line,
                column=column,
            )
        )
    return problems


def _advice(column: str, there: Sequence[str]) -> str:
    """What was probably meant, where something there looks like it."""
    near = nearest(column, there)
    if len(there) == 1 and column in there[0]:
        return "all of it stands in one column: declare [input] delimiter, or split it; "
    if near is None:
        return ""
    if near != column and alike(near) == alike(column):
        return f"did you mean {near!a}, which looks the same as {column!a} but has other characters? "
    return f"did you mean {near!r}? "


def _repeated(names: Sequence[str], report: Report, line: int | None) -> list[Problem]:
    return [
        report.make(
            "repeated_column",
            f"column {name!r} stands there {count} times; rename or remove all but one",
            line=line,
            column=name,
        )
        for name, count in Counter(names).items()
        if count > 1 and name
    ]


def _reserved(names: Sequence[str], item: ItemColumns, report: Report, line: int | None) -> list[Problem]:
    roles = item.roles()
    return [
        report.make(
            "reserved_column",
            f"column {name!r} has a name that means something else in templates; "
            + (f'map it ([item] {name} = "{name}") or rename it' if name in _MAPPABLE else "rename it"),
            line=line,
            column=name,
        )
        for name in dict.fromkeys(names)
        if name in TEMPLATE_NAMES and roles.get(name) != name
    ]


_MAPPABLE: Final = frozenset({"id", "target", "amount", "amount_minor", "currency"})


def nearest(name: str, there: Sequence[str]) -> str | None:
    """The column that was probably meant: the same without case, else the most similar one."""
    seen = alike(name).casefold()
    same = next((other for other in there if alike(other).casefold() == seen), None)
    return same or next(iter(get_close_matches(name, there, n=1, cutoff=0.5)), None)


def listed(names: Sequence[str]) -> str:
    """Names for a message; a long list is cut."""
    shown = ", ".join(repr(cut(name)) for name in names[:_LISTED]) or "none"
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
