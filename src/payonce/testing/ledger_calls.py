"""Suite, part eight: calls whose price is known only afterwards, and paying again for what nobody can decide."""

from __future__ import annotations

from typing import Any

import pytest

from payonce.core.commands import BatchCommand, Change, Landed
from payonce.core.model import NewItem, Worker
from payonce.core.money import Money
from payonce.core.states import BatchState, ItemEvent, ItemState
from payonce.testing.ledger_world import World

_RESERVE = Money("1.00", "USDC")


def _calls(world: World, count: int = 4, *, operation: str = "call", **limits: Any) -> Worker:
    items = [NewItem(f"call-{n}", None) for n in range(1, count + 1)]
    return world.start(items, operation=operation, **limits)


def _again(limit: int) -> dict[str, Any]:
    return {"on_unknown": "pay_again", "pay_again_limit": {"USDC": limit}}


class CallCases:
    """What keeps a batch of paid calls inside its budget and its policy."""

    def test_what_cost_more_than_its_reservation_is_a_finding(self, world: World) -> None:
        """The commit stands with what was billed; within the budget the batch goes on."""
        worker = _calls(world, budget={"USDC": 9_000_000})
        world.intend(worker, 1, reserve=_RESERVE)
        assert world.change(worker, 1, ItemEvent.COMMIT, billed=Money("1.50", "USDC")) is Landed.LANDED
        (found,) = world.ledger.findings("refunds")
        assert (found.kind, found.item) == ("over_reserve", "call-1")
        assert (found.data["reserve"], found.data["billed"]) == ("1.000000", "1.500000")
        assert world.ledger.status("refunds").batch.state is BatchState.RUNNING
        world.assert_sound()

    def test_what_breaks_the_budget_stops_the_batch(self, world: World) -> None:
        """In the transaction of the commit itself: no intent lands after it."""
        worker = _calls(world, budget={"USDC": 2_000_000})
        world.intend(worker, 1, reserve=_RESERVE)
        world.intend(worker, 2, reserve=_RESERVE)
        world.change(worker, 1, ItemEvent.COMMIT, billed=Money("1.50", "USDC"))
        batch = world.ledger.batches("refunds")[0]
        assert (batch.state, batch.reason_code, batch.held) == (BatchState.STOPPED, "budget", False)
        assert world.intend(worker, 3, reserve=_RESERVE) is Landed.NOT_RUNNING
        assert world.change(worker, 2, ItemEvent.COMMIT, billed=Money("0.10", "USDC")) is Landed.LANDED
        world.assert_sound()

    def test_paying_again_is_bounded_over_all_workers_and_runs(self, world: World) -> None:
        """Each one is a finding with what it may have cost; the limit holds whoever asks, also after a restart."""
        first = _calls(world, **_again(2_000_000))
        second = world.join()
        for worker, n in ((first, 1), (second, 2), (first, 3)):
            world.intend(worker, n, reserve=_RESERVE)
        assert world.change(first, 1, ItemEvent.PAY_AGAIN, code="timeout") is Landed.LANDED
        assert world.item(1).state is ItemState.PLANNED
        world.reopen()
        assert world.change(second, 2, ItemEvent.PAY_AGAIN, code="timeout") is Landed.LANDED
        assert world.change(first, 3, ItemEvent.PAY_AGAIN, code="timeout") is Landed.OVER_BUDGET
        found = world.ledger.findings("refunds")
        assert [(f.kind, f.item, f.data["amount"]) for f in found] == [
            ("paid_again", "call-1", "1.000000"),
            ("paid_again", "call-2", "1.000000"),
        ]
        assert world.types(item="call-1") == ["intent", "pay_again", "finding"]
        world.assert_sound()

    def test_what_may_have_been_paid_twice_counts_against_the_budget(self, world: World) -> None:
        """The first payment may have happened: the second must fit beside it."""
        worker = _calls(world, budget={"USDC": 2_000_000}, **_again(9_000_000))
        world.intend(worker, 1, reserve=_RESERVE)
        world.change(worker, 1, ItemEvent.PAY_AGAIN)
        assert world.intend(worker, 1, reserve=_RESERVE) is Landed.LANDED
        assert world.intend(worker, 2, reserve=_RESERVE) is Landed.OVER_BUDGET

    @pytest.mark.parametrize("how", ["refused", "skipped", "refused before its call", "cancelled", "late"])
    def test_what_was_paid_again_is_never_taken_for_not_executed(self, world: World, how: str) -> None:
        """Its first call may have been executed: no refusal and no cancel ends it, it is unknown and holds its money,
        until a person decides; then it may be refused like any other."""
        worker = _calls(world, budget={"USDC": 9_000_000}, **_again(9_000_000))
        world.intend(worker, 1, reserve=_RESERVE)
        assert world.change(worker, 1, ItemEvent.PAY_AGAIN, code="timeout") is Landed.LANDED
        if how in ("refused", "skipped", "late"):
            world.intend(worker, 1, reserve=_RESERVE)
        if how in ("cancelled", "late"):
            world.control(BatchCommand.CANCEL)
        if how == "late":
            assert world.change(worker, 1, ItemEvent.NOT_EXECUTED, code="not_sent") is Landed.LANDED
        elif how != "cancelled":
            event = ItemEvent.SKIP if how == "skipped" else ItemEvent.REFUSE
            assert world.change(worker, 1, event, code="bad", message="no") is Landed.LANDED
        world.reopen()
        item, status = world.item(1), world.ledger.status("refunds")
        assert item.state is ItemState.UNKNOWN and str(item.code).endswith("_after_unresolved")
        assert status.minor("USDC", ItemState.UNKNOWN) == 1_000_000
        assert world.operate(1, Change(1, ItemEvent.RETRY)) is Landed.STALE
        world.assert_sound()
        world.ledger.leave(worker)
        assert world.operate(1, Change(1, ItemEvent.REFUSE, code="operator")) is Landed.LANDED
        assert world.item(1).state is ItemState.REFUSED
        world.assert_sound()

    @pytest.mark.parametrize("operation", ["refund", "payout", "invoice"])
    def test_money_is_never_paid_again(self, world: World, operation: str) -> None:
        """Whatever the limits say: the operation is not a call."""
        worker = _calls(world, operation=operation, **_again(9_000_000))
        world.intend(worker, 1, reserve=_RESERVE)
        assert world.change(worker, 1, ItemEvent.PAY_AGAIN) is Landed.STALE
        assert world.item(1).state is ItemState.PENDING

    def test_paying_again_needs_the_policy_and_a_known_price(self, world: World) -> None:
        """Without the policy, or where nobody knows what the call may have cost, nothing is paid again."""
        worker = _calls(world)
        world.intend(worker, 1, reserve=_RESERVE)
        world.intend(worker, 2)
        assert world.change(worker, 1, ItemEvent.PAY_AGAIN) is Landed.STALE
        world.control(BatchCommand.CONFIGURE, limits=_again(9_000_000))
        assert world.change(worker, 2, ItemEvent.PAY_AGAIN) is Landed.STALE
        assert world.change(worker, 1, ItemEvent.PAY_AGAIN) is Landed.LANDED
