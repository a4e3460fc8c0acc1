"""A ledger under test with everything around it in the test's hand: clock, living processes, batches in any state.

Nothing here looks into a store: what the suite proves, it proves through the protocol.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from payonce.core.commands import BatchCommand, Change, Command, Control, Intend, Landed
from payonce.core.model import (
    SECOND_US,
    Actor,
    Batch,
    BatchSpec,
    Item,
    NewItem,
    OpenIntent,
    Request,
    Worker,
)
from payonce.core.money import Money
from payonce.core.states import ItemEvent, ItemState, Settlement
from payonce.ledger.protocol import Ledger

START_US = 1_700_000_000 * SECOND_US
LEASE_US = 30 * SECOND_US
OPERATOR = Actor(user="ops", host="desk", pid=1)
BATCH = "refunds"
HERE = socket.gethostname()


class StoreFactory(Protocol):
    """One ledger that can be opened again and again, as several processes would."""

    def open(self, *, clock: Callable[[], int], is_alive: Callable[[Actor], bool | None]) -> Ledger:
        """Opens the ledger, making it the first time. A store for one process may return the same object again."""
        ...


@dataclass
class World:
    """One batch in one ledger. ``now_us`` is the clock every opened ledger reads, ``gone`` the pids that are dead."""

    factory: StoreFactory
    now_us: int = START_US
    gone: set[int] = field(default_factory=set)
    unseen: set[str] = field(default_factory=set)
    _opened: list[Ledger] = field(default_factory=list)
    _pid: int = 100

    def __post_init__(self) -> None:
        self.ledger = self.open()

    def open(self) -> Ledger:
        """One more process's view of the ledger."""
        ledger = self.factory.open(clock=lambda: self.now_us, is_alive=self._is_alive)
        if ledger not in self._opened:
            self._opened.append(ledger)
        return ledger

    def close(self) -> None:
        """Closes every view."""
        while self._opened:
            self._opened.pop().close()

    def reopen(self) -> None:
        """Closes everything and opens it once more, as the next run does."""
        self.close()
        self.ledger = self.open()

    def pass_time(self, seconds: float) -> None:
        """Moves the clock."""
        self.now_us += round(seconds * SECOND_US)

    def _is_alive(self, actor: Actor) -> bool | None:
        return None if actor.host in self.unseen else actor.pid not in self.gone

    # batches and workers

    def seal(
        self,
        items: Sequence[NewItem] | int = 4,
        *,
        batch: str = BATCH,
        targets: bool = False,
        operation: str = "refund",
        **limits: Any,
    ) -> Batch:
        """A sealed batch; a number makes so many items of 10.00 USD, ``item-1`` and on."""
        new = items if not isinstance(items, int) else [new_item(n) for n in range(1, items + 1)]
        spec = BatchSpec(batch, operation, "simulator", targets=targets)
        sealed = self.ledger.seal(spec, new, seal="seal", actor=OPERATOR)
        if limits:
            self.control(BatchCommand.CONFIGURE, batch=batch, limits=limits)
        return sealed

    def start(
        self,
        items: Sequence[NewItem] | int = 4,
        *,
        batch: str = BATCH,
        targets: bool = False,
        operation: str = "refund",
        **limits: Any,
    ) -> Worker:
        """A sealed batch with one worker, started."""
        self.seal(items, batch=batch, targets=targets, operation=operation, **limits)
        worker = self.join(batch=batch)
        self.control(BatchCommand.START, batch=batch, worker=worker)
        return worker

    def join(self, *, batch: str = BATCH, host: str = HERE, lease_us: int = LEASE_US) -> Worker:
        """One more worker, a process of its own."""
        self._pid += 1
        actor = Actor(user="worker", host=host, pid=self._pid)
        return self.ledger.join(batch, actor=actor, lease_us=lease_us)

    def control(self, command: BatchCommand, *, batch: str = BATCH, worker: Worker | None = None, **more: Any) -> Batch:
        """A control by an operator, or by a worker."""
        return self.ledger.control(batch, Control(command, **more), actor=OPERATOR, worker=worker)

    # items

    def item(self, n: int, *, batch: str = BATCH) -> Item:
        """An item as it stands."""
        page = self.ledger.items(batch, after_n=n - 1, limit=1)
        return page.items[0]

    def open_intent(self, n: int, *, batch: str = BATCH) -> OpenIntent:
        """The open intent of an item that has one."""
        (found,) = self.ledger.open_intents(batch, [n])
        return found

    def write(self, worker: Worker, *commands: Command) -> list[Landed]:
        """Commands of a worker."""
        return list(self.ledger.write(worker, commands))

    def intend(self, worker: Worker, n: int, **more: Any) -> Landed:
        """The intent that fits the item as it stands: a first one, or a resend."""
        return self.write(worker, self.intent(n, batch=worker.batch, **more))[0]

    def intent(self, n: int, *, batch: str = BATCH, **more: Any) -> Intend:
        """The command for it."""
        item = self.item(n, batch=batch)
        event = ItemEvent.RESEND if item.state is ItemState.PENDING else ItemEvent.INTENT
        return intent(n, event, generation=item.generation, step=item.step, now_us=self.now_us, **more)

    def change(self, worker: Worker, n: int, event: ItemEvent, **more: Any) -> Landed:
        """A change by a worker."""
        return self.write(worker, Change(n, event, **{**fitting(event), **more}))[0]

    def operate(self, n: int, *changes: Command, batch: str = BATCH, reason: str = "checked by hand") -> Landed:
        """Changes by an operator."""
        item = self.item(n, batch=batch)
        return self.ledger.operate(batch, item.id, changes, actor=OPERATOR, reason=reason)

    def bring(self, worker: Worker, n: int, state: ItemState) -> None:
        """Takes a planned item to any state."""
        if state is ItemState.PLANNED:
            return
        if state is ItemState.SKIPPED:
            assert self.change(worker, n, ItemEvent.SKIP, code="guard") is Landed.LANDED
            return
        assert self.intend(worker, n) is Landed.LANDED
        last = {
            ItemState.COMMITTED: ItemEvent.COMMIT,
            ItemState.REFUSED: ItemEvent.REFUSE,
            ItemState.UNKNOWN: ItemEvent.UNDECIDED,
        }.get(state)
        if last is not None:
            assert self.change(worker, n, last) is Landed.LANDED

    # what the suite looks at

    def counts(self, *, batch: str = BATCH) -> dict[str, int]:
        """How many items are in each state that has any."""
        status = self.ledger.status(batch)
        return {state.value: count for state in ItemState if (count := status.count(state))}

    def types(self, *, batch: str | None = BATCH, item: str | None = None) -> list[str]:
        """The types of events in sequence."""
        return [body["type"] for body in self.bodies(batch=batch, item=item)]

    def bodies(self, *, batch: str | None = BATCH, item: str | None = None) -> list[dict[str, Any]]:
        """Events, parsed."""
        return [orjson.loads(e.body) for e in self.ledger.events(batch, item=item, limit=100_000)]

    def assert_sound(self) -> None:
        """Everything that is kept twice agrees: the ledger's own check finds nothing."""
        assert self.ledger.check() == ()


def new_item(n: int, *, minor: int = 1000, currency: str = "USD", target: str | None = None) -> NewItem:
    """An item about to be sealed."""
    return NewItem(f"item-{n}", Money.of_minor(minor, currency), target=target, fields={"row": n}, line=n + 1)


def intent(n: int, event: ItemEvent, *, generation: int = 0, step: int = 0, now_us: int, **more: Any) -> Intend:
    """An intent; key and request follow from item, generation and step, as they must."""
    key = f"key-{n}-{generation}-{step}"
    request = Request("POST", f"/refunds/{step}", f"item={n}".encode(), (("Idempotency-Key", key),))
    times = {"send_by_us": now_us + 5 * SECOND_US, "deadline_us": now_us + 15 * SECOND_US}
    return Intend(n, event, generation, step, **{"key": key, "request": request, **times, **more})


def fitting(event: ItemEvent) -> dict[str, Any]:
    """What an event of a kind has to say at least."""
    match event:
        case ItemEvent.COMMIT:
            return {"reference": "re_1"}
        case ItemEvent.SETTLE:
            return {"settlement": Settlement.SUCCEEDED}
        case _:
            return {}
