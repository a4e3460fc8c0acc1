"""When the next call may go: the configured rate, what 429 answers taught, and waits the provider asked for.

The rate holds over all workers of a batch: start times come from the ledger. What a 429 teaches (a pace, a wait) is
applied here at once and written to the ledger, from where the other workers take it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass, field

from payonce.core.backoff import LONGEST_WAIT_US, Pace, full_jitter_us
from payonce.core.commands import BatchCommand, Control
from payonce.core.model import SECOND_US, Actor, Worker
from payonce.engine.ports import Clock, EngineLedger
from payonce.engine.window import Window

_PUBLISH_EVERY_US = 2 * SECOND_US


@dataclass(slots=True)
class LedgerTime:
    """The ledger's clock as this process sees it: its time at one instant, carried on by the steady clock."""

    clock: Clock
    ledger_us: int
    steady_us: int

    @classmethod
    def at(cls, clock: Clock, ledger_us: int) -> LedgerTime:
        """Anchored at a time the ledger has just told."""
        return cls(clock, ledger_us, clock.steady_us())

    @classmethod
    def of(cls, clock: Clock, worker: Worker, *, asked_us: int) -> LedgerTime:
        """Anchored at the instant a worker joined, which it asked for at ``asked_us`` of its steady clock. Whoever was
        suspended before it heard of it would be late by that for good, and its calls would seem older than they are."""
        now_us = clock.steady_us()
        joined_us = worker.steady_us if asked_us <= worker.steady_us <= now_us else now_us
        return cls(clock, worker.now_us, joined_us)

    def now_us(self) -> int:
        """The ledger's time now, never running backwards."""
        return self.ledger_us + self.clock.steady_us() - self.steady_us

    def at_steady(self, steady_us: int) -> int:
        """The ledger's time at an instant of the steady clock."""
        return self.ledger_us + steady_us - self.steady_us

    async def sleep_until(self, at_us: int) -> None:
        """Returns at a ledger time, or at once if it has passed."""
        wait = at_us - self.now_us()
        if wait > 0:
            await asyncio.sleep(wait / SECOND_US)


@dataclass(slots=True)
class Spacing:
    """Lets one thing through at a time at a rate, with at most a tenth of a second's worth saved up."""

    next_us: int = 0

    async def wait(self, rate_per_ks: int | None, time: LedgerTime, *, before_us: int | None = None) -> bool:
        """Returns when the next one may go; at once where there is no rate. False, at once and without taking a place,
        where that is not before ``before_us``: a place for what cannot go any more would only hold up the others, and a
        queue that is once longer than the time to send would stay so."""
        if rate_per_ks is None:
            return True
        now = time.now_us()
        at = max(self.next_us, now - SECOND_US // 10)
        if before_us is not None and at >= before_us:
            return False
        self.next_us = at + 1000 * SECOND_US // rate_per_ks
        await time.sleep_until(at)
        return True


@dataclass(slots=True)
class Pacer:
    """Lets calls go at the right time. One per process and batch."""

    ledger: EngineLedger
    batch: str
    actor: Actor
    clock: Clock
    time: LedgerTime
    worker: Worker
    rate_per_ks: int | None
    pace: Pace = field(default_factory=Pace)
    slow_until_us: int = 0
    _slots: deque[int] = field(default_factory=deque)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _freed: asyncio.Event = field(default_factory=asyncio.Event)
    _window: Window = field(default_factory=Window)
    _turns: Spacing = field(default_factory=Spacing)
    _sends: Spacing = field(default_factory=Spacing)
    _unused: deque[int] = field(default_factory=deque)
    _waiting: set[asyncio.Task[object]] = field(default_factory=set)
    _bursts: int = 0
    _published_us: int = 0
    _told_per_ks: int | None = None  # the ledger's pace as this process saw or wrote it last

    @property
    def effective_per_ks(self) -> int | None:
        """Calls per 1,000 s that may go now: the configured rate or the learned pace, whichever is less."""
        rate, pace = self.rate_per_ks, self.pace.per_ks
        if rate is None or pace is None:
            return pace if rate is None else rate
        return min(rate, pace)

    @property
    def is_free(self) -> bool:
        """Whether calls may go as they come: no rate, no learned pace, and no wait was ever asked for."""
        return not self.slow_until_us and self.rate_per_ks is None and self.pace.per_ks is None

    async def turn(self) -> None:
        """Returns when this process may prepare its next call."""
        if self.is_free:
            return
        if self.effective_per_ks is None and self.slow_until_us <= self.time.now_us():
            return
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            while self.slow_until_us > self.time.now_us():
                await self.time.sleep_until(self.slow_until_us)
            if self._takes_unused():
                return
            if self.rate_per_ks is not None and await self._slot():
                return
            await self._turns.wait(self.effective_per_ks, self.time)
        finally:
            self._waiting.discard(task)

    def unused(self) -> None:
        """A turn was not used, since another worker was quicker with its item: whoever asks for one within a tenth of a
        second has it. Otherwise workers that hold the same items would use up each other's rate."""
        if not self.is_free:
            self._unused.append(self.time.now_us())
            self._freed.set()

    def _takes_unused(self) -> bool:
        horizon = self.time.now_us() - SECOND_US // 10
        while self._unused and self._unused[0] < horizon:
            self._unused.popleft()
        return bool(self._unused) and self._unused.popleft() >= horizon

    def cancel_waiting(self) -> None:
        """Ends the waits for a turn: whoever waits there has written no intent and sends nothing."""
        for task in tuple(self._waiting):
            task.cancel()

    async def _slot(self) -> bool:
        """Returns at a start time that the ledger gave to this process; before it, with True, where a turn was not used.

        Nobody asks for the next one before the last has come: those that a process has claimed ahead are lost to the
        others when it dies."""
        async with self._lock:
            horizon = self.time.now_us() - SECOND_US // 10
            while self._slots and self._slots[0] < horizon:
                self._slots.popleft()
            if not self._slots:
                rate = min(r for r in (self.effective_per_ks, self.worker.pace_per_ks, 1_000_000_000) if r)
                self._slots.extend(await self.ledger.slots(self.worker, count=max(1, min(rate // 10_000, 1000))))
            while (wait := self._slots[0] - self.time.now_us()) > 0:
                self._freed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait / SECOND_US):
                        await self._freed.wait()
                if self._takes_unused():
                    return True
                if not self._slots:  # a 429 taught another pace meanwhile
                    break
            if self._slots:
                self._slots.popleft()
            return False

    async def guard(self, send_by_us: int) -> bool:
        """The last spacing before a call leaves: a stall of the disk may gather calls that had their turns, and they
        must not go out as one burst. A wait of the whole batch is waited for here if it ends before ``send_by_us``.
        False where the call's place comes after that: then it must not be sent, and takes no place."""
        if self.is_free:
            return True
        if self.time.now_us() < self.slow_until_us < send_by_us:
            await self.time.sleep_until(self.slow_until_us)
        return await self._sends.wait(self.effective_per_ks, self.time, before_us=send_by_us)

    def accepted(self) -> int:
        """The provider took a call: it answered with anything but a 429. Returns the time of that."""
        now = self.time.now_us()
        self._window.took(now)
        self._bursts = 0
        if self.pace.per_ks is not None and not self._window.limited(now):
            self.pace = self.pace.grow(now_us=now)
        return now

    def refused(self, *, retry_after_us: int | None, is_rate: bool) -> int:
        """A 429, or a connection that was refused. Returns the wait for its item in microseconds.

        The whole batch waits as well where the provider says how long, where it cannot be reached, or where 429s are
        more than a stray one among many calls; then the pace is cut to what was taken.
        """
        now = self.time.now_us()
        if retry_after_us is not None:
            wait = min(retry_after_us, LONGEST_WAIT_US)
            self.slow_until_us = max(self.slow_until_us, now + wait)
        if is_rate:
            self._window.refused(now)
            if self._window.is_limit(now):
                self._cut(now)
            elif self._window.is_barred(now):
                self._bursts += 1
            elif retry_after_us is None:
                return full_jitter_us(1, rand=self.clock.rand())
        else:
            self._bursts += 1
        if retry_after_us is not None:
            return wait
        cap = SECOND_US if is_rate else 5 * SECOND_US
        wait = full_jitter_us(min(self._bursts, 8), rand=self.clock.rand(), base_us=SECOND_US // 10, cap_us=cap)
        if self.slow_until_us <= now:
            self.slow_until_us = now + wait
        return wait

    def _cut(self, now_us: int) -> None:
        before = self.pace
        accepted = self._window.taken_per_s(now_us) * (1 + self.worker.others)
        self.pace = before.cut(accepted_per_s=accepted, now_us=now_us)
        if self.pace is not before:
            self._bursts += 1
            self._slots.clear()

    async def publish(self) -> None:
        """Writes what was learned to the ledger, at most every two seconds."""
        now = self.time.now_us()
        known = (self.pace.per_ks, self.slow_until_us)
        if (
            known == (self.worker.pace_per_ks, self.worker.slow_until_us)
            or now - self._published_us < _PUBLISH_EVERY_US
        ):
            return
        self._published_us = now
        control = Control(
            BatchCommand.SLOW,
            reason="the provider's rate limit",
            slow_until_us=self.slow_until_us,
            pace_per_ks=self.pace.per_ks or 0,  # where it knows of none, what earlier processes had learned is over
        )
        await self.ledger.control(self.batch, control, actor=self.actor, worker=self.worker)
        self._told_per_ks = self.pace.per_ks

    def follow(self, worker: Worker) -> None:
        """Takes over what the ledger knows: another worker may have met the limit, or found that there is more room.

        What the ledger said before is no news: a pace that has grown since must not be cut back to it again and again.
        News that are faster do not replace what this process has learned itself since."""
        self.worker = worker
        if worker.slow_until_us > self.slow_until_us:
            self.slow_until_us = worker.slow_until_us
        own, told, theirs = self.pace.per_ks, self._told_per_ks, worker.pace_per_ks
        self._told_per_ks = theirs
        if not worker.others or theirs is None or theirs == told:
            return
        if own is None or own == told or theirs < own:
            self.pace = Pace(theirs, self.time.now_us())
