"""What moves a batch as a whole: which command is possible in which state, and what it does. Pure over the desk.

Pausing, stopping and cancelling are never undone by a worker: a paused batch is resumed by an operator, a stop that
holds is too, and a cancelled or finished batch is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from payonce.core.commands import BatchCommand, Control, StopBatch
from payonce.core.errors import UsageError
from payonce.core.events import plain
from payonce.core.states import RUNNABLE, BatchState, ItemState
from payonce.ledger import effects, findings
from payonce.ledger.desk import Desk
from payonce.ledger.rows import dump, load

_B, _C = BatchState, BatchCommand
_ANY: Final = frozenset(BatchState)
_ALIVE: Final = _ANY - {_B.CANCELLED, _B.FINISHED}

# The states that a command may be given in; anywhere else it is a UsageError.
ALLOWED: Final[dict[BatchCommand, frozenset[BatchState]]] = {
    # The same command that started it goes on with it, whatever ended the last run, unless an operator has to agree.
    _C.START: RUNNABLE,
    _C.PAUSE: _ALIVE,
    _C.RESUME: frozenset({_B.PAUSED, _B.STOPPED}),
    # Once more sweeps up what came back to planned after the first time.
    _C.CANCEL: _ANY - {_B.FINISHED},
    # An answer that stops the batch may come in after it was paused, cancelled or finished: it is still recorded.
    _C.STOP: _ANY,
    _C.INTERRUPT: _ANY,
    _C.HALT: _ANY,
    # Finishing is asked for by every process that finds nothing left; only the first one changes something.
    _C.FINISH: _ANY,
    _C.CONFIGURE: _ANY,
    _C.SLOW: _ANY,
    _C.NOTE: _ANY,
}


def steer(desk: Desk, control: Control, *, stamp: Mapping[str, Any], others: bool) -> None:
    """Applies a control to its batch, with its event. ``others``: another live worker is on the batch.

    Raises UsageError ``bad_batch_state`` or ``batch_held`` where the batch does not allow it; nothing is changed then.
    Planned items of a cancelled batch are skipped by the caller, in the same transaction.
    """
    batch, command = desk.batch, control.command
    again = batch.state is _B.CANCELLED
    _refuse_unless_allowed(desk, control)
    match command:
        case _C.START | _C.RESUME:
            _go(desk, command, others=others)
        case _C.PAUSE | _C.CANCEL:
            batch.state = _B.PAUSED if command is _C.PAUSE else _B.CANCELLED
            batch.reason, batch.reason_code = control.reason, control.code or command.value
            if command is _C.CANCEL and not again:
                batch.ended_us = desk.log.now_us
        case _C.STOP:
            effects.stop(desk, StopBatch(control.code or "stopped", control.reason or "", control.hold), stamp)
            return
        case _C.INTERRUPT | _C.HALT:
            if batch.state is _B.RUNNING and not others:
                batch.state = _B.INTERRUPTED if command is _C.INTERRUPT else _B.HALTED
                batch.reason, batch.reason_code = control.reason, control.code
                batch.ended_us = desk.log.now_us
        case _C.FINISH:
            if not _finish(desk):
                return
        case _C.CONFIGURE:
            limits = dump(dict(control.limits or {}))
            if limits == batch.limits:
                return
            batch.limits = limits
        case _C.SLOW:
            batch.slow_until_us = max(batch.slow_until_us, control.slow_until_us)
            if control.pace_per_ks is not None:
                batch.pace_per_ks = control.pace_per_ks or None
        case _C.NOTE:
            for finding in control.findings:
                findings.find_of_batch(desk, finding, stamp)
    if command is not _C.NOTE:
        batch.control += 1
    _emit(desk, control, stamp)


def _refuse_unless_allowed(desk: Desk, control: Control) -> None:
    batch = desk.batch
    # One that was finished while it was held, and has an item planned again, is held still: a person can let it go on.
    released = control.command is _C.RESUME and batch.hold and batch.state in RUNNABLE
    if batch.state not in ALLOWED[control.command] and not released:
        raise UsageError(
            f"batch {batch.id} is {batch.state}, so it cannot be {control.command.value}",
            code="bad_batch_state",
            hint=_HINTS.get(batch.state, "see `payonce status`"),
        )
    if control.command is _C.START and batch.hold:
        raise UsageError(
            f"batch {batch.id} was stopped and waits for an operator: {batch.reason}",
            code="batch_held",
            hint="look into the reason, then `payonce resume` it",
        )


_HINTS: Final[dict[BatchState, str]] = {
    _B.PAUSED: "`payonce resume` it first",
    _B.CANCELLED: "a cancelled batch is over; plan a new one for what is left",
    _B.FINISHED: "a finished batch is over; `payonce retry` puts refused items back",
    _B.SEALED: "`payonce run` starts it",
    _B.INTERRUPTED: "`payonce run` goes on with it",
    _B.HALTED: "`payonce run` goes on with it",
    _B.RUNNING: "it is running",
}


def _go(desk: Desk, command: BatchCommand, *, others: bool) -> None:
    """Running again, with fresh tripwires. A resumed batch that no process works on waits for the next run."""
    batch = desk.batch
    if command is _C.START or others:
        batch.state = _B.RUNNING
    else:
        batch.state = _B.SEALED if batch.started_us is None else _B.INTERRUPTED
    if command is _C.START and batch.started_us is None:
        batch.started_us = desk.log.now_us
    batch.hold, batch.refusals, batch.consecutive = False, 0, 0
    batch.reason = batch.reason_code = batch.ended_us = None


def _finish(desk: Desk) -> bool:
    """Whether the batch is over now: nothing planned or pending is left and nobody has said so before."""
    batch = desk.batch
    if batch.state is _B.FINISHED or desk.count(ItemState.PLANNED, ItemState.PENDING):
        return False
    if batch.state is _B.CANCELLED:
        return False
    batch.state = _B.FINISHED
    batch.ended_us = desk.log.now_us
    batch.reason = batch.reason_code = None
    return True


# What these come to depends on who else works on the batch, so their events say it.
_DEPENDS: Final = (_C.RESUME, _C.INTERRUPT, _C.HALT)


def _emit(desk: Desk, control: Control, stamp: Mapping[str, Any]) -> None:
    body: dict[str, Any] = {"type": control.command.value, "batch": desk.batch.id, **stamp}
    if control.code is not None:
        body["code"] = control.code
    if control.reason:
        body["reason"] = control.reason
    if control.command is _C.CONFIGURE:
        body["limits"] = plain(load(desk.batch.limits))
    if control.command is _C.SLOW:
        body["slow_until_us"] = control.slow_until_us
        if control.pace_per_ks is not None:
            body["pace_per_ks"] = control.pace_per_ks
    if control.command in _DEPENDS:
        body["state"] = desk.batch.state.value
    if control.data:
        body["data"] = plain(control.data)
    desk.log.emit(body, batch=desk.batch.number)
