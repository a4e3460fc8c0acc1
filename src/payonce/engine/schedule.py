"""What this process holds in memory of a batch: a few items that are ready, due or waiting, never all of them.

The ledger is the memory: whatever does not fit here is dropped and found again in the next sweep. One item at a time
per target is in hand; the ledger enforces the same over all processes. A pending item that comes from a dead worker takes
its target from planned ones, and replaces what was known of it as planned.
"""

from __future__ import annotations

import heapq
from collections import deque

from payonce.core.model import Item
from payonce.core.values import value

WAITING_LIMIT = 4096


@value
class Task:
    """One piece of work: a planned item to send, or a pending one (by its place) whose resolution is due."""

    n: int
    target: str
    item: Item | None


class Schedule:
    """Ready, due and waiting work. All times are the ledger's clock in microseconds."""

    def __init__(self) -> None:
        self._ready: deque[Item] = deque()
        self._later: list[tuple[int, int, Item]] = []
        self._due: list[tuple[int, int, str]] = []
        self._waiting: dict[str, deque[Item]] = {}
        self._waiting_count = 0
        self._owner: dict[str, int] = {}  # the item that holds each target
        self._sent: dict[str, int] = {}  # the planned item in hand on each target
        self._held: set[int] = set()
        self._resolving: set[int] = set()
        self._if_dropped: dict[int, int] = {}  # when to resolve an item in hand that cannot be sent
        self.active = 0
        self.moved = 0  # how often work was handed back with something done

    @property
    def ready(self) -> int:
        """How many items could be sent now."""
        return len(self._ready)

    @property
    def resolving(self) -> int:
        """How many pending items wait for their resolution."""
        return len(self._due)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in hand: no work in progress, none ready, due or waiting."""
        return not (self.active or self._ready or self._later or self._due or self._waiting_count)

    def offer(self, item: Item, *, now_us: int) -> None:
        """A planned item from the ledger. One that is in hand already, or too many on one target, is not taken."""
        if item.n in self._held:
            return
        if item.not_before_us > now_us:
            if len(self._later) < WAITING_LIMIT:
                self._held.add(item.n)
                heapq.heappush(self._later, (item.not_before_us, item.n, item))
            return
        self._held.add(item.n)
        self._enqueue(item)

    def _enqueue(self, item: Item) -> None:
        if item.target not in self._owner:
            self._owner[item.target] = item.n
            self._ready.append(item)
        elif self._waiting_count < WAITING_LIMIT:
            self._waiting.setdefault(item.target, deque()).append(item)
            self._waiting_count += 1
        else:
            self._held.discard(item.n)

    def resolve_at(self, n: int, target: str, at_us: int) -> None:
        """A pending item is to be resolved at a time; it holds its target. One that is being resolved already is not
        resolved twice. One that is in hand as planned is resolved only where it turns out that it cannot be sent: if its
        call is on its way, it is this process's own by now, and decided by what becomes of that."""
        if n in self._resolving:
            return
        if self._sent.get(target) == n:
            self._if_dropped[n] = at_us
            return
        if n in self._held:
            self._forget_planned(n)
        self._push_due(n, target, at_us)

    def _forget_planned(self, n: int) -> None:
        """The item was planned when it was offered, but another worker has sent it since."""
        self._ready = deque(item for item in self._ready if item.n != n)
        self._later = [entry for entry in self._later if entry[1] != n]
        heapq.heapify(self._later)
        left = {target: deque(i for i in queue if i.n != n) for target, queue in self._waiting.items()}
        self._waiting = {target: queue for target, queue in left.items() if queue}
        self._waiting_count = sum(map(len, self._waiting.values()))

    def _push_due(self, n: int, target: str, at_us: int) -> None:
        self._resolving.add(n)
        self._held.add(n)
        self._owner[target] = n
        heapq.heappush(self._due, (at_us, n, target))

    def take(self, now_us: int) -> Task | None:
        """The next piece of work, resolutions first; None if there is none now. Whoever takes it must hand it back
        through ``finish``, ``drop``, ``again`` or ``reschedule``."""
        while self._later and self._later[0][0] <= now_us:
            self._enqueue(heapq.heappop(self._later)[2])
        if self._due and self._due[0][0] <= now_us:
            _, n, target = heapq.heappop(self._due)
            self.active += 1
            return Task(n, target, None)
        while self._ready:
            item = self._ready.popleft()
            if self._owner.get(item.target) != item.n:
                self._enqueue(item)  # a pending item took its target meanwhile
                continue
            self.active += 1
            self._sent[item.target] = item.n
            return Task(item.n, item.target, item)
        return None

    def next_us(self) -> int | None:
        """When the next timed work is due, or None."""
        times = [heap[0][0] for heap in (self._later, self._due) if heap]
        return min(times) if times else None

    def finish(self, n: int, target: str) -> None:
        """The item is decided, or another worker's: it and its target are free."""
        self.moved += 1
        self._if_dropped.pop(n, None)
        self.drop(n, target)

    def drop(self, n: int, target: str) -> None:
        """The item is planned still, and may not be sent now: the ledger hands it out again in the next sweep."""
        at_us = self._if_dropped.get(n)
        self.active -= 1
        self._held.discard(n)
        self._release(n, target)
        if at_us is not None:
            self._push_due(n, target, at_us)

    def drop_target(self, n: int, target: str) -> None:
        """The same where something else is on the target: what waits for it would meet that too, and is let go with it."""
        for item in self._waiting.pop(target, ()):
            self._held.discard(item.n)
            self._waiting_count -= 1
        self.drop(n, target)

    def again(self, item: Item) -> None:
        """The item is planned again, to be sent not before its ``not_before_us``."""
        self.moved += 1
        self.active -= 1
        self._release(item.n, item.target)
        if len(self._later) < WAITING_LIMIT:
            heapq.heappush(self._later, (item.not_before_us, item.n, item))
        else:
            self._held.discard(item.n)

    def reschedule(self, n: int, target: str, at_us: int) -> None:
        """The item stays pending and is to be looked at again at a time; its target stays taken."""
        self.moved += 1
        self.active -= 1
        self._put_down(n, target)
        self._push_due(n, target, at_us)

    def _release(self, n: int, target: str) -> None:
        """The item does not hold its target any more: the next one that waits for it is ready, unless the item took it
        from a planned one that is still in hand."""
        self._resolving.discard(n)
        self._put_down(n, target)
        if self._owner.get(target) != n:
            return
        if target in self._sent:
            self._owner[target] = self._sent[target]
            return
        del self._owner[target]
        waiting = self._waiting.get(target)
        if not waiting:
            return
        item = waiting.popleft()
        self._waiting_count -= 1
        self._owner[target] = item.n
        self._ready.appendleft(item)
        if not waiting:
            del self._waiting[target]

    def _put_down(self, n: int, target: str) -> None:
        if self._sent.get(target) == n:
            del self._sent[target]
            self._if_dropped.pop(n, None)
