"""What guarded single calls share in one process: the ledger, in a thread of its own, and a worker on each batch."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, TypeVar

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import LedgerError, PayonceError, UsageError
from payonce.core.model import SECOND_US, Item, Worker
from payonce.engine.clock import SystemClock
from payonce.engine.pacing import LedgerTime
from payonce.ledger.actors import this_actor
from payonce.ledger.connect import connect
from payonce.ledger.store_reads import StoreLedger

MARGIN_US: Final = 30 * SECOND_US
_CLOCK: Final = SystemClock()
_REST_S: Final = 30.0
T = TypeVar("T")


class ItemUnknown(PayonceError):
    """Nobody can know by rule whether the item was executed: a person has to resolve it. Nothing was sent now."""

    exit_code = 1


class ItemBusy(PayonceError):
    """The item is in another process's or task's hands, or must not be asked about yet. Nothing was sent now."""

    exit_code = 75


class ItemRefused(PayonceError):
    """The item was refused or left out earlier; ``payonce retry`` puts it back. Nothing was sent now."""

    exit_code = 1


class Desk:
    """One ledger in this process: a store that one thread owns, and this process's worker on each batch."""

    def __init__(self, url: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="payonce-once")
        self._url = url
        self._store: StoreLedger | None = None
        self._workers: dict[str, Worker] = {}
        self._time: LedgerTime | None = None
        self._used_s = time.monotonic()
        self.actor: Final = this_actor()
        self.active: set[tuple[str, str]] = set()

    def call(self, verb: Callable[[Desk], T]) -> T:
        """Runs a verb in the store's thread and waits."""
        return self.submit(verb).result()

    def submit(self, verb: Callable[[Desk], T]) -> Future[T]:
        """The same without waiting. The future can be cancelled only before the verb begins."""
        return self._pool.submit(self._do, verb)

    async def call_async(self, verb: Callable[[Desk], T]) -> T:
        """The same without blocking the event loop."""
        return await asyncio.wrap_future(self.submit(verb))

    def _do(self, verb: Callable[[Desk], T]) -> T:
        self._look_after_rest()
        try:
            return verb(self)
        except LedgerError:
            self._let_go()
            raise
        finally:
            self._used_s = time.monotonic()

    def _look_after_rest(self) -> None:
        """A connection to a server may be cut while nobody uses it: that is found out before anything is begun on it."""
        if self._store is not None and time.monotonic() - self._used_s > _REST_S:
            try:
                self._store.info()
            except LedgerError:
                self._let_go()

    def _let_go(self) -> None:
        """A connection that was lost stays lost: the next call opens the ledger again. The workers stay, since what they
        have pending is still this process's."""
        store, self._store = self._store, None
        if store is not None:
            with suppress(LedgerError):
                store.close()

    @property
    def store(self) -> StoreLedger:
        """The ledger, opened (and made, if there is none) at first use."""
        if self._store is None:
            self._store = connect(self._url, create=True)
        return self._store

    def item(self, batch: str, item: str) -> Item | None:
        """An item as the ledger has it; None where it, or its batch, is not there yet."""
        try:
            return self.store.item(batch, item)
        except UsageError as missing:
            if missing.code != "unknown_batch":
                raise
            return None

    @contextmanager
    def together(self, batch: str) -> Iterator[None]:
        """One transaction around everything inside. Where it fails, a worker that joined in it never did."""
        try:
            with self.store.group():
                yield
        except BaseException:
            self._workers.pop(batch, None)
            raise

    def now_us(self) -> int:
        """The ledger's time: as it was last told, carried on by a clock that counts suspended time."""
        return time.time_ns() // 1000 if self._time is None else self._time.now_us()

    def worker(self, batch: str, *, lease_us: int) -> Worker:
        """This process's worker on a batch, its lease long enough for one more call."""
        worker = self._workers.get(batch)
        if worker is None:
            actor = replace(self.actor, steady_us=SystemClock().steady_us())
            worker = self.store.join(batch, actor=actor, lease_us=lease_us)
            self.store.control(batch, Control(BatchCommand.START), actor=self.actor, worker=worker)
        elif worker.lease_until_us < self.now_us() + lease_us - MARGIN_US // 2:
            worker = self.store.renew(worker, lease_us=lease_us)
        else:
            return worker
        self._time = LedgerTime.at(_CLOCK, worker.now_us)
        self._workers[batch] = worker
        return worker


_desks: dict[str, Desk] = {}
_parents: list[Desk] = []
_lock = threading.Lock()


def _leave_to_parent() -> None:
    """A forked child (a prefork task queue) opens ledgers of its own: threads do not live on in it, and what the parent
    has open must neither be used nor closed here, so it is kept as it is."""
    global _lock
    _lock = threading.Lock()
    _parents.extend(_desks.values())
    _desks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def desk_of(url: str) -> Desk:
    with _lock:
        if url not in _desks:
            _desks[url] = Desk(url)
        return _desks[url]
