"""A clock that was set between a call and the start that resolves it: waits hold, keys look older, leases live."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from payonce.core.commands import BatchCommand, Change, Control, Intend, Landed
from payonce.core.model import SECOND_US, Actor, BatchSpec, NewItem, OpenIntent, Request, Worker
from payonce.core.states import BatchState, ItemEvent
from payonce.ledger.memory import MemoryLedger

HOUR_US = 3600 * SECOND_US
START_US = 1_700_000_000 * SECOND_US


@dataclass
class Machine:
    """One machine: a wall clock that people set, a steady clock that they cannot."""

    real_us: int = 0
    set_us: int = 0
    boot: str = "boot-1"
    dead: bool = False

    def wall(self) -> int:
        return START_US + self.real_us + self.set_us

    def actor(self) -> Actor:
        return Actor(host="h", pid=1, boot=self.boot, steady_us=1 + self.real_us)

    def steady(self, actor: Actor) -> int | None:
        return 1 + self.real_us if actor.boot == self.boot else None


def sent(machine: Machine) -> MemoryLedger:
    """A batch of one item, whose call was sent by a first worker."""
    store = MemoryLedger(clock=machine.wall, is_alive=lambda actor: not machine.dead, steady=machine.steady)
    store.seal(BatchSpec("b", "call", "simulator", targets=True), [NewItem("r1", None)], seal="x", actor=Actor())
    worker = store.join("b", actor=machine.actor(), lease_us=30 * SECOND_US)
    store.control("b", Control(BatchCommand.START), actor=Actor(), worker=worker)
    send_by = machine.wall() + 2 * SECOND_US
    intent = Intend(1, ItemEvent.INTENT, 0, 0, "key", Request("POST", "/"), send_by, send_by + 5 * SECOND_US)
    assert store.write(worker, [intent]) == (Landed.LANDED,)
    return store


def taken_over(machine: Machine, store: MemoryLedger) -> tuple[Worker, tuple[OpenIntent, ...]]:
    worker = store.join("b", actor=machine.actor(), lease_us=30 * SECOND_US)
    return worker, store.take_over(worker, limit=10)


@pytest.mark.parametrize("hours", [0, 1, 24])
def test_a_clock_set_forward_ends_no_wait(hours: int) -> None:
    """Five real seconds after the call its send-by time is three seconds ago, whatever the wall clock shows."""
    machine = Machine()
    store = sent(machine)
    machine.real_us, machine.set_us, machine.dead = 5 * SECOND_US, hours * HOUR_US, True
    worker, (intent,) = taken_over(machine, store)
    assert worker.now_us - intent.send_by_us == 3 * SECOND_US
    assert intent.deadline_us - intent.send_by_us == 5 * SECOND_US
    # The key may look older, never younger.
    assert worker.now_us - intent.first_sent_us >= 5 * SECOND_US


def test_a_clock_set_back_makes_no_key_young() -> None:
    """A key that was first sent thirty hours ago is thirty hours old, though the clock was set back by a day."""
    machine = Machine()
    store = sent(machine)
    machine.real_us, machine.set_us, machine.dead = 30 * HOUR_US, -24 * HOUR_US, True
    worker, (intent,) = taken_over(machine, store)
    assert worker.now_us - intent.first_sent_us == 30 * HOUR_US


def test_a_lease_that_lives_is_not_stolen() -> None:
    """An hour forward on the clock does not end the lease of a process that lives; when its time is truly over it ends."""
    machine = Machine()
    store = sent(machine)
    machine.real_us, machine.set_us = 5 * SECOND_US, HOUR_US
    assert taken_over(machine, store)[1] == ()
    machine.real_us = 75 * SECOND_US
    assert len(taken_over(machine, store)[1]) == 1


def test_another_boot_or_machine_tells_nothing() -> None:
    """Steady clocks of two boots have nothing in common: the ledger's clock stands."""
    machine = Machine()
    store = sent(machine)
    machine.real_us, machine.boot, machine.dead = 60 * SECOND_US, "boot-2", True
    worker, (intent,) = taken_over(machine, store)
    assert worker.now_us - intent.send_by_us == 58 * SECOND_US


@pytest.mark.parametrize("back", [False, True])
def test_a_lease_that_lives_is_not_stolen_after_joining(back: bool) -> None:
    """Nor does it end where the clock is set between the joining of another worker and its taking over, or was set back
    while the first one renewed its lease and is right again."""
    machine = Machine(set_us=HOUR_US if back else 0)
    store = sent(machine)
    machine.set_us = 0
    first = Worker("b", 1, 0, 0, BatchState.RUNNING)
    for _ in range(10):
        machine.real_us += 10 * SECOND_US
        store.renew(first, lease_us=30 * SECOND_US)
    second = store.join("b", actor=machine.actor(), lease_us=30 * SECOND_US)
    machine.set_us = HOUR_US
    machine.real_us += 5 * SECOND_US
    assert store.take_over(second, limit=10) == ()
    assert store.write(first, [change(seen_us=0)]) == (Landed.LANDED,)
    machine.real_us += 60 * SECOND_US
    assert len(store.take_over(second, limit=10)) == 1


def change(*, seen_us: int) -> Change:
    return Change(1, ItemEvent.UNRESOLVED, code="reset", seen=True, seen_us=seen_us)


def test_an_answer_was_seen_when_its_worker_says() -> None:
    """While the ledger's clock stands still, because it was set back, the worker's goes on; and waits run from there."""
    machine = Machine(set_us=HOUR_US)
    store = sent(machine)
    machine.set_us, machine.real_us = 0, 20 * SECOND_US
    seen_us = START_US + HOUR_US + 20 * SECOND_US
    assert store.write(Worker("b", 1, 0, 0, BatchState.RUNNING), [change(seen_us=seen_us)]) == (Landed.LANDED,)
    assert store.open_intents("b", [1])[0].seen_us == seen_us


def test_a_key_is_as_old_as_its_worker_says() -> None:
    """A clock that was set forward between joining and the intent makes the key no younger."""
    machine = Machine()
    store = sent(machine)
    asked_us = machine.wall()
    machine.set_us = HOUR_US
    again = Intend(1, ItemEvent.RESEND, 0, 0, "key", Request("POST", "/"), asked_us + 5, asked_us + 9, asked_us)
    assert store.write(Worker("b", 1, 0, 0, BatchState.RUNNING), [again]) == (Landed.LANDED,)
    assert store.open_intents("b", [1])[0].sent_us == asked_us


def test_start_times_are_told_in_the_worker_s_own_time() -> None:
    """A worker does not wait for as long as the clock was set forward since it joined."""
    machine = Machine()
    store = sent(machine)
    store.control("b", Control(BatchCommand.CONFIGURE, limits={"rate_per_ks": 10_000}), actor=Actor())
    machine.set_us = HOUR_US
    (first,) = store.slots(Worker("b", 1, 0, 0, BatchState.RUNNING), count=1)
    assert 0 <= first - START_US <= SECOND_US


def test_both_clocks_are_noted_at_one_instant() -> None:
    """A process that was suspended for a minute while it joined is not taken for one whose clock was set by a minute."""
    machine = Machine(real_us=5 * SECOND_US)
    store = sent(machine)
    asked = machine.actor()
    machine.real_us += 60 * SECOND_US
    slow = store.join("b", actor=asked, lease_us=30 * SECOND_US)
    assert slow.steady_us == 1 + machine.real_us
    assert slow.now_us == machine.wall()
    machine.real_us += 5 * SECOND_US
    machine.set_us = HOUR_US
    machine.dead = True
    (intent,) = taken_over(machine, store)[1]
    assert intent.send_by_us == START_US + 7 * SECOND_US + HOUR_US
