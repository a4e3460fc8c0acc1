"""An item of several calls, of which some were executed: an operator's word never hides them and never repeats one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from payonce.core.commands import BatchCommand, Change
from payonce.core.errors import UsageError
from payonce.core.model import Actor
from payonce.core.states import ItemEvent, ItemState
from payonce.ledger.memory import MemoryLedger
from payonce.ledger.protocol import Ledger
from payonce.service.operating import Decision, Operator
from payonce.service.reconciling_findings import findings
from payonce.testing.ledger_world import BATCH, OPERATOR, World

DONE = {"step_0": "tr_1"}


class Factory:
    """A ledger in memory."""

    def open(self, *, clock: Callable[[], int], is_alive: Callable[[Actor], bool | None]) -> Ledger:
        return MemoryLedger(clock=clock, is_alive=is_alive)


@pytest.fixture
def world() -> World:
    """One item whose first call of two was executed, and of whose second nobody knows."""
    world = World(Factory())
    worker = world.start(1)
    world.intend(worker, 1)
    world.change(worker, 1, ItemEvent.STEP_DONE, carry=DONE)
    world.intend(worker, 1)
    world.change(worker, 1, ItemEvent.UNDECIDED, code="no_answer")
    world.ledger.leave(worker)
    return world


def resolve(world: World, state: ItemState) -> None:
    Operator(world.ledger, OPERATOR).resolve(BATCH, "item-1", Decision(state, "looked"))


def test_a_cancelled_batch_does_not_plan_it_again(world: World) -> None:
    """It would never be sent, and would look as if nothing had happened: refused with what to do, and it stays unknown."""
    world.control(BatchCommand.CANCEL, reason="wrong file")
    with pytest.raises(UsageError, match="1 call of it was executed, and a cancelled batch sends nothing") as refused:
        resolve(world, ItemState.PLANNED)
    assert refused.value.code == "half_done"
    assert (world.item(1).state, world.item(1).code) == (ItemState.UNKNOWN, "no_answer")


def test_a_running_batch_goes_on_with_the_call_in_doubt(world: World) -> None:
    """The executed one is not made again."""
    resolve(world, ItemState.PLANNED)
    assert (world.item(1).state, world.item(1).step, world.item(1).generation) == (ItemState.PLANNED, 1, 1)


def test_a_call_that_an_answer_has_shown_is_not_made_again(world: World) -> None:
    """A late answer shows the call in doubt: no person can plan it again by mistake."""
    late = Change(1, ItemEvent.LOOKUP, carry={"step_1": "fund_1"})
    world.operate(1, late)
    with pytest.raises(UsageError, match="its call 2 was executed as fund_1"):
        resolve(world, ItemState.PLANNED)


def test_refused_by_a_person_is_a_finding(world: World) -> None:
    """The state says what the person said, and the executed call is still listed."""
    resolve(world, ItemState.REFUSED)
    assert world.item(1).state is ItemState.REFUSED
    (found,) = findings(world.ledger, BATCH)
    assert (found["class"], found["item"], found["state"]) == ("half_done", "item-1", "open")
