"""Checkpoints while a batch runs: one after every so many events, one at the end of each run, and one behind what follows it.

Reads the head from the ledger, signs it, publishes it. It never holds a run up and never ends one: what could not be
signed or published is told at the end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from payonce.core.errors import PayonceError
from payonce.ledger.protocol import LedgerInfo
from payonce.service.trailing import Places, trail
from payonce.service.trailing_settings import TrailSettings
from payonce.trail.checkpoint import Checkpoint, Signed, origin_of, sign
from payonce.trail.keys import SigningKey, load_private
from payonce.trail.publish import Place, ToFile, publish

_LOOK_EVERY_S: Final = 1.0


class Head(Protocol):
    """The part of an awaitable ledger that says how far the trail has come."""

    async def info(self) -> LedgerInfo: ...


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of one run. ``shown`` are those for standard output, ``warnings`` what went wrong."""

    key: SigningKey
    every: int
    places: tuple[Place, ...]
    shown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    last: Signed | None = None

    @classmethod
    def of(cls, url: str, settings: TrailSettings) -> Checkpoints | None:
        """For a ledger, where there is a key: the one that is named, or the ledger's own. None where there is neither.

        Raises UsageError or ConfigError where the key that is named cannot be used: nothing was sent then.
        """
        own = Places.of(url)
        key = settings.key or (str(own.key) if own.key.is_file() else None)
        if key is None:
            return None
        places = settings.publish
        if ToFile(own.checkpoints) not in places:
            places = (*places, ToFile(own.checkpoints))
        return cls(load_private(key, environ=os.environ), settings.checkpoint_every, places)

    @asynccontextmanager
    async def beside(self, ledger: Head) -> AsyncIterator[None]:
        """Around a run: looks every second how far the trail has come, and makes the last checkpoint when it is over."""
        start = (await ledger.info()).events
        watch = asyncio.create_task(self._watch(ledger, start))
        try:
            yield
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
            await self._make(ledger)

    async def _watch(self, ledger: Head, start: int) -> None:
        done = start
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            with suppress(PayonceError):  # the run itself meets the fault and halts on it
                now = (await ledger.info()).events
                if now - done >= self.every:
                    await self._make(ledger)
                    done = now

    async def _make(self, ledger: Head) -> None:
        try:
            info = await ledger.info()
        except PayonceError as error:
            self.warnings.append(f"no checkpoint was made: {error.message}")
            return
        # A command may take its time: the run goes on meanwhile.
        await asyncio.to_thread(self._publish, Checkpoint(origin_of(info.id), info.events, bytes.fromhex(info.root)))

    def after(self, url: str) -> None:
        """One more where events came behind the last: those of the comparison with the provider."""
        try:
            with trail(url) as reads, reads.snapshot():
                ledger, head = reads.ledger_id(), reads.head()
        except PayonceError as error:
            self.warnings.append(f"no checkpoint was made: {error.message}")
            return
        self._publish(Checkpoint(origin_of(ledger), head.size, head.root()))

    def _publish(self, checkpoint: Checkpoint) -> None:
        if self.last is not None and self.last.checkpoint.size == checkpoint.size:
            return
        self.last = sign(checkpoint, [self.key])
        shown: list[str] = []
        self.warnings += publish(self.last, self.places, show=shown.append)
        self.shown += shown
