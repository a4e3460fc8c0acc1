"""Running a batch: join, take in the spool, take over the dead, hand out work until the batch is settled, leave.

States of a run: it joins as a worker with a fence and a lease; a heartbeat renews the lease and takes over dead
workers' items; a watcher looks whether an operator paused, stopped or cancelled the batch; a dispatcher hands planned
and due work to as many calls as may be in flight. Guarantees: after the first reason to stop, no new intent is
written; calls in flight are awaited (for the grace period) and what became of them is recorded; what is left pending
has its intent in the ledger. Killing the process at any instant loses nothing that ``resolve`` cannot find again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from payonce.core.errors import LeaseLost
from payonce.core.model import Actor, Batch, Limits, Status
from payonce.core.payloads import PayloadPolicy
from payonce.core.states import BatchState, ItemState
from payonce.engine.clock import SystemClock
from payonce.engine.ports import Clock, EngineLedger, Progress
from payonce.engine.runner import Runner
from payonce.engine.session import Session
from payonce.engine.spool import Spool
from payonce.engine.stop import End, Ending, StopRequest
from payonce.ledger.outputs import OutputFiles
from payonce.providers.protocol import Provider

_CHUNK: Final = 256
_REJOINS: Final = 1000


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended. ``exit_code`` as in SPEC section 9; ``lost`` are answers that neither ledger nor spool took."""

    exit_code: int
    state: BatchState
    code: str | None
    reason: str | None
    status: Status | None
    spooled: int = 0
    lost: tuple[str, ...] = ()


async def run_batch(
    ledger: EngineLedger,
    provider: Provider,
    *,
    batch: Batch,
    limits: Limits,
    actor: Actor,
    spool: Spool,
    ledger_id: str,
    stop: StopRequest,
    progress: Progress | None = None,
    clock: Clock | None = None,
    payloads: PayloadPolicy | None = None,
    outputs: OutputFiles | None = None,
    read_targets: bool = True,
) -> RunOutcome:
    """Runs or resumes a sealed batch until it is settled or has to stop; the only way calls are ever made.

    ``read_targets``: each item's target is read before its first call, where the adapter offers that.
    Raises LedgerError only where the ledger fails before the first call; later faults end in exit code 3. A crash at
    any point leaves each item in exactly one state; the same call goes on.
    """
    for _ in range(_REJOINS):
        runner = Runner(
            ledger,
            provider,
            batch=batch,
            limits=limits,
            actor=actor,
            stop=stop,
            progress=progress,
            clock=clock or SystemClock(),
            payloads=payloads,
            outputs=outputs,
            read_targets=read_targets,
        )
        try:
            status = await runner.run(spool, ledger_id)
        finally:
            spool.close()
        if not stop.forget_lost_lease():
            return outcome_of(stop.end, status, runner.session)
    raise LeaseLost("the lease was lost again and again", code="lease_lost", hint="raise [limits] lease")


_EXITS: Final = {
    Ending.INTERRUPTED: 75,
    Ending.STOPPED: 4,
    Ending.HALTED: 3,
    Ending.HELD: 1,
}
_SAID: Final = (Ending.HALTED, Ending.INTERRUPTED)


def outcome_of(end: End | None, status: Status | None, session: Session) -> RunOutcome:
    left = 1 if status is None else status.count(ItemState.REFUSED) + status.count(ItemState.UNKNOWN)
    open_items = 0 if status is None else sum(status.count(s) for s in ItemState if s.is_open)
    if end is not None and end.ending is Ending.INTERRUPTED and status is not None and not open_items:
        end = None  # the signal came when everything was done
    settled = 75 if open_items else 1 if left else 0  # what is open after a cancel, the same command decides
    exit_code = settled if end is None else _EXITS.get(end.ending, settled)
    state = BatchState.HALTED if status is None else status.batch.state
    if state is BatchState.RUNNING and end is not None and end.ending in _SAID and not session.worker.others:
        state = BatchState.HALTED  # the ledger took no word of it
    return RunOutcome(
        exit_code,
        state,
        code=end.code if end else None,
        reason=end.message if end else None,
        status=None if status is None else replace(status, trouble=session.trouble),
        spooled=session.spool.written,
        lost=tuple(session.spool_lost),
    )
