"""The ``[item]`` and ``[input]`` tables of a batch file, and its ``[batch] input``, as input settings.

Every wrong setting is a value of its own, so that whoever reads the batch file can show all of its faults at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from payonce.intake.amounts import read_currency
from payonce.intake.encodings import text_encoding
from payonce.intake.settings import FileFormat, ItemColumns, Query

_MAPPED: Final = ("id", "target", "amount", "amount_minor")


@dataclass(frozen=True, slots=True)
class SettingFault:
    """One wrong setting: its table and name, what is wrong with it and what is allowed."""

    table: str
    key: str | None
    message: str
    value: object = None


def _one_character(value: Any) -> bool:
    return isinstance(value, str) and (len(value) == 1 or value == "tab") and value not in '\r\n"'


# What each setting of [input] may be, in words and as a test.
_INPUT: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "encoding": ('the name of a text encoding, such as "utf-8" or "cp1252"', lambda v: text_encoding(v) is not None),
    "delimiter": ('one character, such as ";", or "tab"', _one_character),
    "quote": ("one character, or empty where fields are never quoted", lambda v: isinstance(v, str) and len(v) <= 1),
    "decimal": ('"." or ","', lambda v: v in (".", ",")),
    "thousands": (
        '".", ",", a blank, an apostrophe, or empty',
        lambda v: v in (".", ",", " ", "\u00a0", "\u202f", "'", "’", ""),
    ),
    "date_format": ('a strftime form such as "%Y-%m-%d"', lambda v: isinstance(v, str) and "%" in v),
    "sheet": ("the name of a worksheet", lambda v: isinstance(v, str) and v != ""),
    "hidden_rows": ('"take" or "skip"', lambda v: v in ("take", "skip")),
    "preamble": ("the number of lines above the header", lambda v: type(v) is int and v >= 0),
}
_ITEM: Final = (*_MAPPED, "currency", "fields")


def read_source(value: str | Mapping[str, Any], faults: list[SettingFault]) -> str | Query:
    """The ``[batch] input``: a path, or an address with a query."""
    if isinstance(value, str):
        if not value:
            faults.append(SettingFault("batch", "input", "must name a file"))
        return value
    url, query = value.get("url"), value.get("query")
    if not isinstance(url, str) or not isinstance(query, str) or len(value) != 2 or not url or not query:
        faults.append(
            SettingFault("batch", "input", 'must be a file name, or {url = "...", query = "..."} and nothing else')
        )
        return ""
    return Query(url, query)


def read_format(table: Mapping[str, Any], faults: list[SettingFault]) -> FileFormat:
    """The ``[input]`` table. A wrong setting counts as not stated, so that the others are still checked."""
    _check_names(table, tuple(_INPUT), "input", faults)
    sound: dict[str, Any] = {}
    for name, (allowed, fits) in _INPUT.items():
        if name not in table:
            continue
        if fits(table[name]):
            sound[name] = "\t" if name == "delimiter" and table[name] == "tab" else table[name]
        else:
            faults.append(SettingFault("input", name, f"must be {allowed}", table[name]))
    if sound.get("decimal") is not None and sound.get("decimal") == sound.get("thousands"):
        faults.append(SettingFault("input", "thousands", "cannot be the same as decimal", sound["thousands"]))
    return FileFormat(**sound)


def read_item(table: Mapping[str, Any], faults: list[SettingFault], *, needs: tuple[str, ...] = ()) -> ItemColumns:
    """The ``[item]`` table. ``needs`` are columns that the request templates name."""
    _check_names(table, _ITEM, "item", faults)
    columns: dict[str, str] = {}
    for role in _MAPPED:
        if role not in table:
            continue
        if isinstance(table[role], str) and table[role]:
            columns[role] = table[role]
        else:
            faults.append(SettingFault("item", role, "must be the name of a column", table[role]))
    if "id" not in table:
        faults.append(SettingFault("item", "id", "missing: every item needs the column of its id"))
    if "amount" in table and "amount_minor" in table:
        faults.append(
            SettingFault("item", "amount_minor", "cannot be stated beside amount: one of the two is the amount")
        )
    column, value = _currency(table.get("currency"), faults)
    fields = table.get("fields")
    if fields is not None and not (isinstance(fields, list) and all(isinstance(name, str) for name in fields)):
        faults.append(SettingFault("item", "fields", "must be a list of columns", fields))
        fields = None
    return ItemColumns(
        id=columns.get("id", ""),
        target=columns.get("target"),
        amount=columns.get("amount"),
        amount_minor=columns.get("amount_minor"),
        currency=column,
        currency_value=value,
        fields=None if fields is None else tuple(fields),
        needs=needs,
    )


def _currency(stated: Any, faults: list[SettingFault]) -> tuple[str | None, str | None]:
    if stated is None or (isinstance(stated, str) and stated):
        return stated, None
    if isinstance(stated, Mapping) and set(stated) == {"value"}:
        code = read_currency(stated["value"])
        if isinstance(code, str):
            return None, code
        faults.append(SettingFault("item", "currency", f"{stated['value']!r} {code.message}", stated["value"]))
    else:
        faults.append(SettingFault("item", "currency", 'must be the name of a column, or {value = "USD"}', stated))
    return None, None


def _check_names(names: Mapping[str, Any], known: tuple[str, ...], table: str, faults: list[SettingFault]) -> None:
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.6)
            advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            faults.append(SettingFault(table, name, f"no such setting; {advice}"))
