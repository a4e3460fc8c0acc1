"""Suite, part three: targets, budgets, reservations, tripwires."""

from __future__ import annotations

import pytest

from payonce.core.commands import BatchCommand, Change, Landed, StopBatch
from payonce.core.model import NewItem
from payonce.core.money import Money
from payonce.core.states import BatchState, ItemEvent, ItemState
from payonce.testing.ledger_world import World, new_item


class MoneyCases:
    """What keeps money from being spent twice, or too much of it."""

    # targets

    def test_a_pending_item_holds_its_target(self, world: World) -> None:
        """Two items on one target are never open together; the second may go once the first is decided."""
        worker = world.start([new_item(1, target="ch_1"), new_item(2, target="ch_1"), new_item(3)], targets=True)
        both = world.write(worker, world.intent(1), world.intent(2), world.intent(3))
        assert both == [Landed.LANDED, Landed.TARGET_BUSY, Landed.LANDED]
        assert world.intend(worker, 2) is Landed.TARGET_BUSY
        world.change(worker, 1, ItemEvent.COMMIT)
        assert world.intend(worker, 2) is Landed.LANDED
        world.assert_sound()

    def test_an_unknown_item_holds_its_target(self, world: World) -> None:
        """It may have been executed, so nothing else is sent to the same place until it is resolved."""
        worker = world.start([new_item(1, target="ch_1"), new_item(2, target="ch_1")], targets=True)
        world.bring(worker, 1, ItemState.UNKNOWN)
        assert world.intend(worker, 2) is Landed.TARGET_BUSY
        assert world.operate(1, Change(1, ItemEvent.NOT_EXECUTED, generation=1)) is Landed.LANDED
        assert world.intend(worker, 2) is Landed.LANDED

    def test_a_target_may_be_another_items_id(self, world: World) -> None:
        """An item without a target is its own; exclusivity compares the two exactly."""
        worker = world.start([NewItem("ch_1", None), NewItem("x", None, target="ch_1")], targets=True)
        assert world.write(worker, world.intent(1), world.intent(2)) == [Landed.LANDED, Landed.TARGET_BUSY]
        world.change(worker, 1, ItemEvent.NOT_EXECUTED)
        assert world.write(worker, world.intent(2), world.intent(1)) == [Landed.LANDED, Landed.TARGET_BUSY]

    # budget

    def test_committed_and_reserved_amounts_never_exceed_the_budget(self, world: World) -> None:
        """Over all workers: pending and unknown items count with what they hold, committed ones with what was billed."""
        first = world.start(6, budget={"USD": 3000})
        second = world.join()
        assert world.intend(first, 1) is Landed.LANDED
        assert world.intend(second, 2) is Landed.LANDED
        assert world.intend(first, 3) is Landed.LANDED
        assert world.intend(second, 4) is Landed.OVER_BUDGET
        world.change(first, 1, ItemEvent.UNDECIDED)
        assert world.intend(second, 4) is Landed.OVER_BUDGET
        world.change(second, 2, ItemEvent.COMMIT, billed=Money("9.99", "USD"))
        assert world.intend(second, 4) is Landed.OVER_BUDGET
        world.change(first, 3, ItemEvent.REFUSE)
        assert world.intend(second, 4) is Landed.LANDED
        assert world.intend(second, 5) is Landed.OVER_BUDGET
        assert world.counts() == {"planned": 2, "pending": 1, "committed": 1, "refused": 1, "unknown": 1}
        world.assert_sound()

    def test_a_budget_concerns_its_own_currency(self, world: World) -> None:
        """A currency without a budget is not limited, and another one's is not used up by it."""
        items = [new_item(1), new_item(2, currency="EUR"), new_item(3, minor=5000, currency="JPY")]
        worker = world.start(items, budget={"USD": 1000, "EUR": 999})
        assert world.intend(worker, 1) is Landed.LANDED
        assert world.intend(worker, 2) is Landed.OVER_BUDGET
        assert world.intend(worker, 3) is Landed.LANDED

    def test_a_reserve_is_held_instead_of_the_amount(self, world: World) -> None:
        """A call whose price is known only afterwards holds its reserve, then what was billed."""
        worker = world.start([NewItem(f"call-{n}", None) for n in (1, 2)], budget={"USD": 500})
        reserve = Money("3.00", "USD")
        assert world.intend(worker, 1, reserve=reserve) is Landed.LANDED
        assert world.ledger.status("refunds").minor("USD", ItemState.PENDING) == 300
        assert world.intend(worker, 2, reserve=reserve) is Landed.OVER_BUDGET
        world.change(worker, 1, ItemEvent.COMMIT, billed=Money("1.20", "USD"))
        assert world.ledger.status("refunds").minor("USD", ItemState.COMMITTED) == 120
        assert world.intend(worker, 2, reserve=reserve) is Landed.LANDED
        world.assert_sound()

    def test_a_resend_is_not_refused_for_money_it_holds_already(self, world: World) -> None:
        """A budget that was lowered meanwhile stops new items, not the resolution of one in flight."""
        worker = world.start()
        world.intend(worker, 1)
        world.control(BatchCommand.CONFIGURE, limits={"budget": {"USD": 100}})
        assert world.intend(worker, 1) is Landed.LANDED
        assert world.intend(worker, 2) is Landed.OVER_BUDGET

    # tripwires

    def test_the_batch_stops_at_so_many_refusals(self, world: World) -> None:
        """Refusals since the start are counted over all workers; commits in between do not matter."""
        first = world.start(8, stop_after_refusals=3)
        second = world.join()
        world.bring(first, 1, ItemState.REFUSED)
        world.bring(second, 2, ItemState.REFUSED)
        world.bring(first, 3, ItemState.COMMITTED)
        world.intend(second, 4)
        world.bring(first, 5, ItemState.REFUSED)
        status = world.ledger.status("refunds")
        assert (status.batch.state, status.batch.reason_code) == (BatchState.STOPPED, "stop_after_refusals")
        assert world.intend(second, 6) is Landed.NOT_RUNNING
        assert world.change(second, 4, ItemEvent.COMMIT) is Landed.LANDED
        assert world.types()[-2:] == ["stopped", "commit"]

    def test_refusals_in_a_row_are_counted_apart(self, world: World) -> None:
        """A commit sets them back to zero."""
        worker = world.start(8, stop_after_consecutive=2)
        world.bring(worker, 1, ItemState.REFUSED)
        world.bring(worker, 2, ItemState.COMMITTED)
        world.bring(worker, 3, ItemState.REFUSED)
        assert world.ledger.status("refunds").batch.state is BatchState.RUNNING
        world.bring(worker, 4, ItemState.REFUSED)
        assert world.ledger.status("refunds").batch.reason_code == "stop_after_consecutive"

    @pytest.mark.parametrize("again", [BatchCommand.START, BatchCommand.RESUME])
    def test_going_on_starts_the_count_afresh(self, world: World, again: BatchCommand) -> None:
        """A person has looked at it: what was refused before does not stop the batch again."""
        worker = world.start(8, stop_after_refusals=2)
        world.bring(worker, 1, ItemState.REFUSED)
        world.bring(worker, 2, ItemState.REFUSED)
        world.control(again)
        world.bring(worker, 3, ItemState.REFUSED)
        assert world.ledger.status("refunds").batch.state is BatchState.RUNNING
        world.bring(worker, 4, ItemState.REFUSED)
        assert world.ledger.status("refunds").batch.state is BatchState.STOPPED

    def test_an_operators_refusals_trip_nothing(self, world: World) -> None:
        """They are decisions, not answers."""
        worker = world.start(4, stop_after_refusals=1)
        world.bring(worker, 1, ItemState.UNKNOWN)
        world.operate(1, Change(1, ItemEvent.REFUSE))
        assert world.ledger.status("refunds").batch.state is BatchState.RUNNING

    def test_an_answer_can_stop_the_batch_with_its_own_record(self, world: World) -> None:
        """The stop is in the same transaction, so no intent slips in after it; one that holds waits for an operator."""
        worker = world.start()
        world.intend(worker, 1)
        stop = StopBatch("amount_mismatch", "billed 1.00 USD", hold=True)
        commands = (Change(1, ItemEvent.COMMIT, reference="re_1", stop=stop), world.intent(2))
        assert world.write(worker, *commands) == [Landed.LANDED, Landed.NOT_RUNNING]
        batch = world.ledger.batches("refunds")[0]
        assert (batch.state, batch.reason_code, batch.held) == (BatchState.STOPPED, "amount_mismatch", True)
        assert world.control(BatchCommand.RESUME).held is False
