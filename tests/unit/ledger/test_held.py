"""A batch that was stopped for a person, whatever became of it since, goes on by a person's word."""

from __future__ import annotations

import pytest

from payonce.core.commands import BatchCommand, Change, Control, Intend, Landed, StopBatch
from payonce.core.errors import UsageError
from payonce.core.model import SECOND_US, Actor, BatchSpec, NewItem, Request
from payonce.core.states import BatchState, ItemEvent
from payonce.ledger.memory import MemoryLedger
from payonce.service.operating import Operator

ACTOR = Actor(user="test")


def test_one_that_was_finished_while_it_was_held_can_be_resumed() -> None:
    """Its last item was another worker's and settled it; then a person has the item in doubt planned again. It is still held,
    so that no run starts it, and the person can let it go on, with a reason."""
    store = MemoryLedger()
    store.seal(BatchSpec("b", "refund", "test"), [NewItem("r1", None)], seal="s", actor=ACTOR)
    worker = store.join("b", actor=ACTOR, lease_us=30 * SECOND_US)
    store.control("b", Control(BatchCommand.START), actor=ACTOR, worker=worker)
    by = worker.now_us + 2 * SECOND_US
    intent = Intend(1, ItemEvent.INTENT, 0, 0, "key", Request("POST", "/"), by, by)
    stop = StopBatch("amount_mismatch", "another amount", hold=True)
    doubt = Change(1, ItemEvent.UNDECIDED, code="wrong_amount", stop=stop)
    assert store.write(worker, [intent, doubt]) == (Landed.LANDED, Landed.LANDED)
    assert store.control("b", Control(BatchCommand.FINISH), actor=ACTOR, worker=worker).state is BatchState.FINISHED
    store.leave(worker)
    planned = Change(1, ItemEvent.NOT_EXECUTED, generation=1)
    assert store.operate("b", "r1", [planned], actor=ACTOR, reason="looked") is Landed.LANDED
    with pytest.raises(UsageError, match="waits for an operator"):
        store.control("b", Control(BatchCommand.START), actor=ACTOR)
    with pytest.raises(UsageError) as refused:
        Operator(store, ACTOR).resume("b", reason=None)
    assert refused.value.code == "no_reason"
    assert not Operator(store, ACTOR).resume("b", reason="it was another item's").held
    assert store.control("b", Control(BatchCommand.START), actor=ACTOR).state is BatchState.RUNNING
