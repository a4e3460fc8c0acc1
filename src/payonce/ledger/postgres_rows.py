"""Between PostgreSQL's columns and the ledger's rows. The order of columns is that of the SQLite store's statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from payonce.core.model import OpenIntent, Request
from payonce.ledger import sqlite_rows
from payonce.ledger.postgres_values import held, told
from payonce.ledger.rows import BatchRow, ItemRow, OpenRow, as_open
from payonce.ledger.sqlite_rows import to_request


def to_item(row: Sequence[Any]) -> ItemRow:
    """An item from its 21 columns."""
    item = sqlite_rows.to_item(row)
    if item.code is not None or item.reference is not None:
        item.reference, item.code, item.message = told(item.reference), told(item.code), told(item.message)
    return item


def to_open(row: Sequence[Any]) -> OpenRow:
    """An open intent from its 18 columns."""
    opened = sqlite_rows.to_open(row)
    opened.code, opened.message = told(opened.code), told(opened.message)
    return opened


def to_open_intent(row: Sequence[Any]) -> OpenIntent:
    """An open intent with its item and request, from the columns of ``open_intents``."""
    request: Request = to_request(row[39:])
    return as_open(to_open(row[21:39]), to_item(row[:21]), request)


def to_batch(row: Sequence[Any]) -> BatchRow:
    """A batch from its columns."""
    batch = sqlite_rows.to_batch(row)
    batch.reason = told(batch.reason)
    return batch


def batch_columns(row: BatchRow) -> tuple[Any, ...]:
    """The parameters of ``save_batch``, without the number at the end."""
    columns = list(sqlite_rows.batch_columns(row))
    columns[4] = held(row.reason)
    return tuple(columns)


def new_batch_columns(row: BatchRow) -> tuple[Any, ...]:
    """The parameters of ``add_batch``."""
    spec, seal, items, *mutable = batch_columns(row)
    return (row.id, int(row.targets), spec, seal, items, row.created_us, row.first_seq, *mutable)
