"""The verbs of a ledger over any store's tables: one transaction each, the same rules everywhere.

A transaction is opened by the outermost verb; ``group()`` opens one for many verbs, which then become durable together.
A verb that refuses (UsageError, LeaseLost) does so before it has changed anything, so the others of a group stand; any
other error rolls the whole transaction back, and the caller must treat all of it as not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from payonce.core.errors import LeaseLost, UsageError
from payonce.core.model import Actor
from payonce.ledger.actors import steady_now
from payonce.ledger.desk import Desk
from payonce.ledger.log import Log
from payonce.ledger.place import MOVED_TO, refuse_moved_away
from payonce.ledger.rows import BatchRow, WorkerRow
from payonce.ledger.tables import Reads, Tables

Clock = Callable[[], int]
# True or False where it is certain, None for a process that cannot be seen from here.
IsAlive = Callable[[Actor], bool | None]
# What an actor's steady clock shows now, None where that cannot be read from here.
Steady = Callable[[Actor], int | None]


class StoreBase:
    """Transactions, desks and liveness: what all verbs need. Used from one thread at a time."""

    def __init__(
        self, tables: Tables, reads: Reads, *, clock: Clock, is_alive: IsAlive, steady: Steady = steady_now
    ) -> None:
        self._tables = tables
        self._reads = reads
        self._clock = clock
        self._is_alive = is_alive
        self._steady = steady
        self._log: Log | None = None
        # Desks outlive their transaction as long as nobody else has written; the active ones are written at its end.
        self._desks: dict[str, Desk] = {}
        self._active: dict[str, Desk] = {}

    def group(self) -> AbstractContextManager[object]:
        """One transaction around all verbs inside: durable together at its end, or not at all."""
        return self._transaction()

    def _transaction(self) -> AbstractContextManager[Log]:
        """The transaction that is open already, or a new one."""
        return self._outermost() if self._log is None else nullcontext(self._log)

    @contextmanager
    def _outermost(self) -> Iterator[Log]:
        try:
            head = self._tables.begin()
            if not self._tables.unchanged():
                self._desks = {}
            self._log = Log(head, clock_us=self._clock())
            yield self._log
            for desk in self._active.values():
                desk.finish()
            self._log.settle()
            if self._log.entries:
                self._spill(self._log)
            self._tables.commit()
        except BaseException:
            self._desks = {}
            self._tables.rollback()
            raise
        finally:
            self._log = None
            self._active = {}

    def _refuse_moved(self) -> None:
        """Raises LedgerPlaceError where the ledger was copied away since this process opened it: whoever was slower
        than the copy must not go on with what stayed behind. Asked by what begins something."""
        refuse_moved_away("", self._tables.meta().get(MOVED_TO))

    def _spill(self, log: Log) -> None:
        """Hands the events so far to the store, so that a transaction of millions does not fill the memory."""
        log.settle()
        self._tables.append(log)
        log.entries, log.nodes, log.payloads = [], [], []

    def _desk(self, log: Log, batch: str) -> Desk:
        """The batch's desk in this transaction. Raises UsageError where there is no such batch."""
        desk = self._active.get(batch)
        if desk is not None:
            return desk
        desk = self._desks.get(batch)
        if desk is None:
            row = self._tables.batch(batch)
            if row is None:
                raise no_such_batch(batch)
            desk = self._desks[batch] = Desk(row, tables=self._tables)
        desk.log = log
        self._active[batch] = desk
        return desk

    def _knows(self, batch: str) -> bool:
        """Whether the batch is on a desk, so that it is certain that there is one."""
        return batch in self._active or batch in self._desks

    def _worker_row(self, fence: int, *, batch: BatchRow) -> WorkerRow | None:
        """A worker's row if it is one of this batch's."""
        row = self._tables.worker(fence)
        return row if row is not None and row.batch == batch.number else None

    def _known_worker(self, fence: int, *, desk: Desk) -> WorkerRow | None:
        """The same for one that writes, which is read once for as long as the desk stands."""
        if fence not in desk.workers:
            desk.workers[fence] = self._worker_row(fence, batch=desk.batch)
        return desk.workers[fence]

    def _present(self, fence: int, *, batch: BatchRow) -> WorkerRow:
        """A worker that may still act. Raises LeaseLost where it left or was declared dead."""
        row = self._worker_row(fence, batch=batch)
        if row is None or row.left_us is not None:
            raise LeaseLost(
                f"worker {fence} of batch {batch.id} was declared dead, others work on its items",
                code="lease_lost",
                hint="run the same command again",
            )
        return row

    def _living(self, batch: BatchRow, *, now_us: int) -> list[WorkerRow]:
        """The batch's live workers: not left, lease not over, and not known to be gone from this host."""
        return [w for w in self._tables.workers(batch.number) if self._is_living(w, now_us=now_us)]

    def _is_living(self, worker: WorkerRow, *, now_us: int) -> bool:
        if worker.left_us is not None or self._is_lease_over(worker, now_us=now_us):
            return False
        return self._is_alive(worker.actor) is not False

    def _is_lease_over(self, worker: WorkerRow, *, now_us: int) -> bool:
        """By the worker's own steady clock where it can be read: a lease does not end because somebody set the other."""
        if worker.lease_until_us > now_us:
            return False
        own_us = self._time_of(worker)
        return own_us is None or worker.lease_until_us <= own_us

    def _time_of(self, worker: WorkerRow) -> int | None:
        """The ledger's time as a worker carries it on from its joining; None where its steady clock cannot be read."""
        steady_us = self._steady(worker.actor) if worker.actor.steady_us else None
        return None if steady_us is None else worker.joined_us + steady_us - worker.actor.steady_us


def no_such_batch(batch: str) -> UsageError:
    """The error for a batch that this ledger does not hold."""
    return UsageError(f"there is no batch {batch!r} in this ledger", code="unknown_batch", hint="see `payonce status`")
