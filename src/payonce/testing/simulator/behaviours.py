"""What a simulated provider does with a call besides answering it: one function for each fault that a scenario names.

Each decides what truly happens and what the caller hears of it, and when.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from payonce.core.model import SECOND_US
from payonce.core.outcome import NotExecuted, Reply, Unresolved
from payonce.testing.simulator.books import Call
from payonce.testing.simulator.scenario import FAULTS

if TYPE_CHECKING:
    from payonce.testing.simulator.farside import FarSide

_NEVER_US: Final = 10**12


def _silence(far: FarSide, call: Call) -> None:
    far.reply(call, Reply(Unresolved("timeout")), after_us=_NEVER_US)


def _reset(far: FarSide, call: Call) -> None:
    far.reply(call, Reply(Unresolved("reset", "the connection broke")))


def lost_request(far: FarSide, call: Call) -> None:
    """It never arrives."""
    _silence(far, call)


def lost_answer(far: FarSide, call: Call) -> None:
    """Done, and nobody hears of it."""
    far.serve(call)
    _silence(far, call)


def reset_before(far: FarSide, call: Call) -> None:
    """The connection breaks before the request is there."""
    _reset(far, call)


def reset_after(far: FarSide, call: Call) -> None:
    """The connection breaks before the answer is there."""
    far.serve(call)
    _reset(far, call)


def late(far: FarSide, call: Call) -> None:
    """The connection breaks, and the request arrives later all the same."""
    far.work(call, _arrives_late)
    _reset(far, call)


def _arrives_late(far: FarSide, call: Call) -> None:
    far.serve(call)


def slow(far: FarSide, call: Call) -> None:
    """It takes long; a repeat meanwhile is told so."""
    known = far.known(call)
    if known is not None:
        far.reply(call, far.repeat(call, known))
        return
    refusal = far.refusal(call)
    if refusal is not None:
        far.reply(call, Reply(refusal))
        return
    far.remember(call, None)
    if far.work(call, _ends_slowly) >= call.deadline_us:
        _silence(far, call)


def _ends_slowly(far: FarSide, call: Call) -> None:
    truth = far.execute(call)
    far.remember(call, truth)
    if far.timeline.now_us < call.deadline_us:
        far.reply(call, Reply(truth, status=200), after_us=0)


def error_500_before(far: FarSide, call: Call) -> None:
    """An error of its own before it did anything."""
    far.reply(call, far.serve(call, fault=Unresolved("status_500", "error"), executes=False))


def error_500_after(far: FarSide, call: Call) -> None:
    """An error of its own after it had done it."""
    far.reply(call, far.serve(call, fault=Unresolved("status_500", "error")))


def garbage(far: FarSide, call: Call) -> None:
    """Done, and the answer is no answer."""
    far.serve(call)
    far.reply(call, Reply(Unresolved("unreadable", "no JSON")))


def rate_limited(far: FarSide, call: Call) -> None:
    """429, with or without a time to wait."""
    wait = far.rng.choice((None, None, SECOND_US))
    far.reply(call, Reply(NotExecuted("rate_limited", "429", load=True, retry_after_us=wait), status=429))


def refused_connection(far: FarSide, call: Call) -> None:
    """Nobody answers the door."""
    far.reply(call, Reply(NotExecuted("connect_refused", "", load=True), sent=False))


def busy(far: FarSide, call: Call) -> None:
    """A definite "not now"."""
    far.reply(call, Reply(NotExecuted("busy", "not now")))


def contradiction(far: FarSide, call: Call) -> None:
    """Done or not, and an answer that says both."""
    if far.rng.random() < 0.5:
        far.serve(call)
    far.reply(call, Reply(Unresolved("contradiction", "yes and no", final=True)))


Behaviour = Callable[["FarSide", Call], None]
BEHAVIOURS: Final[dict[str, Behaviour]] = {
    behaviour.__name__: behaviour
    for behaviour in (
        lost_request,
        lost_answer,
        reset_before,
        reset_after,
        late,
        slow,
        error_500_before,
        error_500_after,
        garbage,
        rate_limited,
        refused_connection,
        busy,
        contradiction,
    )
}
assert tuple(BEHAVIOURS) == FAULTS, "every fault that a scenario may name is one of these"
