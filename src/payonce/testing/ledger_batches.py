"""Suite, part four: sealing, steering and ending a batch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payonce.core.commands import BatchCommand, Change, Landed
from payonce.core.errors import SealedError, UsageError
from payonce.core.model import BatchSpec, NewItem, PlainColumns, PlainItems
from payonce.core.states import RUNNABLE, BatchState, ItemEvent, ItemState
from payonce.testing.ledger_world import BATCH, LEASE_US, OPERATOR, World, new_item

_B, _C = BatchState, BatchCommand
_ALIVE = set(BatchState) - {_B.CANCELLED, _B.FINISHED}
_STEERS = {
    _C.START: RUNNABLE,
    _C.PAUSE: _ALIVE,
    _C.RESUME: {_B.PAUSED, _B.STOPPED},
    _C.CANCEL: set(BatchState) - {_B.FINISHED},
}


def batch_in(world: World, state: BatchState) -> None:
    """A batch without a live worker, in some state."""
    if state is _B.SEALED:
        world.seal(1)
        return
    worker = world.start(1)
    ways = {
        _B.PAUSED: _C.PAUSE,
        _B.STOPPED: _C.STOP,
        _B.INTERRUPTED: _C.INTERRUPT,
        _B.HALTED: _C.HALT,
        _B.CANCELLED: _C.CANCEL,
    }
    if state is _B.FINISHED:
        world.bring(worker, 1, ItemState.COMMITTED)
        world.control(_C.FINISH, worker=worker)
    elif state in ways:
        world.control(ways[state], worker=worker, reason="why", code="c")
    world.ledger.leave(worker)


class BatchCases:
    """Batches as a whole."""

    # sealing

    def test_sealing_keeps_every_item_as_it_was_given(self, world: World) -> None:
        """In input order, all planned, with amounts, targets and the other columns."""
        items = [new_item(1), new_item(2, minor=5, currency="KWD", target="t"), NewItem("x", None, fields={})]
        world.seal(items, targets=True)
        page = world.ledger.items("refunds")
        assert [(i.n, i.id, i.target, i.money, dict(i.fields)) for i in page.items] == [
            (n, item.id, item.target or item.id, item.money, dict(item.fields)) for n, item in enumerate(items, 1)
        ]
        assert {i.state for i in page.items} == {ItemState.PLANNED}
        assert world.ledger.batches("refunds")[0].items == 3
        world.assert_sound()

    def test_a_seal_that_would_cost_workers_their_leases_is_given_up(self, world: World) -> None:
        """Nobody can write while a batch is sealed: where it takes too long beside living workers, nothing is sealed and
        they go on. Where nobody works on the ledger it may take as long as it likes; so may it when they are gone."""
        worker = world.start(1, batch="other")

        def slow() -> Iterator[PlainColumns]:
            for n in range(1, 4):
                world.pass_time(6)
                yield PlainColumns.of([(f"item-{n}", f"item-{n}", 1000, "USD", "{}")])

        def seal() -> None:
            spec = BatchSpec(BATCH, "refund", "simulator")
            world.ledger.seal(spec, PlainItems(slow()), seal="seal", actor=OPERATOR)

        with pytest.raises(UsageError) as refused:
            seal()
        assert refused.value.code == "seal_too_long" and "'other'" in refused.value.message
        assert world.ledger.batches(BATCH) == ()
        assert world.intend(worker, 1) is Landed.LANDED
        world.ledger.leave(worker)
        seal()
        assert world.ledger.batches(BATCH)[0].items == 3
        world.assert_sound()

    def test_what_a_batch_was_sealed_as_comes_back_exactly(self, world: World) -> None:
        """The whole specification, configuration included."""
        spec = BatchSpec(
            "b", "payout", "adyen", account="acme", mode="test", source="in.csv", config={"steps": ["a", "b"], "n": 1}
        )
        world.ledger.seal(spec, [], seal="digest", actor=OPERATOR)
        found = world.ledger.batches("b")[0]
        assert (found.spec, found.seal, found.items, found.state) == (spec, "digest", 0, BatchState.SEALED)

    def test_an_error_half_way_through_sealing_leaves_nothing(self, world: World) -> None:
        """No batch, no item, no event; the same id can be sealed afterwards."""

        def broken() -> Iterator[NewItem]:
            yield from (new_item(n) for n in range(1, 50))
            raise RuntimeError("the input broke off")

        events = world.types(batch=None)
        with pytest.raises(RuntimeError):
            world.ledger.seal(BatchSpec("refunds", "refund", "p"), broken(), seal="", actor=OPERATOR)
        assert world.ledger.batches() == ()
        assert world.types(batch=None) == events
        world.seal(3)
        assert world.counts() == {"planned": 3}
        world.assert_sound()

    def test_a_batch_is_sealed_once(self, world: World) -> None:
        """The same id again is refused and changes nothing."""
        world.seal(2)
        with pytest.raises(SealedError) as error:
            world.seal(3)
        assert error.value.code == "already_sealed"
        assert world.counts() == {"planned": 2}

    def test_an_id_is_in_a_batch_once(self, world: World) -> None:
        """Ids are compared exactly: case counts; the same one twice leaves nothing behind."""
        world.seal([NewItem("a", None), NewItem("A", None)], batch="exact")
        with pytest.raises(UsageError) as error:
            world.seal([NewItem("a", None), NewItem("a", None)])
        assert error.value.code == "duplicate_item"
        assert len(world.ledger.batches()) == 1

    def test_the_same_id_may_be_in_two_batches(self, world: World) -> None:
        """Items belong to their batch."""
        world.seal(2, batch="one")
        world.seal(2, batch="two")
        assert [b.spec.id for b in world.ledger.batches()] == ["two", "one"]
        assert world.ledger.item("two", "item-1") == world.ledger.item("one", "item-1")

    def test_an_unknown_batch_is_a_usage_error(self, world: World) -> None:
        """By every verb that names one."""
        for verb in (
            lambda: world.ledger.status("no"),
            lambda: world.ledger.items("no"),
            lambda: world.ledger.join("no", actor=OPERATOR, lease_us=LEASE_US),
            lambda: world.control(_C.PAUSE, batch="no"),
            lambda: world.ledger.events("no"),
        ):
            with pytest.raises(UsageError) as error:
                verb()
            assert error.value.code == "unknown_batch"
        assert world.ledger.batches("no") == ()

    # steering

    @pytest.mark.parametrize("state", BatchState)
    @pytest.mark.parametrize("command", list(_STEERS))
    def test_a_batch_is_steered_only_where_that_makes_sense(
        self, world: World, command: BatchCommand, state: BatchState
    ) -> None:
        """A cancelled or finished batch is over, a paused one waits for RESUME; a refused command changes nothing."""
        batch_in(world, state)
        before, events = world.ledger.batches("refunds"), world.types()
        assert before[0].state is state
        if state not in _STEERS[command]:
            with pytest.raises(UsageError) as error:
                world.control(command, reason="because")
            assert error.value.code == "bad_batch_state"
            assert (world.ledger.batches("refunds"), world.types()) == (before, events)
            return
        after = world.control(command, reason="because")
        expected = {_C.START: _B.RUNNING, _C.PAUSE: _B.PAUSED, _C.CANCEL: _B.CANCELLED, _C.RESUME: _B.INTERRUPTED}
        assert after.state is expected[command]
        assert command.value in world.types()[len(events) :]
        world.assert_sound()

    def test_no_intent_lands_unless_the_batch_is_running(self, world: World) -> None:
        """Sealed, paused, stopped, interrupted, cancelled: no new call, and no resend; answers still count."""
        world.seal(3)
        worker = world.join()
        assert world.intend(worker, 1) is Landed.NOT_RUNNING
        world.control(_C.START, worker=worker)
        world.intend(worker, 1)
        world.control(_C.PAUSE, reason="lunch")
        assert world.intend(worker, 1) is Landed.NOT_RUNNING
        assert world.intend(worker, 2) is Landed.NOT_RUNNING
        assert world.change(worker, 1, ItemEvent.COMMIT) is Landed.LANDED
        assert world.control(_C.RESUME).state is BatchState.RUNNING  # its worker is alive
        assert world.intend(worker, 2) is Landed.LANDED

    def test_a_held_batch_is_resumed_by_an_operator_only(self, world: World) -> None:
        """START does not go over a stop that waits for a person."""
        worker = world.start()
        world.control(_C.STOP, worker=worker, code="amount_mismatch", reason="look", hold=True)
        with pytest.raises(UsageError) as error:
            world.control(_C.START, worker=worker)
        assert error.value.code == "batch_held"
        world.control(_C.RESUME)
        assert world.intend(worker, 1) is Landed.LANDED

    def test_the_end_of_one_worker_is_not_the_end_of_the_run(self, world: World) -> None:
        """While another live worker is on the batch, it stays running."""
        first, second = world.start(), world.join()
        assert world.control(_C.INTERRUPT, worker=first).state is BatchState.RUNNING
        world.ledger.leave(first)
        assert world.intend(second, 1) is Landed.LANDED
        assert world.control(_C.INTERRUPT, worker=second, code="signal").state is BatchState.INTERRUPTED

    def test_cancelling_skips_what_is_planned(self, world: World) -> None:
        """Each with its event; what is in flight is decided as always."""
        worker = world.start(5)
        world.intend(worker, 1)
        world.bring(worker, 2, ItemState.COMMITTED)
        world.control(_C.CANCEL, reason="wrong file")
        assert world.counts() == {"pending": 1, "committed": 1, "skipped": 3}
        assert world.item(3).code == "cancelled"
        assert world.types(item="item-3") == ["skip"]
        assert world.change(worker, 1, ItemEvent.COMMIT) is Landed.LANDED
        assert world.control(_C.FINISH).state is BatchState.CANCELLED
        world.assert_sound()

    def test_a_batch_finishes_when_it_is_settled(self, world: World) -> None:
        """Not while an item is planned or pending; saying so twice leaves one event."""
        worker = world.start(2)
        world.bring(worker, 1, ItemState.UNKNOWN)
        assert world.control(_C.FINISH).state is BatchState.RUNNING
        world.intend(worker, 2)
        assert world.control(_C.FINISH).state is BatchState.RUNNING
        world.change(worker, 2, ItemEvent.COMMIT)
        assert world.control(_C.FINISH).state is BatchState.FINISHED
        assert world.control(_C.FINISH).ended_us == world.now_us
        assert world.types().count("finished") == 1

    def test_putting_an_item_back_opens_a_finished_batch(self, world: World) -> None:
        """The same command then goes on with it."""
        worker = world.start(1)
        world.bring(worker, 1, ItemState.REFUSED)
        world.control(_C.FINISH)
        world.ledger.leave(worker)
        assert world.operate(1, Change(1, ItemEvent.RETRY)) is Landed.LANDED
        batch = world.ledger.batches("refunds")[0]
        assert (batch.state, batch.reason_code, batch.ended_us) == (BatchState.INTERRUPTED, "reopened", None)
        assert world.control(_C.START).state is BatchState.RUNNING

    def test_limits_are_kept_and_every_change_is_noticed(self, world: World) -> None:
        """Workers learn of it by the control counter; configuring the same again is no event."""
        worker = world.start()
        first = world.ledger.renew(worker, lease_us=LEASE_US)
        world.control(_C.CONFIGURE, limits={"budget": {"USD": 5}, "attempts": 2})
        world.control(_C.CONFIGURE, limits={"attempts": 2, "budget": {"USD": 5}})
        second = world.ledger.renew(worker, lease_us=LEASE_US)
        assert dict(second.limits) == {"budget": {"USD": 5}, "attempts": 2}
        assert second.control == first.control + 1
        assert world.types().count("configured") == 1

    def test_slowing_down_is_shared(self, world: World) -> None:
        """The later end counts, and a pace stays until it is lifted with 0."""
        worker = world.start()
        world.control(_C.SLOW, worker=worker, slow_until_us=world.now_us + 50, pace_per_ks=4000)
        world.control(_C.SLOW, worker=worker, slow_until_us=world.now_us + 20)
        seen = world.ledger.renew(worker, lease_us=LEASE_US)
        assert (seen.slow_until_us, seen.pace_per_ks) == (world.now_us + 50, 4000)
        world.control(_C.SLOW, worker=worker, pace_per_ks=0)
        assert world.ledger.renew(worker, lease_us=LEASE_US).pace_per_ks is None
