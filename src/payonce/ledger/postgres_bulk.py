"""New items into a PostgreSQL ledger by COPY: one stream, however many there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import psycopg

from payonce.core.errors import LedgerError, UsageError
from payonce.core.model import PlainColumns
from payonce.ledger.newcomers import Block
from payonce.ledger.postgres_link import Link
from payonce.ledger.queries import queries
from payonce.ledger.sqlite_rows import place

_NULL: Final = "\\N"
# What would end a field or a row in COPY's text form, and the sign that escapes it.
_ESCAPED: Final = {ord("\\"): "\\\\", ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"}
_KEY: Final = re.compile(r"=\(\d+, (.*)\)", re.DOTALL)


def add_items(link: Link, number: int, blocks: Iterable[Block]) -> None:
    """Stores new items of a batch, streaming. Raises UsageError ``duplicate_item`` where an id comes twice."""
    base = place(number)
    try:
        link.copy(queries("postgres", "write")["copy_items"], _lines(blocks, base))
    except LedgerError as fault:
        if isinstance(fault.__cause__, psycopg.errors.UniqueViolation):
            raise _duplicate(fault.__cause__) from fault
        raise


def _lines(blocks: Iterable[Block], base: int) -> Iterator[bytes]:
    for block in blocks:
        items = block.items
        first = base + block.first_n
        tail = f"0\t{block.now_us}\n"
        columns: tuple[Iterable[str], ...] = (
            map(str, range(first, first + len(items))),
            _safe(items.ids),
            _targets(items),
            [_NULL if minor is None else str(minor) for minor in items.minors],
            [_NULL if currency is None else currency for currency in items.currencies],
            _safe([_NULL if text == "{}" else text for text in items.fields]),
        )
        yield "".join(["\t".join(row) + "\t" + tail for row in zip(*columns, strict=True)]).encode()


def _targets(items: PlainColumns) -> Iterable[str]:
    """Targets of their own; one that is the id itself is NULL."""
    if items.targets is items.ids:
        return [_NULL] * len(items)
    return _safe([_NULL if target == item else target for item, target in zip(items.ids, items.targets, strict=True)])


def _safe(texts: Iterable[str]) -> Iterable[str]:
    return [text if text == _NULL or text.isalnum() else _escaped(text) for text in texts]


def _escaped(text: str) -> str:
    return text.translate(_ESCAPED) if "\\" in text or not text.isprintable() else text


def _duplicate(error: psycopg.Error) -> UsageError:
    """The error that names the id which comes twice, as the server says it: ``((place >> 32), id)=(1, r17)``."""
    found = _KEY.search(error.diag.message_detail or "")
    named = repr(found[1]) if found else "one"
    return UsageError(f"item {named} is in the batch twice", code="duplicate_item", hint="ids are unique in a batch")
