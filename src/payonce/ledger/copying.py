"""A whole ledger into an empty store, over the ports that every store has: nothing here knows a store.

Events go over byte for byte and are hashed again on the way; rows go over as they stand. Both sides are compared at the
end. The target's transaction holds all of it: it is there whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import orjson

from payonce.core.errors import LedgerError
from payonce.core.events import leaf_hash
from payonce.core.model import Actor, PlainColumns, Request
from payonce.ledger.log import Log
from payonce.ledger.merkle import Head, mark_of
from payonce.ledger.newcomers import Block
from payonce.ledger.rows import (
    BatchRow,
    Entry,
    FindingRow,
    ItemRow,
    OpenRow,
    OutputRow,
    PayloadRow,
    Saved,
    WorkerRow,
    copy_of,
    dump,
)
from payonce.ledger.tables import Reads, Tables
from payonce.ledger.trail_port import PLACE_MASK, PLACE_SHIFT, TrailReads

# Puts everything into an empty store's present transaction.
Fill = Callable[[Tables], None]
_AT_ONCE: Final = 2000
_PAYLOADS: Final = 200
# A step without an intent of its own has no request that could be sent: what its row holds is never used.
_NO_REQUEST: Final = Request("", "", b"")


@dataclass(frozen=True, slots=True)
class Source:
    """A ledger inside a transaction of its own, so that nobody else writes, and its trail as it is on disk."""

    tables: Tables
    reads: Reads
    trail: TrailReads


def copy_ledger(source: Source, target: Tables) -> Head:
    """Copies everything inside the target's present transaction, which the caller commits; returns the new head.

    Raises LedgerError ``copy_differs`` where what arrived is not what was sent; then nothing may be committed.
    """
    batches = list(source.trail.batches())
    for row in batches:
        _add_batch(source, target, row)
    head, fences = _events(source.trail, target)
    _workers(source.tables, target, fences)
    erased = _payloads(source.trail, target, head)
    for row in batches:
        for n, seq in erased.get(row.number, ()):
            (item,) = source.tables.rows(row.number, [n])
            target.erase(row.number, n, fields=item.fields, seq=seq)
        _rows(source, target, row)
        _findings(source.reads, target, row.number)
    _compare(source, target, batches, head)
    return head


def _add_batch(source: Source, target: Tables, row: BatchRow) -> None:
    """A batch with its items, as they were when they were sealed."""
    number = target.add_batch(replace(row, number=0))
    _same(number, row.number, f"the number of batch {row.id}")
    target.add_items(number, (_block(rows) for rows in _pages(source.tables, row)))
    target.save_batch(copy_of(row))
    target.save_tallies(number, source.tables.tallies(number))
    target.batch(row.id)


def _pages(tables: Tables, row: BatchRow) -> Iterator[list[ItemRow]]:
    for first in range(1, row.items + 1, _AT_ONCE):
        last = min(first + _AT_ONCE - 1, row.items)
        rows = sorted(tables.rows(row.number, range(first, last + 1)), key=lambda item: item.n)
        _same([item.n for item in rows], list(range(first, last + 1)), f"the items of batch {row.id}")
        yield rows


def _block(rows: Sequence[ItemRow]) -> Block:
    columns = PlainColumns.of([(r.id, r.target, r.minor, r.currency, r.fields) for r in rows])
    return Block(rows[0].n, columns, rows[0].updated_us)


def _events(trail: TrailReads, target: Tables) -> tuple[Head, dict[int, int]]:
    """The trail; returns its head, and the batch of each worker that joined, by fence."""
    known = trail.head()
    head, fences = Head(), dict[int, int]()
    filed = trail.filed(1, known.size)
    while page := list(islice(filed, _AT_ONCE)):
        log = Log(head, clock_us=0)
        for seq, place, body, _ in page:
            _same(seq, head.size + 1, "the number of an event")
            leaf = leaf_hash(body)
            batch, n = (None, None) if place is None else (place >> PLACE_SHIFT, place & PLACE_MASK or None)
            log.entries.append(Entry(seq, batch, n, body, mark_of(leaf)))
            log.nodes += head.append(leaf)
            if batch is not None and n is None and b'"worker_joined"' in body:
                fences[orjson.loads(body)["worker"]] = batch
        head.last_us = known.last_us
        target.append(log)
    _same((head.size, head.root()), (known.size, known.root()), "the trail")
    return head, fences


def _workers(tables: Tables, target: Tables, fences: dict[int, int]) -> None:
    """Fences stay what they are: where one was never given to anybody, nobody gets it here either."""
    for fence in range(1, max(fences, default=0) + 1):
        row = tables.worker(fence) or WorkerRow(fence, min(fences.values()), Actor(), 0, 0, left_us=0)
        _same(target.add_worker(replace(row, fence=0)), fence, "the fence of a worker")


def _payloads(trail: TrailReads, target: Tables, head: Head) -> dict[int, list[tuple[int, int]]]:
    """Kept payloads; returns what was erased: by batch, the items with the event that says so."""
    erased: dict[int, dict[tuple[int, int], None]] = {}
    kept = trail.payloads()
    while page := list(islice(kept, _PAYLOADS)):
        log = Log(head, clock_us=0)
        for seq, kind, place, digest, body, by in page:
            batch, n = place >> PLACE_SHIFT, place & PLACE_MASK
            log.payloads.append(PayloadRow(seq, kind, batch, n, digest, body or b""))
            if by is not None:
                erased.setdefault(batch, {})[n, by] = None
        target.append(log)
    return {batch: list(items) for batch, items in erased.items()}


def _rows(source: Source, target: Tables, row: BatchRow) -> None:
    """What became of a batch's items, their open intents, and what their calls returned."""
    number = row.number
    for rows in _pages(source.tables, row):
        block = {new.n: new for new in _block(rows).rows()}
        opens = _opens(source, row, [item.n for item in rows if item.state.holds_money])
        outputs = source.reads.outputs(number, after_n=rows[0].n - 1, limit=len(rows))
        saved = Saved(
            items=[item for item in rows if item != block[item.n]],
            opened=opens,
            changed=[replace(opened, request=None) for opened in opens],
            outputs=[
                OutputRow(found.item.n, found.output, dump(found.kept) if found.kept else None)
                for found in outputs
                if found.output is not None or found.kept
            ],
        )
        target.save(number, saved)


def _opens(source: Source, batch: BatchRow, ns: Sequence[int]) -> list[OpenRow]:
    if not ns:
        return []
    requests = {opened.item.n: opened.request for opened in source.tables.open_intents(batch.number, ns)}
    return [replace(row, request=requests[row.n] or _NO_REQUEST) for row in _held(source.tables, batch, ns)]


def _held(tables: Tables, batch: BatchRow, ns: Sequence[int]) -> list[OpenRow]:
    """Open intents, in input order. Where items are their own targets, not every store keeps them twice."""
    rows = sorted(tables.opens(batch.number, ns), key=lambda row: row.n)
    return rows if batch.targets else [replace(row, target=None) for row in rows]


def _findings(reads: Reads, target: Tables, number: int) -> None:
    found = [FindingRow(number, None, f.item, f.kind, dump(f.data), f.opened_us) for f in reads.findings(number)]
    if found:
        target.save(number, Saved(findings=found))


def _compare(source: Source, target: Tables, batches: Sequence[BatchRow], head: Head) -> None:
    for row in batches:
        number = row.number
        _same(target.batch(row.id), row, f"batch {row.id}")
        _same(target.tallies(number), source.tables.tallies(number), f"the tallies of batch {row.id}")
        _same(_by_fence(target.workers(number)), _by_fence(source.tables.workers(number)), "the workers")
        for rows, arrived in zip(_pages(source.tables, row), _pages(target, row), strict=True):
            _same(arrived, rows, f"items of batch {row.id}")
            ns = [item.n for item in rows if item.state.holds_money]
            _same(_held(target, row, ns), _held(source.tables, row, ns), f"open intents of batch {row.id}")
    _same(head.size, source.trail.head().size, "the trail")


def _by_fence(rows: Sequence[WorkerRow]) -> list[WorkerRow]:
    return sorted(rows, key=lambda row: row.fence)


def _same(found: Any, wanted: Any, what: str) -> None:
    if found != wanted:
        raise LedgerError(
            f"{what} did not arrive as sent",
            code="copy_differs",
            hint="nothing was copied, the ledger is as it was; run payonce doctor and payonce trail verify on it",
        )
