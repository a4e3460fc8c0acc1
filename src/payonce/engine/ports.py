"""What the engine needs of the world: a ledger it can await, a clock, a way to report progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from payonce.core.commands import Command, Control, Landed
from payonce.core.model import Actor, Batch, Item, OpenIntent, Status, Worker
from payonce.core.overlap import Acting

Progress = Callable[[Status], None]


class EngineLedger(Protocol):
    """The verbs of a ledger that a run uses, awaitable; writes of many tasks are committed together.

    Every verb is durable when it returns and raises LedgerError where it cannot be.
    """

    async def write(self, worker: Worker, command: Command) -> Landed:
        """One command; see ledger.protocol."""
        ...

    async def write_many(self, worker: Worker, commands: Sequence[Command]) -> tuple[Landed, ...]:
        """Several commands in one transaction."""
        ...

    async def join(self, batch: str, *, actor: Actor, lease_us: int) -> Worker: ...

    async def renew(self, worker: Worker, *, lease_us: int) -> Worker: ...

    async def leave(self, worker: Worker) -> None: ...

    async def control(self, batch: str, control: Control, *, actor: Actor, worker: Worker | None = None) -> Batch: ...

    async def planned(self, worker: Worker, *, limit: int) -> tuple[Item, ...]: ...

    async def take_over(self, worker: Worker, *, limit: int) -> tuple[OpenIntent, ...]: ...

    async def open_intents(self, batch: str, ns: Sequence[int]) -> tuple[OpenIntent, ...]: ...

    async def item(self, batch: str, item: str) -> Item | None: ...

    async def operate(
        self, batch: str, item: str, changes: Sequence[Command], *, actor: Actor, reason: str
    ) -> Landed: ...

    async def slots(self, worker: Worker, *, count: int) -> tuple[int, ...]: ...

    async def claimed_references(
        self, batch: str, references: Sequence[str], *, target: str | None = None
    ) -> frozenset[str]: ...

    async def batches(self, batch: str | None = None) -> tuple[Batch, ...]: ...

    async def acting_on(self, number: int, targets: Sequence[str]) -> list[Acting]: ...

    async def status(self, batch: str) -> Status: ...


class Clock(Protocol):
    """Time as the engine needs it. ``steady_us`` never jumps and counts the time the machine was suspended."""

    def steady_us(self) -> int:
        """Microseconds on a clock that only goes forward, suspended time included."""
        ...

    def wall_us(self) -> int:
        """Wall-clock microseconds since the epoch; may jump."""
        ...

    def rand(self) -> float:
        """A number in [0, 1) for jitter."""
        ...
