"""Suite, part two: whose item it is. Compare-and-set on fence, generation and step; dead workers; leases."""

from __future__ import annotations

import pytest

from payonce.core.commands import Change, Landed
from payonce.core.errors import LeaseLost, UsageError
from payonce.core.model import SECOND_US, Request
from payonce.core.states import ItemEvent, ItemState
from payonce.testing.ledger_world import LEASE_US, OPERATOR, World, intent


class FenceCases:
    """Workers, fences and leases."""

    def test_fences_grow(self, world: World) -> None:
        """A later worker's fence is always higher, also after the earlier ones have left."""
        first = world.start()
        world.ledger.leave(first)
        second = world.join()
        world.reopen()
        assert first.fence < second.fence < world.join().fence

    @pytest.mark.parametrize("generation, step", [(1, 0), (0, 1)])
    def test_an_intent_for_another_generation_or_step_is_stale(self, world: World, generation: int, step: int) -> None:
        """An intent built from an older view of the item changes nothing."""
        worker = world.start()
        command = intent(1, ItemEvent.INTENT, generation=generation, step=step, now_us=world.now_us)
        assert world.write(worker, command) == [Landed.STALE]
        assert world.item(1).state is ItemState.PLANNED

    def test_only_one_of_two_workers_gets_an_item(self, world: World) -> None:
        """Of two intents for one item, one lands."""
        first, second = world.start(), world.join()
        assert world.intend(first, 1) is Landed.LANDED
        late = intent(1, ItemEvent.INTENT, now_us=world.now_us)
        assert world.write(second, late) == [Landed.STALE]
        assert world.open_intent(1).fence == first.fence

    def test_another_workers_item_is_left_alone(self, world: World) -> None:
        """Neither an outcome nor a resend by a worker that does not own the item lands."""
        first, second = world.start(), world.join()
        world.intend(first, 1)
        assert world.change(second, 1, ItemEvent.COMMIT) is Landed.STALE
        assert world.intend(second, 1) is Landed.STALE
        assert world.change(first, 1, ItemEvent.COMMIT) is Landed.LANDED

    def test_an_item_that_does_not_exist_is_stale(self, world: World) -> None:
        """Numbers outside the batch change nothing and raise nothing."""
        worker = world.start()
        assert world.change(worker, 99, ItemEvent.SKIP) is Landed.STALE

    def test_a_command_that_does_not_land_does_not_hold_up_the_others(self, world: World) -> None:
        """Each command of a write stands on its own."""
        worker = world.start()
        commands = [intent(n, ItemEvent.INTENT, generation=n % 2, now_us=world.now_us) for n in (1, 2, 3, 4)]
        assert world.write(worker, *commands) == [Landed.STALE, Landed.LANDED, Landed.STALE, Landed.LANDED]
        assert world.counts() == {"planned": 2, "pending": 2}

    def test_commands_of_one_write_see_each_other(self, world: World) -> None:
        """An item may be intended and committed in one transaction, in this order."""
        worker = world.start()
        commit = Change(1, ItemEvent.COMMIT, reference="re_1")
        assert world.write(worker, commit, world.intent(1), commit) == [Landed.STALE, Landed.LANDED, Landed.LANDED]
        assert world.types(item="item-1") == ["intent", "commit"]
        world.assert_sound()

    # taking over

    def test_a_worker_that_left_can_be_taken_over_at_once(self, world: World) -> None:
        """What it left pending belongs to the next worker, with everything needed to resolve it."""
        first = world.start()
        world.intend(first, 1)
        world.ledger.leave(first)
        second = world.join()
        (found,) = world.ledger.take_over(second, limit=10)
        assert (found.item.n, found.fence, found.key) == (1, second.fence, "key-1-0-0")
        assert found.request == Request("POST", "/refunds/0", b"item=1", (("Idempotency-Key", "key-1-0-0"),))
        assert world.bodies(item="item-1")[-1]["from_worker"] == first.fence
        world.assert_sound()

    def test_a_worker_whose_lease_is_over_is_dead(self, world: World) -> None:
        """By the ledger's clock, not before."""
        first = world.start()
        world.intend(first, 1)
        second = world.join(lease_us=2 * LEASE_US)
        world.pass_time(LEASE_US / SECOND_US - 0.001)
        assert world.ledger.take_over(second, limit=10) == ()
        world.pass_time(0.001)
        assert len(world.ledger.take_over(second, limit=10)) == 1

    def test_a_worker_whose_process_is_gone_is_dead_at_once(self, world: World) -> None:
        """On this host a dead process is seen without waiting for its lease; on another it is not."""
        worker = world.start()
        near, far = world.join(), world.join(host="elsewhere")
        world.unseen.add("elsewhere")
        world.intend(near, 1)
        world.intend(far, 2)
        world.gone |= {102, 103}
        assert [found.item.n for found in world.ledger.take_over(worker, limit=10)] == [1]

    def test_a_stale_worker_cannot_write_after_a_take_over(self, world: World) -> None:
        """Once declared dead, nothing it writes lands, not even on items it never had."""
        first = world.start()
        world.intend(first, 1)
        second = world.join(lease_us=2 * LEASE_US)
        world.pass_time(30)
        world.ledger.take_over(second, limit=10)
        assert world.change(first, 1, ItemEvent.COMMIT) is Landed.STALE
        assert world.intend(first, 2) is Landed.STALE
        assert world.change(first, 2, ItemEvent.SKIP) is Landed.STALE
        for verb in (
            lambda: world.ledger.renew(first, lease_us=LEASE_US),
            lambda: world.ledger.planned(first, limit=1),
            lambda: world.ledger.slots(first, count=1),
            lambda: world.ledger.take_over(first, limit=1),
        ):
            with pytest.raises(LeaseLost):
                verb()
        assert "worker_dead" in world.types()
        world.assert_sound()

    def test_a_worker_that_left_writes_nothing(self, world: World) -> None:
        """From then on: neither what becomes of its item nor another intent."""
        worker = world.start()
        world.intend(worker, 1)
        world.ledger.leave(worker)
        assert world.change(worker, 1, ItemEvent.COMMIT) is Landed.STALE
        assert world.intend(worker, 2) is Landed.STALE
        world.assert_sound()

    def test_a_late_answer_counts_while_nobody_took_the_item_over(self, world: World) -> None:
        """A lease that is over stops new calls, not the record of what a call did."""
        worker = world.start()
        world.intend(worker, 1)
        world.pass_time(31)
        assert world.intend(worker, 2) is Landed.STALE
        assert world.change(worker, 1, ItemEvent.COMMIT) is Landed.LANDED
        world.ledger.renew(worker, lease_us=LEASE_US)
        assert world.intend(worker, 2) is Landed.LANDED

    def test_taking_over_is_bounded_and_goes_on(self, world: World) -> None:
        """At most ``limit`` items at a time, in input order; a live worker's items are not among them."""
        first = world.start(5)
        for n in (1, 2, 3, 4):
            world.intend(first, n)
        world.ledger.leave(first)
        second = world.join()
        world.intend(second, 5)
        taken = [[found.item.n for found in world.ledger.take_over(second, limit=3)] for _ in range(3)]
        assert taken == [[1, 2, 3], [4], []]

    def test_unknown_items_are_not_taken_over(self, world: World) -> None:
        """They wait for a person, whoever wrote them."""
        first = world.start()
        world.bring(first, 1, ItemState.UNKNOWN)
        world.ledger.leave(first)
        assert world.ledger.take_over(world.join(), limit=10) == ()

    def test_an_operator_leaves_a_live_workers_item_alone(self, world: World) -> None:
        """While its worker lives, a pending item is not an operator's to decide; afterwards it is."""
        worker = world.start()
        world.intend(worker, 1)
        world.bring(worker, 2, ItemState.UNKNOWN)
        decided = Change(1, ItemEvent.COMMIT, reference="re_1")
        assert world.operate(1, decided) is Landed.STALE
        assert world.operate(2, Change(2, ItemEvent.REFUSE, code="operator")) is Landed.LANDED
        world.pass_time(31)
        assert world.operate(1, decided) is Landed.LANDED

    def test_an_operators_changes_land_together_or_not_at_all(self, world: World) -> None:
        """A second change that does not land takes the first one back."""
        world.start()
        changes = (world.intent(1), Change(1, ItemEvent.RETRY))
        assert world.operate(1, *changes) is Landed.STALE
        assert world.item(1).state is ItemState.PLANNED
        assert world.types(item="item-1") == []
        assert world.operate(1, world.intent(1), Change(1, ItemEvent.COMMIT, reference="re")) is Landed.LANDED
        world.assert_sound()

    def test_an_operator_says_why_and_names_an_item_that_exists(self, world: World) -> None:
        """No reason, or no such item, is an error before anything is written."""
        world.start()
        with pytest.raises(UsageError, match="reason"):
            world.operate(1, Change(1, ItemEvent.SKIP), reason=" ")
        with pytest.raises(UsageError) as error:
            world.ledger.operate("refunds", "no-such", [], actor=OPERATOR, reason="x")
        assert error.value.code == "unknown_item"

    def test_others_are_counted_while_they_live(self, world: World) -> None:
        """A worker learns how many share its batch, and a status how many work on it."""
        first = world.start()
        world.join()
        assert world.ledger.renew(first, lease_us=LEASE_US).others == 1
        assert world.ledger.status("refunds").live_workers == 2
        world.gone.add(102)
        assert world.ledger.renew(first, lease_us=LEASE_US).others == 0
        assert world.ledger.status("refunds").live_workers == 1

    def test_leaving_twice_or_never_having_been_is_no_error(self, world: World) -> None:
        """The end of a run may come to it more than once."""
        worker = world.start()
        world.ledger.leave(worker)
        world.ledger.leave(worker)
        assert world.types().count("worker_left") == 1
