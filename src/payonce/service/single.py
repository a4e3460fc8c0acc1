"""One guarded call inside someone else's job: a Celery task, an Airflow task, an agent's tool.

The item is added to an open batch, its intent is durable before the body runs, and what the body reports is durable
before the block is left. A crash inside the body leaves a pending item; entering again resolves it by the same rules as
any run (look-up, then the same key inside its window, else it is unknown and an error says so). The body is never
entered again for an item that was executed.

This file waits and keeps threads, tasks and signals apart; what is asked of the ledger is in single_entry.py.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final

from payonce.core.errors import PayonceError
from payonce.core.model import SECOND_US, OpenIntent
from payonce.core.outcome import LookupFailed
from payonce.providers.python_operation import Call
from payonce.service.single_call import Guarded, LookUpDue, OnceCall
from payonce.service.single_desk import Desk, ItemBusy, desk_of
from payonce.service.single_entry import Entry

_LONGEST_WAIT_US: Final = 120 * SECOND_US
# So long a task waits for another of this process to leave, which takes a moment after a cancel; then it is told.
_LEAVING_S: Final = 1.0
_LOOK_S: Final = 0.02


class Once:
    """Guards one call; see the module's text. Both ``with`` and ``async with``.

    Raises ItemUnknown, ItemBusy, ItemRefused (nothing is sent), LedgerError (nothing is sent, or what was done is
    pending). An exception that a signal's handler raises on the way in or out leaves the item as a crash would, or
    better: what the body reported is recorded, a body that was not entered is taken back.
    """

    __slots__ = ("_entry", "_guarded", "ledger")

    def __init__(self, ledger: str, guarded: Guarded) -> None:
        self.ledger = ledger
        self._guarded = guarded
        self._entry: Entry | None = None

    # entering

    def __enter__(self) -> OnceCall:
        desk, entry = desk_of(self.ledger), Entry(self._guarded)
        if self._is_here(desk):
            self._wait_for_leaving(desk)
        try:
            found = desk.call(entry.open)
            while not isinstance(found, OnceCall):
                time.sleep(self._wait(found))
                desk.call(functools.partial(entry.looked_up, intent=found.intent, reply=self._ask(found.intent)))
                found = desk.call(entry.open)
            return self._entered(entry, found)
        except PayonceError:
            raise
        except BaseException:
            # In the desk's own thread, where no signal's handler breaks it off.
            desk.submit(entry.withdraw).result()
            raise

    async def __aenter__(self) -> OnceCall:
        desk, entry = desk_of(self.ledger), Entry(self._guarded)
        until_s = time.monotonic() + _LEAVING_S
        while self._is_here(desk) and time.monotonic() < until_s:  # noqa: ASYNC110 - it leaves in another thread
            await asyncio.sleep(_LOOK_S)
        found = await self._opened(desk, entry)
        while not isinstance(found, OnceCall):
            await asyncio.sleep(self._wait(found))
            answer = self._ask(found.intent)
            reply = await answer if inspect.isawaitable(answer) else answer
            await desk.call_async(functools.partial(entry.looked_up, intent=found.intent, reply=reply))
            found = await self._opened(desk, entry)
        return self._entered(entry, found)

    def _is_here(self, desk: Desk) -> bool:
        """Whether a task of this process has the item. One that was cancelled may be on its way out: its record takes
        a moment."""
        return self._guarded.name in desk.active

    def _wait_for_leaving(self, desk: Desk) -> None:
        until_s = time.monotonic() + _LEAVING_S
        while self._is_here(desk) and time.monotonic() < until_s:
            time.sleep(_LOOK_S)

    async def _opened(self, desk: Desk, entry: Entry) -> OnceCall | LookUpDue:
        """The next step; a task that is cancelled meanwhile gives back what was granted to it."""
        opening = desk.submit(entry.open)
        try:
            return await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(functools.partial(_give_back, desk, entry))
            raise

    def _entered(self, entry: Entry, call: OnceCall) -> OnceCall:
        self._entry = entry
        entry.entered()
        return call

    def _wait(self, due: LookUpDue) -> float:
        """Seconds until the look-up proves something. Raises ItemBusy where that is too long to wait for here."""
        wait_us = max(0, due.at_us - due.now_us)
        if wait_us > _LONGEST_WAIT_US:
            raise ItemBusy(
                f"item {self._guarded.item} may still be executing; ask again in {wait_us // SECOND_US} s",
                code="item_busy",
                hint="enter again later",
            )
        return wait_us / SECOND_US

    def _ask(self, intent: OpenIntent) -> Any:
        lookup = self._guarded.settings.lookup
        assert lookup is not None, "a look-up is due only where one is declared"
        try:
            return lookup(Call(intent.item, intent.key, self._guarded.batch, attempt=intent.item.attempts))
        except Exception as fault:
            return LookupFailed(f"exception:{type(fault).__name__}", str(fault)[:300])

    # leaving

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        entry = self._entry
        if entry is None:
            return
        try:
            if entry.has_to_record:
                desk_of(self.ledger).call(functools.partial(entry.record, fault=fault))
        except PayonceError:
            raise
        except BaseException:
            # A signal's handler broke it off: once more, in a thread where none does.
            if entry.has_to_record:
                desk_of(self.ledger).submit(functools.partial(entry.record, fault=fault)).result()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        entry = self._entry
        if entry is not None and entry.has_to_record:
            await asyncio.shield(desk_of(self.ledger).call_async(functools.partial(entry.record, fault=fault)))


def _give_back(desk: Desk, entry: Entry, opening: Future[OnceCall | LookUpDue]) -> None:
    if not opening.cancelled():
        desk.submit(entry.withdraw)
