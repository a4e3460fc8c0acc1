"""The verbs of a ledger as coroutines: one text for the threaded ledger and for the one that works in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

from payonce.core.commands import Command, Control, Landed
from payonce.core.model import (
    Actor,
    Batch,
    BatchSpec,
    Event,
    Finding,
    Item,
    NewItem,
    OpenIntent,
    Status,
    Worker,
)
from payonce.core.overlap import Acting
from payonce.core.states import ItemState
from payonce.ledger.protocol import LedgerInfo, Output, Page
from payonce.ledger.store_reads import StoreLedger

T = TypeVar("T")
# ``group``: shares a transaction with others; ``alone``: may fail half-way, so it has one of its own; ``read``.
Kind = Literal["group", "alone", "read"]


class AsyncVerbs(ABC):
    """What ledger.protocol says of each verb holds here too; a verb is durable when its coroutine returns."""

    @abstractmethod
    async def _write(self, worker: Worker, commands: tuple[Command, ...]) -> Any: ...

    @abstractmethod
    async def _call(self, kind: Kind, call: Callable[[StoreLedger], T]) -> T: ...

    @abstractmethod
    async def close(self) -> None:
        """Ends what is under way and closes the store."""

    async def write(self, worker: Worker, command: Command) -> Landed:
        """One command, made durable together with whatever else waits."""
        landed: tuple[Landed, ...] = await self._write(worker, (command,))
        return landed[0]

    async def write_many(self, worker: Worker, commands: Sequence[Command]) -> tuple[Landed, ...]:
        """Several commands, in order, in one transaction."""
        landed: tuple[Landed, ...] = await self._write(worker, tuple(commands))
        return landed

    async def join(self, batch: str, *, actor: Actor, lease_us: int) -> Worker:
        """See ledger.protocol."""
        return await self._call("group", lambda s: s.join(batch, actor=actor, lease_us=lease_us))

    async def renew(self, worker: Worker, *, lease_us: int) -> Worker:
        """See ledger.protocol."""
        return await self._call("group", lambda s: s.renew(worker, lease_us=lease_us))

    async def leave(self, worker: Worker) -> None:
        """See ledger.protocol."""
        return await self._call("group", lambda s: s.leave(worker))

    async def control(self, batch: str, control: Control, *, actor: Actor, worker: Worker | None = None) -> Batch:
        """See ledger.protocol."""
        return await self._call("group", lambda s: s.control(batch, control, actor=actor, worker=worker))

    async def planned(self, worker: Worker, *, limit: int) -> tuple[Item, ...]:
        """See ledger.protocol."""
        return await self._call("group", lambda s: s.planned(worker, limit=limit))

    async def take_over(self, worker: Worker, *, limit: int) -> tuple[OpenIntent, ...]:
        """See ledger.protocol."""
        return await self._call("group", lambda s: s.take_over(worker, limit=limit))

    async def slots(self, worker: Worker, *, count: int) -> tuple[int, ...]:
        """See ledger.protocol."""
        return await self._call("group", lambda s: s.slots(worker, count=count))

    async def claimed_references(
        self, batch: str, references: Sequence[str], *, target: str | None = None
    ) -> frozenset[str]:
        """See ledger.protocol."""
        return await self._call("group", lambda s: s.claimed_references(batch, references, target=target))

    async def seal(self, spec: BatchSpec, items: Iterable[NewItem], *, seal: str, actor: Actor) -> Batch:
        """See ledger.protocol."""
        return await self._call("alone", lambda s: s.seal(spec, items, seal=seal, actor=actor))

    async def amend(self, spec: BatchSpec, items: Iterable[NewItem], *, seal: str | None, actor: Actor) -> Batch:
        """See ledger.protocol."""
        return await self._call("alone", lambda s: s.amend(spec, items, seal=seal, actor=actor))

    async def operate(self, batch: str, item: str, changes: Sequence[Command], *, actor: Actor, reason: str) -> Landed:
        """See ledger.protocol."""
        return await self._call("alone", lambda s: s.operate(batch, item, changes, actor=actor, reason=reason))

    async def info(self) -> LedgerInfo:
        """See ledger.protocol."""
        return await self._call("read", lambda s: s.info())

    async def batches(self, batch: str | None = None) -> tuple[Batch, ...]:
        """See ledger.protocol."""
        return await self._call("read", lambda s: s.batches(batch))

    async def acting_on(self, number: int, targets: Sequence[str]) -> list[Acting]:
        """See ledger.overlap_port."""
        return await self._call("read", lambda s: s.acting_on(number, targets))

    async def status(self, batch: str) -> Status:
        """See ledger.protocol."""
        return await self._call("read", lambda s: s.status(batch))

    async def open_intents(self, batch: str, ns: Sequence[int]) -> tuple[OpenIntent, ...]:
        """See ledger.protocol."""
        return await self._call("read", lambda s: s.open_intents(batch, ns))

    async def items(self, batch: str, *, states: Sequence[ItemState] = (), after_n: int = 0, limit: int = 1000) -> Page:
        """See ledger.protocol."""
        return await self._call("read", lambda s: s.items(batch, states=states, after_n=after_n, limit=limit))

    async def item(self, batch: str, item: str) -> Item | None:
        """See ledger.protocol."""
        return await self._call("read", lambda s: s.item(batch, item))

    async def events(
        self, batch: str | None = None, *, item: str | None = None, after_seq: int = 0, limit: int = 1000
    ) -> tuple[Event, ...]:
        """See ledger.protocol."""
        return await self._call("read", lambda s: s.events(batch, item=item, after_seq=after_seq, limit=limit))

    async def outputs(self, batch: str, *, after_n: int = 0, limit: int = 1000) -> tuple[Output, ...]:
        """See ledger.protocol."""
        return await self._call("read", lambda s: s.outputs(batch, after_n=after_n, limit=limit))

    async def findings(self, batch: str) -> tuple[Finding, ...]:
        """See ledger.protocol."""
        return await self._call("read", lambda s: s.findings(batch))

    async def check(self) -> tuple[str, ...]:
        """See ledger.protocol."""
        return await self._call("read", lambda s: s.check())
