"""The verbs of the trail itself: an event about the ledger, and erasing what is personal without breaking the trail."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from payonce.core.errors import UsageError
from payonce.core.events import plain
from payonce.core.model import Actor
from payonce.ledger.desk import Desk
from payonce.ledger.rows import ItemRow, actor_fields, dump, load
from payonce.ledger.store_batches import BatchVerbs
from payonce.ledger.store_seals import ERASED, reseal


class TrailVerbs(BatchVerbs):
    """What may be written to the trail besides what happens to batches and items."""

    def record(self, event: str, data: Mapping[str, Any], *, actor: Actor, reason: str) -> int:
        """Appends an event about the ledger itself, with who and why; returns its number."""
        with self._transaction() as log:
            body = {"type": event, "actor": actor_fields(actor), "reason": reason, **plain(data)}
            return log.emit(body)

    def erase(
        self, batch: str, items: Sequence[str], *, fields: Collection[str] | None, actor: Actor, reason: str
    ) -> int:
        """Erases what was read of a person: input fields (all, or those named), payloads and outputs of some items.

        The digests in the events stay and still prove what there was; an ``erased`` event on each item says who and why.
        All of it or nothing. Raises UsageError where an item is unknown, or may still be sent and needs its fields.
        Returns how many items there were.
        """
        if not reason.strip():
            raise UsageError("erasing needs a reason", code="no_reason", hint="say why: --reason TEXT")
        with self._erasing(), self._transaction() as log:
            desk = self._desk(log, batch)
            numbers = [self._erasable(desk, item) for item in dict.fromkeys(items)]
            stamp = {"actor": actor_fields(actor), "reason": reason}
            left = {n: text for n in numbers if (text := _without(desk.rows[n], fields)) != desk.rows[n].fields}
            resealed = reseal(self._tables, self._reads, desk.batch, left) if left else []
            for n in numbers:
                self._erase_item(desk, desk.rows[n], left.get(n), stamp)
            for one in resealed:
                body = {"type": "resealed", "batch": batch, "event": one.sealing.seq, "seal": one.left, **stamp}
                if one.unchecked:
                    body["unchecked"] = True
                log.emit(body, batch=desk.batch.number)
            return len(numbers)

    def _erasable(self, desk: Desk, item: str) -> int:
        n = self._tables.number_of(desk.batch.number, item)
        if n is None:
            raise UsageError(f"batch {desk.batch.id} has no item {item!r}", code="unknown_item", hint="check the id")
        desk.lay_out([n])
        if desk.rows[n].state.is_open or desk.rows[n].state.holds_money:
            raise UsageError(
                f"item {item} is {desk.rows[n].state}: it may still be sent, with its fields",
                code="item_open",
                hint="erase it when it is settled",
            )
        return n

    def _erase_item(self, desk: Desk, row: ItemRow, left: str | None, stamp: Mapping[str, Any]) -> None:
        """Erases an item's payloads and outputs, and where ``left`` is given, the fields that are not in it."""
        gone = [] if left is None else sorted(plain({**load(row.fields)}).keys() - load(left).keys())
        if left is not None:
            row.fields = left
        body = {"type": "erased", "batch": desk.batch.id, "item": row.id, "fields": gone, **stamp}
        seq = desk.log.emit(body, batch=desk.batch.number, n=row.n)
        self._tables.erase(desk.batch.number, row.n, fields=row.fields, seq=seq)

    def _erasing(self) -> Any:
        """What a store does around an erasure so that nothing is left in its files."""
        from contextlib import nullcontext

        return nullcontext()


def _without(row: ItemRow, fields: Collection[str] | None) -> str:
    """An item's fields without some of them, or all, and with the names of what is gone."""
    there = load(row.fields)
    gone = {name for name in there if fields is None or name in fields}
    if not gone:
        return row.fields
    return dump({**{name: value for name, value in there.items() if name not in gone}, ERASED: sorted(gone)})
