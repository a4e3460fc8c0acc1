"""New items into a SQLite ledger: many with each statement, and their ids afterwards, in order.

Ids come in any order. Put into an index one by one they would touch a page of it each, which at millions costs more
than all the rest; sorted first, they are written page after page.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from operator import eq
from typing import Any, Final, LiteralString

from payonce.core.errors import UsageError
from payonce.core.model import PlainColumns
from payonce.ledger.newcomers import Block
from payonce.ledger.queries import queries
from payonce.ledger.sqlite_rows import place

_AT_ONCE: Final = 100


def add_items(connection: sqlite3.Connection, number: int, blocks: Iterable[Block]) -> None:
    """Stores new items of a batch, streaming. Raises UsageError ``duplicate_item`` where an id comes twice."""
    first = last = 0
    for block in blocks:
        start = place(number, block.first_n)
        first, last = first or start, start + len(block.items) - 1
        if len(block.items) == 1:
            connection.execute(_statement((), 1), _one(block, start))
            continue
        for statement, values in _statements(*_columns(block.items, start)):
            connection.execute(statement, (block.now_us, *values))
    sql = queries("sqlite", "write")
    try:
        connection.execute(sql["add_id" if first == last else "add_ids"], (first, last))
    except sqlite3.IntegrityError as error:
        raise _duplicate(connection, first, last) from error


def _one(block: Block, place: int) -> tuple[Any, ...]:
    """The values for a block of one item."""
    ((item, target, minor, currency, fields),) = block.items
    return (
        block.now_us,
        place,
        item,
        None if target == item else target,
        minor,
        currency,
        None if fields == "{}" else fields,
    )


def _statements(
    absent: tuple[LiteralString, ...], columns: Sequence[Sequence[Any]]
) -> Iterator[tuple[LiteralString, list[Any]]]:
    """Statements with their values, the items' values one after the other."""
    width, count = len(columns), len(columns[0])
    values: list[Any] = [None] * (width * count)
    for at, column in enumerate(columns):
        values[at::width] = column
    for start in range(0, count, _AT_ONCE):
        taken = min(_AT_ONCE, count - start)
        yield _statement(absent, taken), values[start * width : (start + taken) * width]


@cache
def _statement(absent: tuple[LiteralString, ...], count: int) -> LiteralString:
    """Inserts so many items without some columns; the time is the first parameter of all."""
    head, values, group = queries("sqlite", "write")["add_items"].partition(" VALUES ")
    for name in absent:
        head, group = head.replace(f", {name}", ""), group.replace(", ?", "", 1)
    more: list[LiteralString] = [group] * count
    return head + values + ", ".join(more)


def _columns(items: PlainColumns, first: int) -> tuple[tuple[LiteralString, ...], list[Sequence[Any]]]:
    """The columns that are absent, and the values of the others: a target that is the id itself, and no fields, are none.

    What is absent is left out of the statement, since a NULL costs more to bind than a text."""
    absent: tuple[LiteralString, ...] = ()
    columns: list[Sequence[Any]] = [range(first, first + len(items)), items.ids]
    if items.targets is items.ids:
        absent = ("target",)
    else:
        same = any(map(eq, items.ids, items.targets))
        columns.append(_without(items.targets, items.ids) if same else items.targets)
    columns += [items.minors, items.currencies]
    empty = items.fields.count("{}")
    if empty == len(items):
        absent += ("fields",)
    else:
        columns.append([None if text == "{}" else text for text in items.fields] if empty else items.fields)
    return absent, columns


def _without(texts: Sequence[str], others: Sequence[str]) -> list[str | None]:
    """The texts that are not the same as their others."""
    return [None if text == other else text for text, other in zip(texts, others, strict=True)]


def _duplicate(connection: sqlite3.Connection, first: int, last: int) -> UsageError:
    """The error that names an id which some new items repeat: one of theirs, or one that is stored already."""
    found = connection.execute(queries("sqlite", "write")["repeated_id"], (first, last)).fetchone()
    item = found[0] if found else ""
    return UsageError(f"item {item!r} is in the batch twice", code="duplicate_item", hint="ids are unique in a batch")
