"""The verbs that steer a batch as a whole, and those of its workers: control, join, renew, leave, slots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.model import Actor, Batch, Worker
from payonce.ledger import controls, effects
from payonce.ledger.desk import Desk
from payonce.ledger.rate import claim_slots
from payonce.ledger.rows import (
    WorkerRow,
    actor_fields,
    as_batch,
    as_worker,
    signature,
)
from payonce.ledger.store_sealing import SealVerbs

_CANCEL_AT_ONCE: Final = 1000
# In one transaction. The batch is cancelled, so nothing can be sent between two of them.
_CANCEL_AT_MOST: Final = 50_000


class BatchVerbs(SealVerbs):
    """Batches and workers. See ledger.protocol for what each verb promises."""

    def control(self, batch: str, control: Control, *, actor: Actor, worker: Worker | None = None) -> Batch:
        """See ledger.protocol."""
        with self._transaction() as log:
            desk = self._desk(log, batch)
            self._refuse_moved()
            stamp: dict[str, Any] = {"actor": signature(actor)}
            if worker is not None:
                stamp["worker"] = worker.fence
            living = self._living(desk.batch, now_us=log.now_us)
            others = any(worker is None or w.fence != worker.fence for w in living)
            controls.steer(desk, control, stamp=stamp, others=others)
            if control.command is BatchCommand.CANCEL:
                self._skip_planned(desk, stamp)
            return as_batch(desk.batch)

    def _skip_planned(self, desk: Desk, stamp: dict[str, Any]) -> None:
        """Skips planned items, so many at most that the transaction stays bounded; the same command skips the rest."""
        desk.flush()
        after = skipped = 0
        while skipped < _CANCEL_AT_MOST and (
            rows := self._tables.planned_after(desk.batch.number, after, _CANCEL_AT_ONCE)
        ):
            after = rows[-1].n
            skipped += len(rows)
            desk.take(rows)
            for row in (desk.rows[r.n] for r in rows):
                effects.skip(desk, row, code="cancelled", message="the batch was cancelled", stamp=stamp)
            desk.flush()
            desk.forget([r.n for r in rows])
            self._spill(desk.log)

    def join(self, batch: str, *, actor: Actor, lease_us: int) -> Worker:
        """See ledger.protocol."""
        with self._transaction() as log:
            desk = self._desk(log, batch)
            self._refuse_moved()
            now_us = log.now_us
            others = len(self._living(desk.batch, now_us=now_us))
            if not others:
                desk.batch.cursor = 0
            # Both clocks at one instant: the caller may have been suspended, or the disk slow, since it asked.
            steady_us = (self._steady(actor) or 0) if actor.steady_us else 0
            if steady_us:
                actor = replace(actor, steady_us=steady_us)
            row = WorkerRow(0, desk.batch.number, actor, now_us, now_us + lease_us)
            row.fence = self._tables.add_worker(row)
            body = {"type": "worker_joined", "batch": batch, "worker": row.fence, "actor": actor_fields(actor)}
            log.emit(body, batch=row.batch)
            return as_worker(row, desk.batch, now_us=now_us, others=others, steady_us=steady_us)

    def renew(self, worker: Worker, *, lease_us: int) -> Worker:
        """See ledger.protocol."""
        with self._transaction() as log:
            desk = self._desk(log, worker.batch)
            row = self._present(worker.fence, batch=desk.batch)
            # From the later of the two clocks: the ledger's stands still for as long as it was set back.
            row.lease_until_us = max(log.now_us, self._time_of(row) or 0) + lease_us
            self._tables.save_worker(row)
            desk.workers.clear()
            living = self._living(desk.batch, now_us=log.now_us)
            others = sum(w.fence != row.fence for w in living)
            return as_worker(row, desk.batch, now_us=log.now_us, others=others)

    def leave(self, worker: Worker) -> None:
        """See ledger.protocol."""
        with self._transaction() as log:
            desk = self._desk(log, worker.batch)
            row = self._worker_row(worker.fence, batch=desk.batch)
            if row is None or row.left_us is not None:
                return
            row.left_us = log.now_us
            self._tables.save_worker(row)
            desk.workers.clear()
            body = {"type": "worker_left", "batch": worker.batch, "worker": row.fence}
            log.emit(body, batch=row.batch)

    def slots(self, worker: Worker, *, count: int) -> tuple[int, ...]:
        """See ledger.protocol."""
        with self._transaction() as log:
            desk = self._desk(log, worker.batch)
            row = self._present(worker.fence, batch=desk.batch)
            rate = desk.limits.get("rate_per_ks")
            slots = claim_slots(desk.batch, rate_per_ks=rate, count=count, now_us=log.now_us)
            # In the worker's own time: it would wait for as long as the ledger's clock has been set forward since it joined.
            ahead_us = log.now_us - (self._time_of(row) or log.now_us)
            return tuple(at_us - ahead_us for at_us in slots) if ahead_us > 0 else slots
