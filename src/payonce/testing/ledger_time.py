"""Suite, part five: what depends on time and order: rate, sweeps, key windows, a clock that jumps."""

from __future__ import annotations

import orjson

from payonce.core.commands import BatchCommand, Landed
from payonce.core.events import from_iso
from payonce.core.model import SECOND_US
from payonce.core.states import ItemEvent
from payonce.testing.ledger_world import LEASE_US, World


class TimeCases:
    """Rate, sweeps, windows, clocks."""

    # rate

    def test_the_bucket_starts_empty(self, world: World) -> None:
        """The first call waits for the first token; then one every 1/rate."""
        worker = world.start(rate_per_ks=4000)
        slots = world.ledger.slots(worker, count=3)
        assert [slot - world.now_us for slot in slots] == [250_000, 500_000, 750_000]

    def test_a_tenth_of_a_second_may_burst(self, world: World) -> None:
        """After a pause at most a tenth of a second's worth is waiting; the rest was not saved up."""
        worker = world.start(rate_per_ks=100_000)
        world.ledger.slots(worker, count=1)
        world.pass_time(20)
        slots = world.ledger.slots(worker, count=12)
        assert [slot - world.now_us for slot in slots] == [0] * 10 + [10_000, 20_000]

    def test_a_slow_rate_holds_one(self, world: World) -> None:
        """At least one call may go at once, however slow the rate."""
        worker = world.start(rate_per_ks=500)
        world.ledger.slots(worker, count=1)
        world.pass_time(20)
        assert [slot - world.now_us for slot in world.ledger.slots(worker, count=2)] == [0, 2_000_000]

    def test_workers_share_the_rate(self, world: World) -> None:
        """Slots of two workers never coincide: together they keep the rate."""
        first = world.start(rate_per_ks=10_000)
        second = world.join()
        slots = [*world.ledger.slots(first, count=2), *world.ledger.slots(second, count=2)]
        slots += world.ledger.slots(first, count=1)
        assert [slot - world.now_us for slot in slots] == [100_000, 200_000, 300_000, 400_000, 500_000]

    def test_no_window_holds_more_than_rate_and_burst(self, world: World) -> None:
        """Whatever the pattern of asking, rounding included: any second has at most rate + burst calls."""
        worker = world.start(rate_per_ks=33_333)
        slots: list[int] = []
        for pause in (0.0, 0.01, 0.3, 0.0, 1.7, 0.05, 0.2):
            world.pass_time(pause)
            slots += world.ledger.slots(worker, count=7)
        assert all(slots[i + 37] - slots[i] >= SECOND_US for i in range(len(slots) - 37))
        assert slots == sorted(slots)

    def test_a_slowed_batch_waits_and_keeps_its_pace(self, world: World) -> None:
        """No slot before the wait is over, then no burst; the lower of rate and pace counts."""
        worker = world.start(rate_per_ks=100_000)
        world.ledger.slots(worker, count=1)
        until = world.now_us + 5 * SECOND_US
        world.control(BatchCommand.SLOW, worker=worker, slow_until_us=until, pace_per_ks=2000)
        assert world.ledger.slots(worker, count=3) == (until, until + 500_000, until + 1_000_000)

    def test_without_a_rate_calls_go_at_once(self, world: World) -> None:
        """Unless the batch was told to wait."""
        worker = world.start()
        assert world.ledger.slots(worker, count=3) == (world.now_us,) * 3
        world.control(BatchCommand.SLOW, slow_until_us=world.now_us + 9)
        assert world.ledger.slots(worker, count=2) == (world.now_us + 9,) * 2

    # sweeps

    def test_planned_items_are_handed_out_once_a_sweep(self, world: World) -> None:
        """In input order, over two workers; an empty answer ends the sweep and the next one starts afresh."""
        first = world.start(5)
        second = world.join()
        world.intend(first, 2)
        handed = [[i.n for i in world.ledger.planned(w, limit=2)] for w in (first, second, first)]
        assert handed == [[1, 3], [4, 5], []]
        assert [i.n for i in world.ledger.planned(second, limit=9)] == [1, 3, 4, 5]

    def test_what_comes_back_is_in_the_next_sweep(self, world: World) -> None:
        """An item behind the sweep's place waits for the next one."""
        worker = world.start(3)
        world.ledger.planned(worker, limit=2)
        world.intend(worker, 1)
        world.change(worker, 1, ItemEvent.NOT_EXECUTED, not_before_us=world.now_us + 7)
        sweeps = [[i.n for i in world.ledger.planned(worker, limit=9)] for _ in range(3)]
        assert sweeps == [[3], [], [1, 2, 3]]
        assert world.item(1).not_before_us == world.now_us + 7

    def test_a_first_worker_starts_from_the_beginning(self, world: World) -> None:
        """Where a run broke off its sweep, the next run does not leave the first items for later."""
        first = world.start(4)
        world.ledger.planned(first, limit=3)
        second = world.join()
        assert [i.n for i in world.ledger.planned(second, limit=9)] == [4]
        world.gone |= {101, 102}
        assert [i.n for i in world.ledger.planned(world.join(), limit=9)] == [1, 2, 3, 4]

    # key windows

    def test_a_resend_does_not_move_the_start_of_the_keys_window(self, world: World) -> None:
        """First sent stays, the latest intent's times are new, and what was seen of the earlier call is forgotten."""
        worker = world.start()
        start = world.now_us
        world.intend(worker, 1)
        world.change(worker, 1, ItemEvent.UNRESOLVED, code="timeout", seen=True, in_progress=True, retry_at_us=5)
        world.pass_time(9)
        assert world.intend(worker, 1) is Landed.LANDED
        found = world.open_intent(1)
        assert (found.first_sent_us, found.sent_us, found.seen_us) == (start, world.now_us, None)
        assert (found.in_progress, found.retry_at_us, found.code) == (False, 0, None)
        assert found.send_by_us == world.now_us + 5 * SECOND_US

    def test_the_window_survives_going_back_to_planned(self, world: World) -> None:
        """The same key sent again after a 429 is as old as its first intent; a new generation's key is new."""
        worker = world.start()
        start = world.now_us
        world.intend(worker, 1)
        world.change(worker, 1, ItemEvent.NOT_EXECUTED, code="rate_limited")
        world.pass_time(12)
        world.intend(worker, 1)
        assert world.open_intent(1).first_sent_us == start
        world.change(worker, 1, ItemEvent.NOT_EXECUTED, generation=1)
        world.pass_time(12)
        world.intend(worker, 1)
        assert world.open_intent(1).first_sent_us == world.now_us

    def test_evidence_gathers_with_the_open_intent(self, world: World) -> None:
        """What answers and look-ups showed is there for whoever resolves the item next."""
        worker = world.start()
        world.intend(worker, 1)
        world.pass_time(2)
        seen = world.now_us
        world.change(worker, 1, ItemEvent.UNRESOLVED, code="http_500", message="m", seen=True, burnt=True, spent=1)
        world.change(
            worker, 1, ItemEvent.LOOKUP, lookups=1, lookup_failures=1, retry_at_us=77, code="busy", message="b"
        )
        found = world.open_intent(1)
        assert (found.seen_us, found.burnt, found.lookups, found.lookup_failures) == (seen, True, 1, 1)
        assert (found.retry_at_us, found.item.spent) == (77, 1)
        # A look-up that failed is no answer of the call: that one's reason stays for whoever decides.
        assert (found.code, found.message, found.item.code, found.item.message) == ("http_500", "m", "busy", "b")
        status = world.ledger.status("refunds")
        assert (status.calls_sent, status.lookups, status.rate_limited) == (1, 1, 0)

    # clocks

    def test_time_never_runs_backwards_in_the_trail(self, world: World) -> None:
        """A clock that is set back leaves no event before the last one, and no lease that was never given."""
        worker = world.start()
        high = world.now_us
        world.pass_time(-3600)
        world.intend(worker, 1)
        world.reopen()
        world.change(worker, 1, ItemEvent.COMMIT)
        times = [from_iso(orjson.loads(e.body)["at"]) for e in world.ledger.events()]
        assert times == sorted(times)
        assert times[-1] == high
        assert world.ledger.renew(worker, lease_us=LEASE_US).now_us == high
