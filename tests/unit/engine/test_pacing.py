"""When the next call may go: the rate over all workers, what 429s teach, and the waits a provider asks for."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from dataclasses import replace

import pytest

from payonce.core.backoff import LONGEST_WAIT_US, Pace
from payonce.core.commands import BatchCommand, Control
from payonce.core.model import SECOND_US, Actor, BatchSpec, Limits, NewItem, Worker
from payonce.core.states import BatchState
from payonce.engine.pacing import LedgerTime, Pacer, Spacing
from payonce.engine.window import Window
from payonce.ledger.inline import InlineLedger
from payonce.ledger.memory import MemoryLedger
from tests.unit.engine.virtualtime import VirtualClock, run_virtually

ACTOR = Actor(user="test", host="here", pid=1)
FOREVER_US = 10**18


class World:
    """One ledger in memory, and any number of workers on its batch."""

    def __init__(self, clock: VirtualClock, rate_per_s: int | None) -> None:
        self.clock = clock
        self.rate_per_ks = None if rate_per_s is None else rate_per_s * 1000
        self.store = MemoryLedger(clock=clock.wall_us, is_alive=lambda actor: True)
        self.ledger = InlineLedger(self.store)
        self.store.seal(BatchSpec("b", "refund", "test"), [NewItem("r1", None)], seal="s", actor=ACTOR)
        limits = {"rate_per_ks": self.rate_per_ks} if rate_per_s else {}
        self.store.control("b", Control(BatchCommand.CONFIGURE, limits=limits), actor=ACTOR)

    async def worker(self) -> Pacer:
        """The pacer of one more process."""
        worker = await self.ledger.join("b", actor=ACTOR, lease_us=3600 * SECOND_US)
        time = LedgerTime.at(self.clock, worker.now_us)
        return Pacer(self.ledger, "b", ACTOR, self.clock, time, worker, self.rate_per_ks)


async def call(pacer: Pacer, sent: list[int], clock: VirtualClock) -> None:
    """One call, as the engine makes it: a turn, then the last spacing, then it leaves."""
    await pacer.turn()
    await pacer.guard(FOREVER_US)
    sent.append(clock.steady_us())


def busiest_second(sent: list[int]) -> int:
    """The most calls in any one second."""
    recent: deque[int] = deque()
    most = 0
    for at_us in sorted(sent):
        recent.append(at_us)
        while recent[0] <= at_us - SECOND_US:
            recent.popleft()
        most = max(most, len(recent))
    return most


async def keep_calling(pacer: Pacer, sent: list[int], clock: VirtualClock, *, until_us: int) -> None:
    """Calls one after the other."""
    while clock.steady_us() < until_us:
        await call(pacer, sent, clock)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("rate", [1, 7, 25, 200, 1000])
def test_the_rate_holds_in_every_second(rate: int, workers: int) -> None:
    """Sixty tasks in one or three processes: no second has more than a fifth over the rate (one call over it at the least),
    and the rate is used."""

    async def main(clock: VirtualClock) -> list[int]:
        world, sent = World(clock, rate), []
        pacers = [await world.worker() for _ in range(workers)]
        await asyncio.gather(
            *(keep_calling(pacers[n % workers], sent, clock, until_us=5 * SECOND_US) for n in range(60))
        )
        return [at_us for at_us in sent if at_us <= 5 * SECOND_US]

    sent = run_virtually(main)
    assert busiest_second(sent) <= max(rate * 12 // 10, rate + 1)
    assert rate * 5 * 0.85 <= len(sent) <= rate * 5 + 1


@pytest.mark.parametrize("rate", [7, 60, 1000])
def test_turns_that_are_not_used_are_not_lost(rate: int) -> None:
    """Three workers that were handed the same items: two of three intents do not land. The rate is used all the same, and
    holds."""

    async def main(clock: VirtualClock) -> list[int]:
        world, sent, tries = World(clock, rate), [], itertools.count()
        pacers = [await world.worker() for _ in range(3)]

        async def keep_trying(pacer: Pacer) -> None:
            while clock.steady_us() < 5 * SECOND_US:
                await pacer.turn()
                await asyncio.sleep(0.003)  # the intent
                if next(tries) % 3:
                    pacer.unused()
                    continue
                await pacer.guard(FOREVER_US)
                sent.append(clock.steady_us())

        await asyncio.gather(*(keep_trying(pacers[n % 3]) for n in range(48)))
        return [at_us for at_us in sent if at_us <= 5 * SECOND_US]

    sent = run_virtually(main)
    assert busiest_second(sent) <= max(rate * 12 // 10, rate + 1)
    assert rate * 5 * 0.8 <= len(sent) <= rate * 5 + 1


def test_a_stall_is_not_made_up_for() -> None:
    """A disk that stands still for three seconds gathers calls that had their turns: they do not leave as one burst."""

    async def main(clock: VirtualClock) -> list[int]:
        pacer, sent = await World(clock, 100).worker(), []
        disk = asyncio.Event()

        async def held_up() -> None:
            await pacer.turn()
            await disk.wait()
            await pacer.guard(FOREVER_US)
            sent.append(clock.steady_us())

        tasks = [asyncio.create_task(held_up()) for _ in range(300)]
        await asyncio.sleep(3)
        disk.set()
        await asyncio.gather(*tasks)
        return sent

    sent = run_virtually(main)
    assert len(sent) == 300 and busiest_second(sent) <= 120


def test_the_bucket_starts_empty() -> None:
    """Nothing is saved up before the first call."""

    async def main(clock: VirtualClock) -> list[int]:
        pacer, sent = await World(clock, 10).worker(), []
        await asyncio.gather(*(call(pacer, sent, clock) for _ in range(10)))
        return sent

    sent = run_virtually(main)
    assert sent[0] >= SECOND_US // 10 and sent[-1] >= 9 * SECOND_US // 10


def test_without_a_rate_nothing_waits() -> None:
    """A thousand calls leave at once."""

    async def main(clock: VirtualClock) -> list[int]:
        pacer, sent = await World(clock, None).worker(), []
        await asyncio.gather(*(call(pacer, sent, clock) for _ in range(1000)))
        return sent

    assert set(run_virtually(main)) == {0}


@pytest.mark.parametrize("wait_us", [1, 3 * SECOND_US, 120 * SECOND_US])
def test_a_wait_the_provider_asks_for_holds_for_all(wait_us: int) -> None:
    """After Retry-After nothing leaves before it is over: neither what waits for its turn nor what comes later."""

    async def main(clock: VirtualClock) -> list[int]:
        pacer, sent = await World(clock, None).worker(), []
        assert pacer.refused(retry_after_us=wait_us, is_rate=True) == wait_us
        await asyncio.gather(*(call(pacer, sent, clock) for _ in range(20)))
        return sent

    assert min(run_virtually(main)) >= wait_us


def test_a_later_shorter_wait_does_not_end_a_longer_one() -> None:
    """Of two waits the one that ends later counts; and none is longer than what stops the batch instead."""

    async def main(clock: VirtualClock) -> tuple[int, int]:
        pacer = await World(clock, None).worker()
        pacer.refused(retry_after_us=60 * SECOND_US, is_rate=True)
        pacer.refused(retry_after_us=SECOND_US, is_rate=True)
        first = pacer.slow_until_us - pacer.time.now_us()
        pacer.refused(retry_after_us=10 * LONGEST_WAIT_US, is_rate=True)
        return first, pacer.slow_until_us - pacer.time.now_us()

    assert run_virtually(main) == (60 * SECOND_US, LONGEST_WAIT_US)


def test_a_call_that_had_its_turn_waits_if_its_send_window_allows() -> None:
    """A short wait is waited for at the gate; a longer one is left to the gate, which gives the call back."""

    async def main(clock: VirtualClock) -> list[int]:
        pacer, passed = await World(clock, None).worker(), []
        now_us = pacer.time.now_us()
        pacer.refused(retry_after_us=SECOND_US, is_rate=True)
        await pacer.guard(now_us + SECOND_US)  # the window closes just when the wait ends
        passed.append(clock.steady_us())
        await pacer.guard(now_us + 2 * SECOND_US)
        passed.append(clock.steady_us())
        return passed

    assert run_virtually(main) == [0, SECOND_US]


def test_waits_for_a_turn_can_be_ended() -> None:
    """When a run stops, whoever waits for a turn has written nothing and is let go at once."""

    async def main(clock: VirtualClock) -> tuple[int, list[BaseException | None]]:
        pacer, sent = await World(clock, None).worker(), []
        pacer.refused(retry_after_us=600 * SECOND_US, is_rate=True)
        tasks = [asyncio.create_task(call(pacer, sent, clock)) for _ in range(5)]
        await asyncio.sleep(1)
        pacer.cancel_waiting()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert not sent
        return clock.steady_us(), ended

    at_us, ended = run_virtually(main)
    assert at_us == SECOND_US and all(isinstance(end, asyncio.CancelledError) for end in ended)


def test_one_stray_429_slows_nothing() -> None:
    """Many calls taken and one refused: its item waits a little, the batch goes on at its pace."""

    async def main(clock: VirtualClock) -> tuple[int | None, int]:
        pacer = await World(clock, None).worker()
        for _ in range(100):
            pacer.accepted()
        wait = pacer.refused(retry_after_us=None, is_rate=True)
        assert pacer.slow_until_us <= pacer.time.now_us()
        return pacer.pace.per_ks, wait

    per_ks, wait = run_virtually(main)
    assert per_ks is None and 1000 <= wait <= SECOND_US // 5


def test_an_unreachable_provider_is_asked_less_and_less() -> None:
    """Refused connections teach no pace, but the whole batch waits, longer each time, up to five seconds."""

    async def main(clock: VirtualClock) -> list[int]:
        pacer, waits = await World(clock, None).worker(), []
        for _ in range(40):
            waits.append(pacer.refused(retry_after_us=None, is_rate=False))
            assert pacer.slow_until_us > pacer.time.now_us() and pacer.pace.per_ks is None
            await pacer.time.sleep_until(pacer.slow_until_us)
        return waits

    waits = run_virtually(main)
    assert max(waits) <= 5 * SECOND_US and sum(waits[:4]) < sum(waits[20:24])


class Limited:
    """A provider that takes at most ``limit`` calls in any one second."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken: deque[int] = deque()

    def takes(self, now_us: int) -> bool:
        """Whether a call that arrives now is taken."""
        while self.taken and self.taken[0] <= now_us - SECOND_US:
            self.taken.popleft()
        if len(self.taken) >= self.limit:
            return False
        self.taken.append(now_us)
        return True


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("limit", [25, 200])
def test_finds_a_provider_s_limit(limit: int, workers: int) -> None:
    """Without a configured rate, in one process or two: in the second minute most of the limit is used, and hardly one
    call in six meets a 429 (which costs nothing but itself)."""

    async def main(clock: VirtualClock) -> list[tuple[int, bool]]:
        world, provider, calls = World(clock, None), Limited(limit), []
        pacers = [await world.worker() for _ in range(workers)]

        async def caller(pacer: Pacer) -> None:
            while clock.steady_us() < 120 * SECOND_US:
                await pacer.turn()
                await pacer.guard(FOREVER_US)
                took = provider.takes(clock.steady_us())
                calls.append((clock.steady_us(), took))
                await asyncio.sleep(0.05)
                if took:
                    pacer.accepted()
                else:
                    await asyncio.sleep(pacer.refused(retry_after_us=None, is_rate=True) / SECOND_US)

        async def heartbeat(pacer: Pacer) -> None:
            while clock.steady_us() < 120 * SECOND_US:
                await asyncio.sleep(2)
                pacer.follow(await world.ledger.renew(pacer.worker, lease_us=3600 * SECOND_US))
                await pacer.publish()

        beats = [heartbeat(pacer) for pacer in pacers]
        await asyncio.gather(*beats, *(caller(pacers[n % workers]) for n in range(32)))
        return calls

    calls = [took for at_us, took in run_virtually(main) if 60 * SECOND_US < at_us <= 120 * SECOND_US]
    assert limit * 60 * 0.5 < sum(calls) <= limit * 60
    assert calls.count(False) * 6 < len(calls)


def test_what_one_worker_learns_the_others_follow() -> None:
    """The pace and the wait go through the ledger; a slower pace counts, a faster one does not replace it."""

    async def main(clock: VirtualClock) -> None:
        world = World(clock, None)
        one, two = await world.worker(), await world.worker()
        one.pace, one.slow_until_us = Pace(20_000, 0), one.time.now_us() + 9 * SECOND_US
        await asyncio.sleep(3)
        await one.publish()
        two.follow(await world.ledger.renew(two.worker, lease_us=3600 * SECOND_US))
        assert (two.pace.per_ks, two.slow_until_us) == (20_000, one.slow_until_us)
        two.pace = Pace(5_000, 0)
        two.follow(await world.ledger.renew(two.worker, lease_us=3600 * SECOND_US))
        assert two.pace.per_ks == 5_000

    run_virtually(main)


def test_a_faster_pace_is_followed_where_nothing_else_was_learned() -> None:
    """What one worker finds out about more room holds for the others too, unless they have learned otherwise since."""

    async def main(clock: VirtualClock) -> None:
        world = World(clock, None)
        one, two = await world.worker(), await world.worker()
        for per_ks in (1_000, 3_000):
            one.pace = Pace(per_ks, 0)
            await asyncio.sleep(3)
            await one.publish()
            two.follow(await world.ledger.renew(two.worker, lease_us=3600 * SECOND_US))
            assert two.pace.per_ks == per_ks

    run_virtually(main)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_pace_that_was_cut_grows_again(workers: int) -> None:
    """However many processes there are: a minute after a storm none of them crawls."""

    async def main(clock: VirtualClock) -> list[int | None]:
        world = World(clock, None)
        pacers = [await world.worker() for _ in range(workers)]
        for pacer in pacers:
            pacer.pace = Pace(1_000, pacer.time.now_us(), pacer.time.now_us())

        async def calls(pacer: Pacer) -> None:
            while clock.steady_us() < 60 * SECOND_US:
                await pacer.turn()
                pacer.accepted()

        async def heartbeat(pacer: Pacer) -> None:
            while clock.steady_us() < 60 * SECOND_US:
                await asyncio.sleep(2)
                pacer.follow(await world.ledger.renew(pacer.worker, lease_us=3600 * SECOND_US))
                await pacer.publish()

        await asyncio.gather(*map(calls, pacers), *map(heartbeat, pacers))
        return [pacer.pace.per_ks for pacer in pacers]

    assert all(per_ks is not None and per_ks > 20_000 for per_ks in run_virtually(main))


def test_a_pace_of_processes_that_are_gone_is_forgotten() -> None:
    """A run that begins alone and knows of no limit writes so, and claims no more start times ahead until it has."""

    async def main(clock: VirtualClock) -> None:
        world = World(clock, 500)
        one = await world.worker()
        one.pace = Pace(1_000, 0)
        await asyncio.sleep(3)
        await one.publish()
        await world.ledger.leave(one.worker)
        two = await world.worker()
        await two.turn()
        assert not two._slots
        await two.publish()
        assert (await world.ledger.renew(two.worker, lease_us=SECOND_US)).pace_per_ks is None

    run_virtually(main)


def test_a_process_that_dies_takes_no_start_times_along() -> None:
    """Sixty tasks wait for their turns at two calls a second; whoever comes after them waits for one turn, not for sixty."""

    async def main(clock: VirtualClock) -> int:
        world = World(clock, 2)
        one = await world.worker()
        tasks = [asyncio.create_task(one.turn()) for _ in range(60)]
        await asyncio.sleep(3)
        for task in tasks:
            task.cancel()
        two = await world.worker()
        before = clock.steady_us()
        await two.turn()
        return clock.steady_us() - before

    assert run_virtually(main) <= 1_100_000


def test_a_call_that_cannot_leave_in_time_takes_no_place() -> None:
    """Ten calls a second apart, each with two seconds to leave: three go, the others hear at once that they do not, and
    what comes later finds its place."""

    async def main(clock: VirtualClock) -> tuple[list[bool], bool]:
        pacer = await World(clock, None).worker()
        pacer.pace = Pace(1_000, pacer.time.now_us())
        send_by = pacer.time.now_us() + 2 * SECOND_US
        went = await asyncio.gather(*(pacer.guard(send_by) for _ in range(10)))
        assert clock.steady_us() <= 2 * SECOND_US
        return list(went), await pacer.guard(pacer.time.now_us() + 2 * SECOND_US)

    went, later = run_virtually(main)
    assert sum(went) in (2, 3) and later


def test_what_was_learned_is_written_now_and_then() -> None:
    """At most every two seconds, and not at all where nothing changed."""

    async def main(clock: VirtualClock) -> int:
        world = World(clock, None)
        pacer = await world.worker()
        before = world.store.info().events
        for tenth in range(100):
            await asyncio.sleep(0.1)
            pacer.pace = Pace(10_000 + tenth, 0)
            await pacer.publish()
        written = world.store.info().events - before
        pacer.follow(await world.ledger.renew(pacer.worker, lease_us=3600 * SECOND_US))
        pacer.pace = Pace(pacer.worker.pace_per_ks, 0)
        await asyncio.sleep(10)
        now = world.store.info().events
        await pacer.publish()
        assert world.store.info().events == now
        return written

    assert 4 <= run_virtually(main) <= 6


def test_the_ledger_s_time_is_carried_on_by_the_steady_clock() -> None:
    """Anchored once; it runs with the clock that counts suspended time, and a sleep ends exactly then."""

    async def main(clock: VirtualClock) -> None:
        time = LedgerTime.at(clock, 5_000)
        await asyncio.sleep(2)
        assert time.now_us() == 5_000 + 2 * SECOND_US
        await time.sleep_until(5_000 + 3 * SECOND_US)
        assert time.now_us() == 5_000 + 3 * SECOND_US
        await time.sleep_until(0)
        assert time.now_us() == 5_000 + 3 * SECOND_US

    run_virtually(main)


def test_a_worker_that_heard_late_of_its_joining_is_not_late_for_good() -> None:
    """Its time is the ledger's from the instant it joined, not from when it heard of it; where that instant is not told, or
    cannot be true, from then on."""

    async def main(clock: VirtualClock) -> None:
        asked = clock.steady_us()
        await asyncio.sleep(5)
        joined = clock.steady_us()
        await asyncio.sleep(60)
        told = Worker("b", 1, 0, 1_000_000, BatchState.RUNNING, steady_us=joined)
        assert LedgerTime.of(clock, told, asked_us=asked).now_us() == 61_000_000
        for nothing in (0, clock.steady_us() + 1):
            untold = replace(told, steady_us=nothing)
            assert LedgerTime.of(clock, untold, asked_us=asked + 1).now_us() == 1_000_000

    run_virtually(main)


def test_spacing_saves_up_a_tenth_of_a_second() -> None:
    """After a pause, at most a tenth of a second's worth leaves at once."""

    async def main(clock: VirtualClock) -> list[int]:
        time, spacing, gone = LedgerTime.at(clock, 10**9), Spacing(), []
        await asyncio.sleep(60)
        for _ in range(50):
            await spacing.wait(100_000, time)
            gone.append(clock.steady_us())
        return gone

    gone = run_virtually(main)
    assert sum(at_us == gone[0] for at_us in gone) <= 11
    assert gone[-1] - gone[0] >= 380_000


def test_a_window_looks_one_second_back() -> None:
    """Rates are measured over the last second, or over what there is of it; with few answers over the last twenty."""
    window = Window()
    for n in range(50):
        window.took(n * 10_000)
    assert window.taken_per_s(490_000) == pytest.approx(100, rel=0.05)
    assert window.taken_per_s(1_490_000) == pytest.approx(17, abs=2)
    assert window.taken_per_s(10**9) == 0


@pytest.mark.parametrize(
    ("taken", "limited", "is_limit"),
    [(0, 1, False), (0, 5, True), (100, 1, False), (100, 30, True), (3, 4, False), (15, 5, True)],
)
def test_when_429s_are_a_limit(taken: int, limited: int, is_limit: bool) -> None:
    """A fifth of the calls or more and five at least."""
    window = Window()
    for _ in range(taken):
        window.took(0)
    for _ in range(limited):
        window.refused(0)
    assert window.is_limit(0) == is_limit


def test_the_lower_of_rate_and_pace_counts() -> None:
    """What was configured is never exceeded, whatever was learned; and what was learned holds below it."""

    async def main(clock: VirtualClock) -> list[int | None]:
        pacer = await World(clock, 50).worker()
        found = []
        for pace in (None, 20_000, 80_000):
            pacer.pace = Pace(pace, 0)
            found.append(pacer.effective_per_ks)
        return found

    assert run_virtually(main) == [50_000, 20_000, 50_000]
    assert Limits().rate_per_ks is None


def test_stray_429s_do_not_bring_a_batch_to_a_standstill() -> None:
    """One call in twenty meets a stray 429, the very first among them: the batch keeps its speed."""

    async def main(clock: VirtualClock) -> int:
        world, calls = World(clock, None), [0]
        pacer = await world.worker()

        async def caller() -> None:
            while clock.steady_us() < 20 * SECOND_US:
                await pacer.turn()
                await pacer.guard(FOREVER_US)
                calls[0] += 1
                stray = calls[0] % 20 == 1
                await asyncio.sleep(0.02)
                if stray:
                    await asyncio.sleep(pacer.refused(retry_after_us=None, is_rate=True) / SECOND_US)
                else:
                    pacer.accepted()

        await asyncio.gather(*(caller() for _ in range(16)))
        return calls[0]

    assert run_virtually(main) > 20 * 16 * 20
