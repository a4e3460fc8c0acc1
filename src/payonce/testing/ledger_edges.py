"""Suite, part one: the transition table. Every edge lands and leaves one event; every other pair changes nothing."""

from __future__ import annotations

import pytest

from payonce.core.commands import BatchCommand, Change, Landed
from payonce.core.money import Money
from payonce.core.states import TRANSITIONS, ItemEvent, ItemState, Settlement
from payonce.testing.ledger_world import BATCH, World, fitting, intent

_INTENTS = (ItemEvent.INTENT, ItemEvent.RESEND)
_PAIRS = [(state, event) for state in ItemState for event in ItemEvent]
# Only an operator puts an item back; taking over is a verb of its own.
_NOT_A_WORKERS = (ItemEvent.RETRY, ItemEvent.TAKEOVER)


class EdgeCases:
    """The transition table, by a worker and by an operator."""

    @pytest.mark.parametrize("state, event", _PAIRS, ids=lambda v: v.value)
    def test_a_worker_moves_items_along_the_table_only(self, world: World, state: ItemState, event: ItemEvent) -> None:
        """A worker's command lands exactly where the table has an edge that workers may use."""
        worker = world.start()
        world.bring(worker, 1, state)
        before, events = world.item(1), world.types()
        if event in _INTENTS:
            landed = world.write(worker, intent(1, event, now_us=world.now_us))[0]
        else:
            landed = world.change(worker, 1, event)
        after = TRANSITIONS.get((state, event))
        if after is None or event in _NOT_A_WORKERS or event is ItemEvent.PAY_AGAIN:  # needs a policy: CallCases
            assert landed is Landed.STALE
            assert world.item(1) == before
            assert world.types() == events
        else:
            assert landed is Landed.LANDED
            assert world.item(1).state is after
            assert world.types() == [*events, event.value]
        world.assert_sound()

    @pytest.mark.parametrize("state, event", _PAIRS, ids=lambda v: v.value)
    def test_an_operator_moves_items_along_the_table_only(
        self, world: World, state: ItemState, event: ItemEvent
    ) -> None:
        """An operator's change lands exactly where the table has the edge, once no live worker is on the item."""
        worker = world.start()
        world.bring(worker, 1, state)
        world.ledger.leave(worker)
        before, events = world.item(1), world.types()
        if event in _INTENTS:
            command = intent(1, event, now_us=world.now_us)
            landed = world.operate(1, command)
        else:
            landed = world.operate(1, Change(1, event, **fitting(event)))
        after = TRANSITIONS.get((state, event))
        workers_own = (ItemEvent.TAKEOVER, ItemEvent.PAY_AGAIN)
        if after is None or event in workers_own or (state, event) == (ItemState.PENDING, ItemEvent.RESEND):
            # An operator does not send: a resend needs a worker, paying again a policy.
            assert landed is Landed.STALE
            assert world.item(1) == before
            assert world.types() == events
        else:
            assert landed is Landed.LANDED
            assert world.item(1).state is after
            assert world.types() == [*events, event.value]
        world.assert_sound()

    def test_a_commit_keeps_reference_billed_amount_and_settlement(self, world: World) -> None:
        """What the provider confirmed is on the item and in the event, to the minor unit."""
        worker = world.start()
        world.intend(worker, 1)
        billed = Money("9.99", "USD")
        landed = world.change(
            worker, 1, ItemEvent.COMMIT, reference="re_9", billed=billed, settlement=Settlement.PENDING
        )
        item, body = world.item(1), world.bodies(item="item-1")[-1]
        assert landed is Landed.LANDED
        assert (item.reference, item.billed, item.settlement) == ("re_9", billed, Settlement.PENDING)
        assert (body["amount"], body["billed"], body["currency"]) == ("10.00", "9.99", "USD")
        assert (body["reference"], body["settlement"]) == ("re_9", "pending")

    def test_a_commit_without_a_billed_amount_takes_the_asked_one(self, world: World) -> None:
        """An answer that does not say what was billed leaves the amount asked standing."""
        worker = world.start()
        world.bring(worker, 1, ItemState.COMMITTED)
        assert world.item(1).billed == world.item(1).money

    def test_retry_takes_a_new_generation_and_fresh_attempts(self, world: World) -> None:
        """An item whose key was used is only ever sent again under another key, and may use all attempts again."""
        worker = world.start()
        world.intend(worker, 1)
        world.change(worker, 1, ItemEvent.REFUSE, spent=3, code="declined")
        assert world.operate(1, Change(1, ItemEvent.RETRY)) is Landed.LANDED
        item = world.item(1)
        assert (item.generation, item.spent, item.attempts) == (1, 0, 1)
        assert world.bodies(item="item-1")[-1]["new_generation"] == 1
        assert world.bodies(item="item-1")[-1]["reason"] == "checked by hand"

    def test_retry_of_an_item_that_was_never_sent_keeps_its_key(self, world: World) -> None:
        """Without a call there is no key to get away from."""
        worker = world.start()
        world.bring(worker, 1, ItemState.SKIPPED)
        world.operate(1, Change(1, ItemEvent.RETRY))
        assert world.item(1).generation == 0

    def test_steps_keep_the_item_pending_and_start_a_new_window(self, world: World) -> None:
        """Between two steps there is no key and no request; the next step has its own, and its own window."""
        worker = world.start()
        world.intend(worker, 1)
        world.change(worker, 1, ItemEvent.STEP_DONE, carry={"transfer": "tr_1"})
        between = world.open_intent(1)
        assert (between.intent, between.key, between.request) == (False, None, None)
        assert (between.item.step, between.item.carry) == (1, {"transfer": "tr_1"})
        world.pass_time(7)
        assert world.intend(worker, 1) is Landed.LANDED
        second = world.open_intent(1)
        assert (second.intent, second.key, second.first_sent_us) == (True, "key-1-0-1", world.now_us)
        assert second.request is not None and second.request.path == "/refunds/1"
        world.assert_sound()

    def test_a_cancelled_item_that_is_half_done_is_unknown(self, world: World) -> None:
        """One call of several was executed: that is neither skipped nor refused. It holds its money, a person is told once,
        and what the person says is kept without hiding it."""
        worker = world.start(2)
        for n in (1, 2):
            world.intend(worker, n)
            world.change(worker, n, ItemEvent.STEP_DONE, carry={"transfer": f"tr_{n}"})
            world.intend(worker, n)
        world.change(worker, 1, ItemEvent.NOT_EXECUTED, code="rate_limited")
        world.control(BatchCommand.CANCEL, reason="wrong file")
        world.change(worker, 2, ItemEvent.NOT_EXECUTED, code="rate_limited")
        self._assert_half_done(world, 1, 2)
        assert world.counts() == {"unknown": 2}
        item = world.item(1)
        assert (item.code, item.step) == ("half_done", 1)
        assert item.message == "cancelled: the batch was cancelled; 1 of its calls had been executed"
        assert world.ledger.status(BATCH).minor("USD", ItemState.UNKNOWN) == 2000
        assert world.operate(1, Change(1, ItemEvent.NOT_EXECUTED, generation=1)) is Landed.LANDED
        assert world.item(1).state is ItemState.UNKNOWN
        assert world.operate(2, Change(2, ItemEvent.REFUSE, code="operator")) is Landed.LANDED
        assert world.item(2).state is ItemState.REFUSED
        self._assert_half_done(world, 1, 2)
        world.assert_sound()

    def test_a_half_done_item_is_never_refused_by_a_worker(self, world: World) -> None:
        """Its next call cannot be built, or was refused: earlier ones were executed, so a person decides."""
        worker = world.start(2)
        for n in (1, 2):
            world.intend(worker, n)
            world.change(worker, n, ItemEvent.STEP_DONE, carry={"transfer": f"tr_{n}"})
            world.intend(worker, n)
        world.change(worker, 1, ItemEvent.NOT_EXECUTED, code="rate_limited")
        for n in (1, 2):
            assert world.change(worker, n, ItemEvent.REFUSE, code="declined") is Landed.LANDED
        assert world.counts() == {"unknown": 2}
        self._assert_half_done(world, 1, 2)
        world.assert_sound()

    def _assert_half_done(self, world: World, *ns: int) -> None:
        found = [(f.kind, f.item, f.data) for f in world.ledger.findings(BATCH)]
        assert found == [("half_done", f"item-{n}", {"steps": 1, "carry": {"transfer": f"tr_{n}"}}) for n in ns]

    def test_a_cancelled_batch_takes_nothing_back(self, world: World) -> None:
        """An item that comes back to planned after the cancellation is skipped at once."""
        worker = world.start()
        world.intend(worker, 1)
        world.control(BatchCommand.CANCEL, reason="wrong file")
        assert world.change(worker, 1, ItemEvent.NOT_EXECUTED, code="rate_limited") is Landed.LANDED
        assert world.item(1).state is ItemState.SKIPPED
        assert world.types(item="item-1") == ["intent", "not_executed", "skip"]
        assert world.operate(1, Change(1, ItemEvent.RETRY)) is Landed.NOT_RUNNING
        world.assert_sound()
