"""Suite, part seven: what batches know of each other, and batches that grow."""

from __future__ import annotations

from typing import Any

import pytest

from payonce.core.commands import BatchCommand
from payonce.core.errors import SealedError, UsageError
from payonce.core.model import Batch, BatchSpec, NewItem
from payonce.core.overlap import ACTING, Acting, Clearance
from payonce.core.states import BatchState, ItemState
from payonce.testing.ledger_world import BATCH, OPERATOR, World, new_item


def seal(world: World, batch: str, items: list[NewItem], clearance: Clearance | None = None) -> Batch:
    """A batch with targets, sealed."""
    spec = BatchSpec(batch, "refund", "simulator", targets=True)
    return world.ledger.seal(spec, items, seal="seal", actor=OPERATOR, clearance=clearance)


def amend(world: World, items: list[NewItem], *, batch: str = BATCH, seal: str | None = None, **more: Any) -> Batch:
    """Items added to a batch."""
    spec = BatchSpec(batch, "refund", "simulator", targets=True, config={"grown": True})
    return world.ledger.amend(spec, items, seal=seal, actor=OPERATOR, **more)


class OverlapCases:
    """Overlaps and amendments."""

    def test_what_acts_on_a_target_is_found(self, world: World) -> None:
        """Planned, pending, committed and unknown items act; refused and skipped ones do not. Compared exactly."""
        items = [new_item(n, target=f"ch_{n}") for n in range(1, 7)]
        worker = world.start(items, targets=True)
        for n, state in enumerate(ItemState, start=1):
            world.bring(worker, n, state)
        number = world.ledger.batches(BATCH)[0].number
        acting = [n for n, state in enumerate(ItemState, start=1) if state in ACTING]
        targets = [target for block in world.ledger.acted_targets(number) for target in block]
        assert sorted(targets) == [f"ch_{n}" for n in acting]
        asked = [*(f"ch_{n}" for n in range(1, 7)), "CH_1", "ch_1 ", "item-1"]
        assert world.ledger.acting_on(number, asked) == [
            Acting(BATCH, f"item-{n}", f"ch_{n}", world.item(n).state, new_item(n).money) for n in acting
        ]

    def test_an_item_without_a_target_acts_on_its_id(self, world: World) -> None:
        """Ids and targets are one name space."""
        number = world.seal(2).number
        assert [list(block) for block in world.ledger.acted_targets(number)] == [["item-1", "item-2"]]
        assert [found.item for found in world.ledger.acting_on(number, ["item-2"])] == ["item-2"]

    def test_extents_are_what_was_sealed(self, world: World) -> None:
        """By number, as they grow."""
        first, second = world.seal(2), world.seal(3, batch="other")
        assert world.ledger.extents() == {first.number: 2, second.number: 3}
        amend(world, [new_item(9)])
        assert world.ledger.extents() == {first.number: 3, second.number: 3}

    def test_a_batch_is_sealed_only_beside_those_it_was_compared_with(self, world: World) -> None:
        """One more batch, or one more item where it matters, and nothing is sealed and nothing is in the trail."""
        first = world.seal(2)
        events = len(world.bodies(batch=None))
        for seen in ({}, {first.number: 1}, {first.number: 2, 99: 1}):
            with pytest.raises(SealedError) as refused:
                seal(world, "second", [new_item(1)], Clearance(seen))
            assert refused.value.code == "batches_changed"
        assert len(world.bodies(batch=None)) == events
        assert world.ledger.batches("second") == ()
        seal(world, "second", [new_item(1)], Clearance({first.number: 2}))
        third: dict[int, int | None] = {first.number: None, world.ledger.batches("second")[0].number: 1}
        seal(world, "third", [new_item(1)], Clearance(third))
        world.assert_sound()

    def test_an_allowed_overlap_is_an_event_of_the_seal(self, world: World) -> None:
        """Who allowed how many items, beside which batches, and why."""
        first = world.seal(2)
        seen = {first.number: 2}
        seal(world, "second", [new_item(1)], Clearance(seen, 1, (BATCH,), "agreed"))
        last = world.bodies(batch="second")[-1]
        wanted = {"type": "overlap_allowed", "batch": "second", "items": 1, "batches": [BATCH], "reason": "agreed"}
        assert {name: last[name] for name in wanted} == wanted
        assert last["actor"]["user"] == OPERATOR.user
        seal(world, "third", [new_item(7)], Clearance({**seen, world.ledger.batches("second")[0].number: 1}))
        assert world.types(batch="third") == ["sealed"]

    def test_an_amendment_adds_at_the_end(self, world: World) -> None:
        """Counts, money and seal follow; the event says how many items and how much. What was there is as it was."""
        worker = world.start(2)
        world.bring(worker, 1, ItemState.COMMITTED)
        before = world.item(1)
        batch = amend(world, [new_item(3), new_item(4, minor=5)], seal="new seal")
        assert (batch.items, batch.seal, batch.spec.config) == (4, "new seal", {"grown": True})
        assert world.counts() == {"planned": 3, "committed": 1}
        assert world.item(1) == before
        assert [item.id for item in world.ledger.items(BATCH).items] == ["item-1", "item-2", "item-3", "item-4"]
        last = world.bodies()[-1]
        assert (last["type"], last["items"], last["money"], last["seal"]) == (
            "amended",
            2,
            {"USD": "10.05"},
            "new seal",
        )
        world.assert_sound()

    def test_an_amendment_begins_a_batch_that_is_not_there(self, world: World) -> None:
        """Item by item, from the first one on; whether targets are held is settled with it."""
        amend(world, [new_item(1)], batch="grown")
        assert amend(world, [new_item(2, target="t")], batch="grown").items == 2
        world.reopen()
        spec = BatchSpec("grown", "refund", "simulator")
        batch = world.ledger.amend(spec, [new_item(3)], seal=None, actor=OPERATOR)
        assert (batch.items, batch.spec.targets) == (3, True)
        assert world.counts(batch="grown") == {"planned": 3}
        assert world.types(batch="grown") == ["amended"] * 3
        world.assert_sound()

    def test_an_amended_batch_goes_on_after_its_end(self, world: World) -> None:
        """A finished batch can be run again; a cancelled one takes nothing."""
        worker = world.start(1)
        world.bring(worker, 1, ItemState.COMMITTED)
        world.control(BatchCommand.FINISH, worker=worker)
        assert amend(world, [new_item(2)]).state is BatchState.INTERRUPTED
        world.control(BatchCommand.CANCEL, reason="enough")
        with pytest.raises(SealedError) as refused:
            amend(world, [new_item(3)])
        assert refused.value.code == "batch_cancelled"

    def test_an_amendment_is_all_or_nothing(self, world: World) -> None:
        """An id that is there already, and nothing of it is added; another operation is another batch."""
        world.seal(2)
        before = (world.ledger.batches(BATCH)[0], world.types())
        with pytest.raises(UsageError):
            amend(world, [new_item(3), new_item(1)])
        with pytest.raises(SealedError):
            world.ledger.amend(BatchSpec(BATCH, "payout", "simulator"), [new_item(3)], seal=None, actor=OPERATOR)
        with pytest.raises(SealedError):
            amend(world, [new_item(3)], clearance=Clearance({}))
        assert (world.ledger.batches(BATCH)[0], world.types()) == before
        world.assert_sound()

    def test_an_amendment_chains_the_seal(self, world: World) -> None:
        """Without a digest over all items, the new seal covers the old one and what was added."""
        world.seal(1)
        first = amend(world, [new_item(2)]).seal
        second = amend(world, [new_item(3)]).seal
        assert len({"seal", first, second}) == 3
        assert len(second) == 64
