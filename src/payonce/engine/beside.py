"""What goes on beside the calls: the lease is renewed, the dead are taken over, the batch is watched, progress is told.

None of it makes a call or changes an item, except that taken-over items are written as this worker's.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import LeaseLost, LedgerError, UsageError
from payonce.core.model import SECOND_US
from payonce.core.states import BatchState
from payonce.engine.crashpoints import hit
from payonce.engine.ports import Progress
from payonce.engine.session import Session
from payonce.engine.stop import Ending
from payonce.engine.takein import take_in_spool

_TAKE_OVER: Final = 1000
_WATCH_S: Final = 0.25
_PROGRESS_S: Final = 0.5
_LONGEST_BEAT_S: Final = 2.0
# No state for a batch that a living worker is on, and none that a person wants.
_WAITS_FOR_A_START: Final = frozenset({BatchState.SEALED, BatchState.INTERRUPTED, BatchState.HALTED})


@dataclass(slots=True)
class Beside:
    """The helpers of one session. ``wake`` is set when there is new work; ``paused`` follows the operator."""

    session: Session
    wake: asyncio.Event
    progress: Progress | None
    paused: bool = False

    async def heartbeat(self) -> None:
        """Renews the lease four times in its length, shares what 429s taught, takes over the dead."""
        session = self.session
        period_s = min(session.lease_us / 4 / SECOND_US, _LONGEST_BEAT_S)
        while True:
            await asyncio.sleep(period_s)
            asked = session.clock.steady_us()
            try:
                worker = await session.ledger.renew(session.worker, lease_us=session.lease_us)
                session.renewed(worker, asked_steady_us=asked)
                await session.pacer.publish()
                if not session.stop.is_set:
                    await self.take_over(everything=False)
            except LeaseLost as lost:
                session.stop.request(Ending.LEASE_LOST, code=lost.code, message=lost.message)
                return
            except LedgerError as fault:
                session.halt(fault)
                return

    async def take_over(self, *, everything: bool) -> None:
        """Dead workers' pending items become this one's, to be resolved at once."""
        session = self.session
        while True:
            intents = await session.ledger.take_over(session.worker, limit=_TAKE_OVER)
            if intents:
                hit("after_take_over")
                if not everything:  # what their worker could not write may lie in the spool, and decides first
                    await take_in_spool(session, session.spool)
            for intent in intents:
                session.schedule.resolve_at(intent.item.n, intent.item.target, intent.retry_at_us)
            if intents:
                self.wake.set()
            if not everything or len(intents) < _TAKE_OVER:
                return

    async def watch(self) -> None:
        """Looks whether an operator or another worker changed the batch's state."""
        session = self.session
        while True:
            await asyncio.sleep(_WATCH_S)
            try:
                (batch,) = await session.ledger.batches(session.batch.spec.id)
            except LedgerError as fault:
                session.halt(fault)
                return
            self.paused = batch.state is BatchState.PAUSED
            if batch.state in _WAITS_FOR_A_START:
                await self._start()
            elif batch.state is BatchState.STOPPED:
                session.stop.request(Ending.STOPPED, code=batch.reason_code or "stopped", message=batch.reason or "")
            elif batch.state is BatchState.CANCELLED and not session.resolve_only:
                session.stop.request(Ending.CANCELLED, code="cancelled", message=batch.reason or "")

    async def _start(self) -> None:
        """A batch that a living worker is on runs. It may say otherwise where the worker joined beside one that was dead
        already but still had its lease, or where items came back to a batch that had just finished."""
        control = Control(BatchCommand.START)
        with contextlib.suppress(UsageError, LedgerError):  # someone else was quicker; a fault meets the next write too
            await self.session.ledger.control(
                self.session.batch.spec.id, control, actor=self.session.actor, worker=self.session.worker
            )

    async def report(self) -> None:
        """Tells the progress now and then."""
        while self.progress is not None:
            try:
                status = await self.session.ledger.status(self.session.batch.spec.id)
                self.progress(replace(status, trouble=self.session.trouble))
            except LedgerError:
                return
            await asyncio.sleep(_PROGRESS_S)
