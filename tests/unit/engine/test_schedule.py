"""What a process holds of a batch: one item at a time per target, nothing twice, nothing lost."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from payonce.core.model import Item
from payonce.engine import schedule as module
from payonce.engine.schedule import Schedule, Task


def item(n: int, target: str = "", *, at_us: int = 0, generation: int = 0) -> Item:
    """A planned item."""
    return Item(n, f"r{n}", target or f"t{n}", None, {}, not_before_us=at_us, generation=generation)


def taken(schedule: Schedule, now_us: int = 0) -> list[int]:
    """Everything that can be taken now, in order."""
    found = []
    while (task := schedule.take(now_us)) is not None:
        found.append(task.n)
    return found


def test_items_leave_in_input_order() -> None:
    """What was offered first is sent first."""
    schedule = Schedule()
    for n in (1, 2, 3):
        schedule.offer(item(n), now_us=0)
    assert taken(schedule) == [1, 2, 3]


def test_an_item_in_hand_is_not_taken_again() -> None:
    """A sweep may offer it again at any time: ready, in work, waiting for its time, or being resolved."""
    schedule = Schedule()
    for n in (1, 2, 3):
        schedule.offer(item(n), now_us=0)
    assert [schedule.take(0) and None for _ in range(3)] == [None] * 3
    schedule.again(item(2, at_us=50))
    schedule.reschedule(3, "t3", 60)
    for n in (1, 2, 3):
        schedule.offer(item(n), now_us=0)
    assert taken(schedule, 0) == []
    assert taken(schedule, 60) == [3, 2]


def test_one_target_one_item_at_a_time() -> None:
    """The second waits until the first is decided, planned again or given back; a pending one keeps its target."""
    schedule = Schedule()
    for n in (1, 2, 3):
        schedule.offer(item(n, "t"), now_us=0)
    assert taken(schedule) == [1]
    schedule.reschedule(1, "t", 100)
    assert taken(schedule, 99) == []
    assert taken(schedule, 100) == [1]
    schedule.finish(1, "t")
    assert taken(schedule, 100) == [2]
    schedule.again(item(2, "t", at_us=500))
    assert taken(schedule, 100) == [3]
    assert taken(schedule, 500) == []
    schedule.drop(3, "t")
    assert taken(schedule, 500) == [2]
    schedule.finish(2, "t")
    assert schedule.is_empty


def test_resolutions_go_first() -> None:
    """What may have been executed is cleared up before anything new is sent."""
    schedule = Schedule()
    schedule.offer(item(1), now_us=0)
    schedule.resolve_at(9, "t9", 0)
    assert taken(schedule) == [9, 1]


def test_when_to_look_again() -> None:
    """The earliest time of what is due or waits; None where nothing is timed."""
    schedule = Schedule()
    assert schedule.next_us() is None
    schedule.offer(item(1, at_us=70), now_us=0)
    schedule.resolve_at(2, "t2", 90)
    assert schedule.next_us() == 70
    assert taken(schedule, 70) == [1]
    assert schedule.next_us() == 90


def test_what_waits_for_a_busy_target_is_let_go_with_it() -> None:
    """Where the ledger says that something else is on a target, the items that wait for it are not tried one by one: all are
    let go, and the next sweep may offer any of them."""
    schedule = Schedule()
    for n in (1, 2, 3):
        schedule.offer(item(n, "t"), now_us=0)
    schedule.offer(item(4), now_us=0)
    assert schedule.take(0) is not None
    schedule.drop_target(1, "t")
    assert taken(schedule) == [4]
    schedule.finish(4, "t4")
    assert schedule.is_empty
    for n in (3, 1):
        schedule.offer(item(n, "t"), now_us=0)
    assert taken(schedule) == [3]


def test_a_dead_worker_s_item_takes_its_target() -> None:
    """A planned item that was ready on that target waits until it is resolved."""
    schedule = Schedule()
    schedule.offer(item(1, "t"), now_us=0)
    schedule.resolve_at(2, "t", 0)
    assert taken(schedule) == [2]
    schedule.finish(2, "t")
    assert taken(schedule) == [1]


def test_an_item_in_hand_is_not_resolved_beside_its_call() -> None:
    """It was taken over, planned again and is being sent when the news of the take-over come: its own call decides it. Only
    where it could not be sent, since another worker's call is out for it, is it resolved."""
    for landed in (True, False):
        schedule = Schedule()
        schedule.offer(item(1), now_us=0)
        assert taken(schedule) == [1]
        schedule.resolve_at(1, "t1", 0)
        assert taken(schedule) == []
        if landed:
            schedule.finish(1, "t1")
            assert schedule.is_empty
        else:
            schedule.drop(1, "t1")
            assert schedule.take(0) == Task(1, "t1", None)


def test_a_dead_worker_s_item_that_was_known_as_planned() -> None:
    """It is only resolved: what was known of it, its old generation included, is forgotten."""
    for at_us in (0, 5):
        schedule = Schedule()
        schedule.offer(item(1, "t", at_us=at_us), now_us=0)
        schedule.offer(item(2, "t"), now_us=0)
        schedule.resolve_at(1, "t", 0)
        assert taken(schedule, 10) == [1]
        schedule.again(item(1, "t", at_us=20, generation=1))
        assert taken(schedule, 10) == [2]
        schedule.finish(2, "t")
        task = schedule.take(20)
        assert task is not None and task.item is not None and task.item.generation == 1
        schedule.finish(1, "t")
        assert taken(schedule, 20) == [] and schedule.is_empty


def test_an_item_is_resolved_once_at_a_time() -> None:
    """Found twice among the dead workers' items, it is still one piece of work."""
    schedule = Schedule()
    schedule.resolve_at(1, "t", 5)
    schedule.resolve_at(1, "t", 5)
    assert taken(schedule, 5) == [1]
    schedule.resolve_at(1, "t", 5)
    assert taken(schedule, 5) == []
    schedule.finish(1, "t")
    assert schedule.is_empty


def test_what_does_not_fit_is_found_again() -> None:
    """A million items on one target: a few are held, the rest is left to later sweeps."""
    schedule = Schedule()
    for n in range(1, module.WAITING_LIMIT + 100):
        schedule.offer(item(n, "t"), now_us=0)
    first = schedule.take(0)
    assert first is not None
    schedule.offer(item(module.WAITING_LIMIT + 50, "t"), now_us=0)
    seen = [first.n]
    schedule.finish(first.n, "t")
    while (task := schedule.take(0)) is not None:
        seen.append(task.n)
        schedule.finish(task.n, "t")
    assert len(seen) == module.WAITING_LIMIT + 1
    assert schedule.is_empty
    schedule.offer(item(module.WAITING_LIMIT + 50, "t"), now_us=0)
    assert taken(schedule) == [module.WAITING_LIMIT + 50]


@dataclass
class Truth:
    """An item as the ledger knows it: planned, pending (here or with a dead worker), or decided."""

    item: Item
    state: str = "planned"


class Sweeps(RuleBasedStateMachine):
    """Any order of sweeps, calls, answers and deaths of other workers, against what the ledger knows."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule = Schedule()
        self.now_us = 0
        self.items: dict[int, Truth] = {}
        self.active: dict[int, Task] = {}

    @initialize(on=st.lists(st.sampled_from("abc"), min_size=1, max_size=8))
    def seal(self, on: list[str]) -> None:
        """Items on few targets."""
        self.items = {n: Truth(item(n, target)) for n, target in enumerate(on, start=1)}

    @rule()
    def sweep(self) -> None:
        """The ledger hands out what is planned, whether it is in hand here or not."""
        for truth in self.items.values():
            if truth.state == "planned":
                self.schedule.offer(truth.item, now_us=self.now_us)

    @rule(us=st.integers(0, 50))
    def wait(self, us: int) -> None:
        """Time passes."""
        self.now_us += us

    @rule()
    def take(self) -> None:
        """One piece of work: never an item twice, never a decided one, never before its time."""
        task = self.schedule.take(self.now_us)
        if task is None:
            return
        truth = self.items[task.n]
        assert task.n not in self.active
        assert truth.state == ("pending" if task.item is None else "planned")
        if task.item is not None:
            assert task.item == truth.item and task.item.not_before_us <= self.now_us
        self.active[task.n] = task

    @invariant()
    def one_item_per_target(self) -> None:
        """No two pieces of work on one target, but for a planned one that another worker's pending item overtook; the
        ledger refuses its intent."""
        pending = {truth.item.target for truth in self.items.values() if truth.state == "pending"}
        targets = [t.target for t in self.active.values() if t.item is None or t.target not in pending]
        assert len(targets) == len(set(targets))
        assert self.schedule.active == len(self.active)

    def _overtaken(self, task: Task) -> bool:
        return task.item is not None and any(
            truth.state == "pending" and truth.item.target == task.target for truth in self.items.values()
        )

    @precondition(lambda self: self.active)
    @rule(data=st.data(), after=st.sampled_from(["decided", "planned", "pending", "dropped"]), us=st.integers(0, 80))
    def hand_back(self, data: st.DataObject, after: str, us: int) -> None:
        """A piece of work ends in one of its four ways."""
        task = self.active.pop(data.draw(st.sampled_from(sorted(self.active))))
        truth = self.items[task.n]
        if self._overtaken(task) or (after == "dropped" and task.item is not None):
            self.schedule.drop(task.n, task.target)
        elif after == "planned":
            truth.state = "planned"
            truth.item = replace(truth.item, not_before_us=self.now_us + us, generation=truth.item.generation + 1)
            self.schedule.again(truth.item)
        elif after == "decided":
            truth.state = "decided"
            self.schedule.finish(task.n, task.target)
        else:
            truth.state = "pending"
            self.schedule.reschedule(task.n, task.target, self.now_us + us)

    @rule(data=st.data(), us=st.integers(0, 30))
    def another_worker_dies(self, data: st.DataObject, us: int) -> None:
        """Another process sent a planned item and died; the item is taken over."""
        held = {truth.item.target for truth in self.items.values() if truth.state == "pending"}
        free = [
            n
            for n, truth in self.items.items()
            if truth.state == "planned" and n not in self.active and truth.item.target not in held
        ]
        if free:
            n = data.draw(st.sampled_from(free))
            self.items[n].state = "pending"
            self.schedule.resolve_at(n, self.items[n].item.target, self.now_us + us)

    def teardown(self) -> None:
        """From wherever it stands, sweeps alone bring every item to its end: nothing was lost."""
        for _ in range(10 * len(self.items) + 10):
            self.now_us += 100
            self.sweep()
            while (task := self.schedule.take(self.now_us)) is not None:
                self.active[task.n] = task
            for task in list(self.active.values()):
                del self.active[task.n]
                if self._overtaken(task):
                    self.schedule.drop(task.n, task.target)
                else:
                    self.items[task.n].state = "decided"
                    self.schedule.finish(task.n, task.target)
        assert {truth.state for truth in self.items.values()} <= {"decided"}
        assert self.schedule.is_empty


Sweeps.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSweeps = Sweeps.TestCase
