"""What guarded single calls share in one process: one ledger, and this process's worker on each batch.

One thread at a time has the ledger. A plain ``with`` takes it in the caller's own thread, since a hop into another one
costs more than half of what the ledger does; a coroutine sends its verb into a thread, so that its loop never waits.

A verb in the caller's thread can be broken off at any instruction by an exception that a signal's handler raises (Ctrl-C,
a task queue's time limit). Whatever it leaves behind is not used again: the ledger is let go, which takes back what was
not durable, and opened anew by the next verb. What was durable is found there.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import LeaseLost, LedgerError, PayonceError, UsageError
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
    """One ledger in this process, for one thread at a time, and this process's worker on each batch.

    ``active`` names who has an item here. Who is gone without a word (broken off on its way out) has it no longer.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._turn = threading.Lock()
        self._owner = 0
        self._pool: ThreadPoolExecutor | None = None
        self._store: StoreLedger | None = None
        self._whole = True
        self._workers: dict[str, Worker] = {}
        self._joined: dict[str, Worker] = {}
        self._together = False
        self._time: LedgerTime | None = None
        self._used_s = time.monotonic()
        self.actor: Final = this_actor()
        self.active: MutableMapping[tuple[str, str], Any] = WeakValueDictionary()

    # taking turns

    def call(self, verb: Callable[[Desk], T]) -> T:
        """Runs a verb in the caller's thread, when the ledger is free."""
        if self._owner == threading.get_ident():
            # A signal's handler, or a destructor, in the middle of another verb of this very thread.
            raise ItemBusy("the ledger is in use by this thread", code="item_busy", hint="call it from another place")
        # ``with`` lets no exception in between taking the lock and giving it back; acquire and release would.
        with self._turn:
            self._owner = threading.get_ident()
            try:
                return self._do(verb)
            finally:
                self._owner = 0

    def submit(self, verb: Callable[[Desk], T]) -> Future[T]:
        """Runs it in a thread of the desk's own, without waiting. It can be cancelled only before the verb begins."""
        if self._pool is None:
            with _lock:
                self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="payonce-once")
        return self._pool.submit(functools.partial(self.call, verb))

    async def call_async(self, verb: Callable[[Desk], T]) -> T:
        """The same, waiting without blocking the event loop."""
        return await asyncio.wrap_future(self.submit(verb))

    def _do(self, verb: Callable[[Desk], T]) -> T:
        if self._store is not None:
            self._look_after_rest()
        self._whole = False
        try:
            found = verb(self)
        except LedgerError:
            self._let_go()
            raise
        except PayonceError:  # a refusal: nothing is half done
            self._whole = True
            raise
        except BaseException:
            self._let_go()
            raise
        self._whole = True
        self._used_s = time.monotonic()
        return found

    def _look_after_rest(self) -> None:
        """A connection to a server may be cut while nobody uses it: that is found out before anything is begun on it.
        What a broken-off verb has left is not used at all."""
        if not self._whole:
            self._let_go()
        elif self._store is not None and time.monotonic() - self._used_s > _REST_S:
            try:
                self._store.info()
            except LedgerError:
                self._let_go()

    def _let_go(self) -> None:
        """A connection that was lost stays lost: the next call opens the ledger again. The workers stay, since what they
        have pending is still this process's."""
        store, self._store = self._store, None
        self._together = False
        if store is not None:
            with suppress(LedgerError):
                store.close()

    # what verbs use

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

    def leave(self, name: tuple[str, str], who: object) -> None:
        """Somebody has an item no longer."""
        if self.active.get(name) is who:
            del self.active[name]

    @contextmanager
    def together(self) -> Iterator[None]:
        """One transaction around everything inside. A worker that joined in it is known from when it is durable on."""
        self._together, self._joined = True, {}
        try:
            with self.store.group():
                yield
        finally:
            self._together = False
        self._workers.update(self._joined)

    def now_us(self) -> int:
        """The ledger's time: as it was last told, carried on by a clock that counts suspended time."""
        return time.time_ns() // 1000 if self._time is None else self._time.now_us()

    def worker(self, batch: str, *, lease_us: int) -> Worker:
        """This process's worker on a batch, its lease long enough for one more call; a new one where others have
        declared it dead."""
        worker = self._workers.get(batch)
        if worker is not None and worker.lease_until_us >= self.now_us() + lease_us - MARGIN_US // 2:
            return worker
        if self._together:
            return self._with_lease(batch, worker, lease_us)
        with self.together():
            return self._with_lease(batch, worker, lease_us)

    def forget(self, worker: Worker) -> None:
        """The next call on its batch gets a worker of its own."""
        self._workers.pop(worker.batch, None)

    def _with_lease(self, batch: str, worker: Worker | None, lease_us: int) -> Worker:
        if worker is not None:
            with suppress(LeaseLost):
                return self._keep(self.store.renew(worker, lease_us=lease_us))
        asked = _CLOCK.steady_us()
        actor = replace(self.actor, steady_us=asked)
        worker = self.store.join(batch, actor=actor, lease_us=lease_us)
        self.store.control(batch, Control(BatchCommand.START), actor=self.actor, worker=worker)
        self._keep(worker)
        self._time = LedgerTime.of(_CLOCK, worker, asked_us=asked)
        return worker

    def _keep(self, worker: Worker) -> Worker:
        self._time = LedgerTime.at(_CLOCK, worker.now_us)
        self._joined[worker.batch] = worker
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
    """The desk for a ledger's address."""
    found = _desks.get(url)
    if found is None:
        with _lock:
            found = _desks.setdefault(url, Desk(url))
    return found
