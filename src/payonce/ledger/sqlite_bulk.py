"""New items into a SQLite ledger, a hundred with each statement: a third less work than a statement for each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, LiteralString

from payonce.core.errors import UsageError
from payonce.core.model import PlainItem
from payonce.ledger.newcomers import Block
from payonce.ledger.queries import queries
from payonce.ledger.sqlite_rows import place

_AT_ONCE: Final = 100
_WIDTH: Final = 6


def add_items(connection: sqlite3.Connection, number: int, blocks: Iterable[Block]) -> None:
    """Stores new items of a batch, streaming. Raises UsageError ``duplicate_item`` where an id comes twice."""
    step = _WIDTH * _AT_ONCE
    many = _statement(_AT_ONCE)
    for block in blocks:
        values = _columns(block, place(number))
        try:
            whole = len(values) // step * step
            for start in range(0, whole, step):
                connection.execute(many, (block.now_us, *values[start : start + step]))
            if whole < len(values):
                rest = (len(values) - whole) // _WIDTH
                connection.execute(_statement(rest), (block.now_us, *values[whole:]))
        except sqlite3.IntegrityError as error:
            raise _duplicate(connection, number, block.items) from error


@cache
def _statement(count: int) -> LiteralString:
    """Inserts so many items: the time is the first parameter, each item has six of its own."""
    more: list[LiteralString] = [", (?1, ?, ?, ?, ?, ?, ?, 0)"] * (count - 1)
    return queries("sqlite", "write")["add_items"] + "".join(more)


def _columns(block: Block, base: int) -> list[Any]:
    """The items' parameters, one after the other: a target that is the id itself, and no fields at all, cost nothing."""
    ids, targets, minors, currencies, fields = zip(*block.items, strict=True)
    values: list[Any] = [None] * (_WIDTH * len(ids))
    first = base + block.first_n
    values[0::_WIDTH] = range(first, first + len(ids))
    values[1::_WIDTH] = ids
    values[2::_WIDTH] = [None if target == item else target for item, target in zip(ids, targets, strict=True)]
    values[3::_WIDTH] = minors
    values[4::_WIDTH] = currencies
    values[5::_WIDTH] = [None if text == "{}" else text for text in fields]
    return values


def _duplicate(connection: sqlite3.Connection, number: int, items: Sequence[PlainItem]) -> UsageError:
    """The error that names the id which a block repeats: one of its own, or one that is stored already."""
    find, seen = queries("sqlite", "write")["number_of"], set[str]()
    for item, *_ in items:
        if item in seen:
            break
        seen.add(item)
    else:
        stored = (item for item, *_ in items if connection.execute(find, (item, number)).fetchone() is not None)
        item = next(stored, "")
    return UsageError(f"item {item!r} is in the batch twice", code="duplicate_item", hint="ids are unique in a batch")
