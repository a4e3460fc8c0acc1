"""A clock that was set between a call and the start that resolves it: waits hold, keys look older, leases live."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from payonce.core.commands import BatchCommand, Control, Intend, Landed
from payonce.core.model import SECOND_US, Actor, BatchSpec, NewItem, OpenIntent, Request, Worker
from payonce.core.states import ItemEvent
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


def sent(machine: Machine) -> MemoryLedger:
    """A batch of one item, whose call was sent by a first worker."""
    store = MemoryLedger(clock=machine.wall, is_alive=lambda actor: not machine.dead)
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
