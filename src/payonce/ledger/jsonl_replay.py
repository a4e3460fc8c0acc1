"""Taking in what a JSON Lines ledger says: each change of a transaction, into the rows in memory.

The counterpart of ``jsonl_tables``, which writes the changes down. Rows are changed in place and nothing can be taken
back: a group is taken in only when all of it is there and its digest fits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from payonce.core.states import ItemState
from payonce.ledger import jsonl_rows as cells
from payonce.ledger.jsonl_frames import HEADER, ROWS, Group, damaged
from payonce.ledger.merkle import Head
from payonce.ledger.rows import ItemRow, OutputRow, Saved

if TYPE_CHECKING:
    from payonce.ledger.jsonl_tables import JsonlTables


def take_in(tables: JsonlTables, group: Group) -> None:
    """One group. Raises LedgerError ``ledger_corrupt`` where it says what cannot be."""
    try:
        _lines(tables, group)
        _head(tables, group.meta)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        where = f"{group.line} to {group.line + len(group.lines)}"
        raise damaged(str(tables.path), where, f"hold what cannot be ({error!r})", word="lines") from error


def _lines(tables: JsonlTables, group: Group) -> None:
    at = group.start
    for line in group.lines:
        if line.startswith(ROWS):
            for name, *values in orjson.loads(line)["$rows"]:
                _APPLY[name](tables, *values)
        elif line.startswith(HEADER):
            tables.name(orjson.loads(line)["$payonce"]["id"])
        else:
            tables.trail.add(at, len(line))
        at += len(line) + 1


def _head(tables: JsonlTables, meta: Mapping[str, Any]) -> None:
    head = meta.get("head")
    if head is not None:
        for batch, ns in meta["places"]:
            tables.trail.file_under(batch, ns)
        tables.nodes.update(((level, index), bytes.fromhex(value)) for level, index, value in meta["nodes"])
        size, last_us, last_leaf, peaks = head
        tables._head = Head(size, [bytes.fromhex(peak) for peak in peaks], bytes.fromhex(last_leaf), last_us)
    if not tables.trail.has(tables._head.size):
        raise ValueError(f"the head of the trail says {tables._head.size} events")


def _batch(tables: JsonlTables, said: Mapping[str, Any]) -> None:
    row = cells.to_batch(said)
    number = row.number = len(tables._batches) + 1
    tables._batches[number] = row
    tables._numbers[row.id] = number
    for table in (tables._items, tables._opens, tables._tallies, tables._ids, tables._held):
        table[number] = {}


def _batch_changed(tables: JsonlTables, number: int, said: Mapping[str, Any]) -> None:
    cells.changed(tables._batches[number], said)


def _items(tables: JsonlTables, number: int, first_n: int, now_us: int, items: list[list[Any]]) -> None:
    rows, ids = tables._items[number], tables._ids[number]
    for n, (item, target, minor, currency, fields) in enumerate(items, start=first_n):
        # Most items are their own target, and currencies are few: what is equal is kept once.
        own, known = item if target == item else target, currency and sys.intern(currency)
        rows[n] = ItemRow(n, item, own, minor, known, fields, updated_us=now_us)
        ids[item] = n


def _tallies(tables: JsonlTables, number: int, said: list[list[Any]]) -> None:
    tables._tallies[number].update(cells.to_tallies(said))


def _save(tables: JsonlTables, number: int, said: Mapping[str, Any]) -> None:
    items = tables._items[number]
    if "begun" in said:
        at_us, *ns = said["begun"]
        for n in ns:
            row = items[n]
            row.state, row.updated_us = ItemState.PENDING, at_us
            row.attempts += 1
            row.code = row.message = None
    for n, cell in said.get("items", ()):
        cells.changed(items[n], cell)
        tables._from[number] = min(tables._from.get(number, 1), n)
    _intents(tables, number, said)
    tables._outputs.update(((number, row.n), row) for row in map(cells.to_output, said.get("outputs", ())))
    if "findings" in said:
        tables.add_findings(number, Saved(findings=[cells.to_finding(cell, number) for cell in said["findings"]]))


def _intents(tables: JsonlTables, number: int, said: Mapping[str, Any]) -> None:
    """Open intents come as they are said, since most are closed again further on: ``settle`` makes rows of the rest."""
    opens, held, said_only = tables._opens[number], tables._held[number], tables.said_only
    for n in said.get("closed", ()):
        cell = said_only.pop((number, n), None)
        if cell is None:
            target = opens.pop(n).target
            del tables._requests[number, n]
        else:
            target = cell.get("target")
        if target and held.get(target) == n:
            del held[target]
    for cell in said.get("opened", ()):
        n, target = cell["n"], cell.get("target")
        said_only[number, n] = cell
        if target:
            held[target] = n
    for n, cell in said.get("changed", ()):
        known = said_only.get((number, n))
        if known is None:
            known = {**cells.as_open(opens.pop(n)), "request": cells.as_request(tables._requests.pop((number, n)))}
            said_only[number, n] = known
        known.update(cell)


def settle(tables: JsonlTables) -> None:
    """Makes rows of the open intents that the groups have left open."""
    for (number, n), cell in tables.said_only.items():
        row = cells.to_open(cell)
        assert row.request is not None, "an open intent has a request"
        tables._requests[number, n], row.request = row.request, None
        tables._opens[number][n] = row
    tables.said_only.clear()


def _erase(tables: JsonlTables, number: int, n: int, fields: str, seq: int) -> None:
    tables._items[number][n].fields = fields
    for key, kept in tables._payloads.items():
        if (kept.batch, kept.n) == (number, n) and key not in tables.erased:
            tables._payloads[key] = replace(kept, body=b"")
            tables.erased[key] = seq
    if (number, n) in tables._outputs:
        tables._outputs[number, n] = OutputRow(n, None, None)


def _worker(tables: JsonlTables, said: Mapping[str, Any]) -> None:
    row = cells.to_worker(said)
    row.fence = len(tables._workers) + 1
    tables._workers[row.fence] = row


def _worker_changed(tables: JsonlTables, fence: int, lease_until_us: int, left_us: int | None) -> None:
    row = tables._workers[fence]
    row.lease_until_us, row.left_us = lease_until_us, left_us


def _payload(tables: JsonlTables, said: list[Any]) -> None:
    kept = cells.to_payload(said)
    tables._payloads[kept.seq, kept.kind] = kept


def _meta(tables: JsonlTables, name: str, value: str) -> None:
    tables._meta[name] = value


# What a line of rows may hold: the first value of each entry, and who takes the others in.
_APPLY: Final[Mapping[str, Callable[..., None]]] = {
    "batch": _batch,
    "batch=": _batch_changed,
    "items": _items,
    "tallies": _tallies,
    "save": _save,
    "erase": _erase,
    "worker": _worker,
    "worker=": _worker_changed,
    "payload": _payload,
    "meta": _meta,
}
