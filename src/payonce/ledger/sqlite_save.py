"""What a flush of the desk writes into a SQLite ledger: items, open intents, and what hangs on them.

One item is written by its place, several by one statement for all of them: either is half the work of the other's way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import orjson

from payonce.core.states import Settlement
from payonce.ledger.queries import queries
from payonce.ledger.rows import ItemRow, Saved
from payonce.ledger.sqlite_many import insert_many
from payonce.ledger.sqlite_rows import (
    SETTLEMENT_CODE,
    change_columns,
    item_columns,
    json_list,
    open_columns,
    place,
    request_columns,
)


def save(db: sqlite3.Connection, number: int, saved: Saved, *, targets: Mapping[int, bool]) -> None:
    """Writes what a flush hands over, inside a transaction; ``targets``: which batches hold the targets of
    their items."""
    sql, base = queries("sqlite", "write"), place(number)
    if saved.closed:
        if len(saved.closed) == 1:
            db.execute(sql["close_intent"], (base | saved.closed[0],))
        else:
            db.execute(sql["close_intents"], (base, json_list(saved.closed)))
    if saved.opened:
        opened = [open_columns(row, base=base, targets=targets[number]) for row in saved.opened]
        insert_many(db, sql["open_intent"], opened)
    if saved.changed:
        db.executemany(sql["change_intent"], [change_columns(row, base) for row in saved.changed])
        for row in saved.changed:
            if row.request is not None:
                columns = (row.key, row.digest, *request_columns(row.request), base | row.n)
                db.execute(sql["change_request"], columns)
    if saved.begun:
        ns, now_us = [row.n for row in saved.begun], saved.begun[0].updated_us
        if len(ns) == 1:
            db.execute(sql["begin_item"], (base | ns[0], now_us))
        else:
            db.execute(sql["begin_items"], (base, json_list(ns), now_us))
    items = saved.items + _commit_items(db, saved.committed, base)
    if items:
        db.executemany(sql["save_item"], [item_columns(row, base) for row in items])
    if saved.outputs:
        db.executemany(sql["add_output"], [(base | o.n, o.output, o.kept) for o in saved.outputs])
    if saved.findings:
        rows = [(f.batch, f.item, f.kind, f.data, f.opened_us) for f in saved.findings]
        db.executemany(sql["add_finding"], rows)


def _commit_items(db: sqlite3.Connection, rows: list[ItemRow], base: int) -> list[ItemRow]:
    """Writes items that were executed over the amount asked; returns those that it cannot, which go the long way."""
    if len(rows) == 1:
        return rows
    by_settlement: dict[Settlement, dict[str, str | None]] = {}
    for row in rows:
        by_settlement.setdefault(row.settlement, {})[str(row.n)] = row.reference
    left: set[str] = set()
    sql = queries("sqlite", "write")
    for settlement, references in by_settlement.items():
        said = orjson.dumps(references).decode()
        if "\\u0000" in said:  # SQLite's JSON ends a text there
            left.update(references)
            continue
        db.execute(sql["commit_items"], (base, said, SETTLEMENT_CODE[settlement], rows[0].updated_us))
    return [row for row in rows if str(row.n) in left] if left else []
