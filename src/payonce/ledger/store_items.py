"""The verbs that move items: planned, write, take_over, operate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from payonce.core.commands import Command, Landed
from payonce.core.errors import UsageError
from payonce.core.model import Actor, Item, OpenIntent, Worker
from payonce.core.states import ItemEvent
from payonce.ledger import rules
from payonce.ledger.clockset import carry_over, set_by_us
from payonce.ledger.desk import Desk
from payonce.ledger.rows import BatchRow, WorkerRow, as_item, signature
from payonce.ledger.store_batches import BatchVerbs


class _NotLanded(Exception):
    """Takes an operator's half-done change back: all of its commands land, or none."""

    def __init__(self, landed: Landed) -> None:
        super().__init__(landed)
        self.landed = landed


class ItemVerbs(BatchVerbs):
    """Items on the move. See ledger.protocol for what each verb promises."""

    def planned(self, worker: Worker, *, limit: int) -> tuple[Item, ...]:
        """See ledger.protocol."""
        with self._transaction() as log:
            desk = self._desk(log, worker.batch)
            self._present(worker.fence, batch=desk.batch)
            desk.flush()
            rows = self._tables.planned_after(desk.batch.number, desk.batch.cursor, limit)
            desk.batch.cursor = rows[-1].n if rows else 0
            desk.take(rows)
            return tuple(map(as_item, rows))

    def write(self, worker: Worker, commands: Sequence[Command]) -> tuple[Landed, ...]:
        """See ledger.protocol."""
        with self._transaction() as log:
            desk = self._desk(log, worker.batch)
            row = self._known_worker(worker.fence, desk=desk)
            if row is None or row.left_us is not None:
                return (Landed.STALE,) * len(commands)
            may_send = not self._is_lease_over(row, now_us=log.now_us)
            author = rules.Author(worker.fence, {"worker": worker.fence}, may_send=may_send)
            desk.lay_out(command.n for command in commands)
            return rules.apply_all(desk, commands, author)

    def take_over(self, worker: Worker, *, limit: int) -> tuple[OpenIntent, ...]:
        """See ledger.protocol."""
        with self._transaction() as log:
            desk = self._desk(log, worker.batch)
            mine = self._present(worker.fence, batch=desk.batch)
            living = {worker.fence} | self._bury(desk, mine)
            desk.workers.clear()
            desk.flush()
            ns = self._tables.orphans(desk.batch.number, living, limit)
            desk.lay_out(ns)
            fences = {desk.opens[n].fence for n in ns}
            rows = {fence: self._worker_row(fence, batch=desk.batch) for fence in fences}
            for n in ns:
                self._hand_over(desk, n, mine, before=rows[desk.opens[n].fence])
            desk.flush()
            return tuple(self._tables.open_intents(desk.batch.number, ns)) if ns else ()

    def _bury(self, desk: Desk, mine: WorkerRow) -> set[int]:
        """Declares the batch's dead workers dead, so that none of their writes lands again; returns the living ones.

        A lease is not over because the clock was set forward since its worker joined."""
        log, fence, living = desk.log, mine.fence, set()
        for other in self._tables.workers(desk.batch.number):
            forward = max(0, set_by_us(other, mine))
            if other.fence == fence or self._is_living(other, now_us=log.now_us - forward):
                living.add(other.fence)
                continue
            other.left_us = log.now_us
            self._tables.save_worker(other)
            body = {"type": "worker_dead", "batch": desk.batch.id, "worker": fence, "dead": other.fence}
            log.emit(body, batch=desk.batch.number)
        return living

    def _hand_over(self, desk: Desk, n: int, mine: WorkerRow, *, before: WorkerRow | None) -> None:
        row, held, fence = desk.rows[n], desk.opens[n], mine.fence
        set_us = 0 if before is None else set_by_us(before, mine)
        carry_over(row, held, set_us=set_us)
        body: dict[str, Any] = {
            "type": ItemEvent.TAKEOVER.value,
            "batch": desk.batch.id,
            "item": row.id,
            "attempt": row.attempts,
            "worker": fence,
            "from_worker": held.fence,
        }
        if set_us:
            body["clock_set_us"] = set_us
        held.fence = fence
        desk.change(held)
        row.updated_us = desk.log.now_us
        desk.shift(row, (row.state, held.hold_currency or "", held.hold_minor or 0))
        desk.log.emit(body, batch=desk.batch.number, n=n)

    def operate(self, batch: str, item: str, changes: Sequence[Command], *, actor: Actor, reason: str) -> Landed:
        """See ledger.protocol."""
        assert self._log is None, "an operator's change may be taken back half-way, so it is a transaction of its own"
        if not reason.strip():
            raise UsageError("an operator's change needs a reason", code="no_reason", hint="say why: --reason TEXT")
        try:
            with self._transaction() as log:
                desk = self._desk(log, batch)
                self._refuse_moved()
                n = self._tables.number_of(desk.batch.number, item)
                if n is None:
                    raise UsageError(f"batch {batch} has no item {item!r}", code="unknown_item", hint="check the id")
                assert all(change.n == n for change in changes), "an operator's changes are about one item"
                desk.lay_out([n])
                stamp = {"actor": signature(actor), "reason": reason}
                author = rules.Author(0, stamp, busy=self._busy(desk.batch, now_us=log.now_us))
                for change in changes:
                    landed = rules.apply(desk, change, author)
                    if landed is not Landed.LANDED:
                        raise _NotLanded(landed)
                return Landed.LANDED
        except _NotLanded as not_landed:
            return not_landed.landed

    def _busy(self, batch: BatchRow, *, now_us: int) -> frozenset[int]:
        return frozenset(w.fence for w in self._living(batch, now_us=now_us))
