"""The engine, a memory ledger and the simulator in one process: what a scripted timeline is played on."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from payonce.core.model import Actor, BatchSpec, Item, Limits, NewItem, Status
from payonce.core.money import Money
from payonce.engine.run import RunOutcome, run_batch
from payonce.engine.spool import Spool
from payonce.engine.stop import StopRequest
from payonce.ledger.inline import InlineLedger
from payonce.ledger.memory import MemoryLedger
from payonce.providers.http import HttpProvider
from payonce.providers.registry import build


@dataclass
class Bench:
    """One batch of refunds against one simulated provider; its true effects are the auditor's only source."""

    folder: Path
    provider: dict[str, Any]
    items: list[tuple[str, str, str]] = field(default_factory=lambda: [("r1", "ch_1", "10.00")])
    currency: str = "USD"
    attempts: int = 5
    alive: bool = True

    def __post_init__(self) -> None:
        self.store = MemoryLedger(is_alive=lambda actor: self.alive)
        self.table = {"kind": "simulator", "state": "world.jsonl", "timeout": "150ms", "max_execution": "100ms"}
        self.table |= self.provider
        news = [NewItem(i, Money(amount, self.currency), target=target) for i, target, amount in self.items]
        self.store.seal(BatchSpec("b", "refund", "simulator", targets=True), news, seal="x", actor=Actor())
        self.outcome: RunOutcome | None = None

    def build(self) -> HttpProvider:
        """The provider as a run builds it."""
        mapped = {"id": "id", "charge": "target", "amount": "amount", "currency": "currency"}
        found = build(
            "simulator",
            self.table,
            operation="refund",
            batch="b",
            environ=os.environ,
            mapped=mapped,
            base=str(self.folder),
        )
        assert isinstance(found, HttpProvider)
        return found

    def run(self, ledger: InlineLedger | None = None, *, stop: StopRequest | None = None) -> RunOutcome:
        """One run to its end, as one process would make it."""
        self.outcome = asyncio.run(self.run_async(ledger, stop=stop))
        return self.outcome

    async def run_async(
        self, ledger: InlineLedger | None = None, *, stop: StopRequest | None = None, provider: Any = None
    ) -> RunOutcome:
        """The same inside an event loop; ``provider`` is shared by several runs where it is given, and open."""
        mine = provider or self.build()
        if provider is None:
            await mine.open()
        try:
            return await run_batch(
                ledger or InlineLedger(self.store),
                mine,
                batch=self.store.batches("b")[0],
                limits=Limits(concurrency=8, attempts=self.attempts),
                actor=Actor(),
                spool=Spool([self.folder / "spool"], name="ledger"),
                ledger_id="ledger",
                stop=stop or StopRequest(),
            )
        finally:
            if provider is None:
                await mine.close()

    def crash(self, *, after_s: float) -> None:
        """A run that is gone in the middle: nothing of it is written any more."""

        async def cut_off() -> None:
            provider = self.build()
            await provider.open()
            run = asyncio.create_task(self.run_async(Mute(self.store, after_s=after_s), provider=provider))
            await asyncio.sleep(after_s)
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
            await provider.close()

        self.alive = False
        asyncio.run(cut_off())

    @property
    def status(self) -> Status:
        """Counts, as the ledger has them."""
        return self.store.status("b")

    def item(self, name: str = "r1") -> Item:
        """One item, as the ledger has it."""
        found = self.store.item("b", name)
        assert found is not None
        return found

    def effects(self) -> Counter[str]:
        """How often each item was truly executed."""
        return Counter(str(e.ref) for e in self._world_effects())

    def amounts(self) -> list[int]:
        """Truly executed amounts in minor units."""
        return [e.amount_minor for e in self._world_effects()]

    def _world_effects(self) -> Any:
        from payonce.providers.simulator import open_world, parse

        world = open_world(parse({"state": str(self.folder / "world.jsonl")}))
        try:
            return tuple(world.effects)
        finally:
            world.close()


class Mute(InlineLedger):
    """A ledger whose process dies after a time: later writes are as if they had never been asked for."""

    def __init__(self, store: MemoryLedger, *, after_s: float) -> None:
        super().__init__(store)
        self._dies = asyncio.get_running_loop().time() + after_s - 0.005

    async def _call(self, kind: Any, call: Any) -> Any:
        if asyncio.get_running_loop().time() >= self._dies:
            await asyncio.Event().wait()
        return await super()._call(kind, call)
