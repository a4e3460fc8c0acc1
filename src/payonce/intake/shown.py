"""How a value of an input is shown to people: as its source shows it, never as Python does. Pure."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import msgspec


class Cell(float):
    """A number cell of a workbook, which a spreadsheet shows without a fraction where it has none."""

    __slots__ = ()

    def __str__(self) -> str:
        return shown_number(self)


class Fault:
    """A cell that has no value to be read: a formula's error, or a formula that nobody has computed."""

    __slots__ = ("text", "why")

    def __init__(self, text: str, why: str) -> None:
        self.text = text
        self.why = why

    def __str__(self) -> str:
        return self.text


def shown_number(value: float) -> str:
    """A float without a fraction that is none."""
    return str(int(value)) if abs(value) < 2**53 and value == int(value) else repr(float(value))


def shown(value: Any) -> str | None:
    """A value as text; None for none."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case Decimal() if value.is_finite():
            return format(value, "f")
        case list() | dict() | tuple():
            return _as_json(value)
        case _:
            return str(value)


def _as_json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode("utf-8")
    except (TypeError, ValueError, RecursionError):
        return str(value)


def kind_of(value: Any) -> str:
    """What sort of value it is, in words that fit behind ``is``."""
    match value:
        case Fault():
            return value.why
        case bool():
            return "true or false"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case bytes() | bytearray() | memoryview():
            return "binary data"
        case dt.datetime() | dt.date():
            return "a date"
        case dt.time() | dt.timedelta():
            return "a time"
        case _:
            return f"a {type(value).__name__}"
