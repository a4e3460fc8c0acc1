"""Opening findings, each with its event: on an item as a change lands, or on a batch with a note.

What two processes find at once is opened once (``Desk.holds_finding``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payonce.core.events import plain
from payonce.core.model import Finding
from payonce.ledger import again
from payonce.ledger.desk import Desk
from payonce.ledger.rows import FindingRow, ItemRow, dump, load

Stamp = Mapping[str, Any]


def find(desk: Desk, row: ItemRow, kind: str, data: Mapping[str, Any], stamp: Stamp) -> None:
    """Opens a finding on an item, with its event."""
    now_us = desk.log.now_us
    desk.find(FindingRow(desk.batch.number, row.n, row.id, kind, dump(plain(data)), now_us))
    body = {"type": "finding", "class": kind, "batch": desk.batch.id, "item": row.id, "data": plain(data), **stamp}
    desk.log.emit(body, batch=desk.batch.number, n=row.n)


def find_half_done(desk: Desk, row: ItemRow, stamp: Stamp) -> None:
    """Of an item that does not go on some calls were executed: a finding, once, whatever is said of the item."""
    data = {"steps": row.step, "carry": load(row.carry)}
    if not desk.holds_finding(FindingRow(desk.batch.number, row.n, row.id, again.HALF_DONE, dump(plain(data)), 0)):
        find(desk, row, again.HALF_DONE, data, stamp)


def find_of_batch(desk: Desk, finding: Finding, stamp: Stamp) -> None:
    """A finding that comes with no change of an item: a reconciliation's. Its item, if any, is named, not looked up.

    One that is there already is not opened again: several processes that end together each find it."""
    batch, data = desk.batch, plain(finding.data)
    row = FindingRow(batch.number, None, finding.item, finding.kind, dump(data), desk.log.now_us)
    if desk.holds_finding(row):
        return
    desk.find(row)
    body = {"type": "finding", "class": finding.kind, "batch": batch.id, "data": data, **stamp}
    if finding.item is not None:
        body["item"] = finding.item
    desk.log.emit(body, batch=batch.number)
