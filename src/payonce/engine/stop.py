"""Asking a run to end: from a signal, another process, or a fault. The first reason wins; the second signal hurries."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """Why a run ends before its batch is settled."""

    INTERRUPTED = "interrupted"  # a signal
    STOPPED = "stopped"  # a budget, a tripwire, the provider
    CANCELLED = "cancelled"  # an operator
    HALTED = "halted"  # a ledger fault
    LEASE_LOST = "lease_lost"  # this worker was declared dead: join again
    HELD = "held"  # what is left waits for targets that unknown items hold


@dataclass(frozen=True, slots=True)
class End:
    """An ending with its code and text."""

    ending: Ending
    code: str
    message: str


class StopRequest:
    """Set once, from anywhere in the event loop. ``hurry`` says that calls in flight need not be awaited."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._hurry = asyncio.Event()
        self.end: End | None = None

    @property
    def is_set(self) -> bool:
        """Whether the run should end."""
        return self.end is not None

    @property
    def is_hurried(self) -> bool:
        """Whether it should end at once."""
        return self._hurry.is_set()

    def request(self, ending: Ending, *, code: str, message: str = "") -> None:
        """Ends the run for a reason; only the first one counts, but a ledger fault overrides everything."""
        weaker = self.end is None or self.end.ending is Ending.LEASE_LOST
        if weaker or (ending is Ending.HALTED and self.end is not None and self.end.ending is not Ending.HALTED):
            self.end = End(ending, code, message)
        self._event.set()

    def signal(self) -> None:
        """SIGTERM or SIGINT: the first asks, the second hurries."""
        if self.is_set:
            self._hurry.set()
        self.request(Ending.INTERRUPTED, code="signal", message="ended by a signal; the same command goes on")

    def forget_lost_lease(self) -> bool:
        """Whether a lost lease was the reason; it then is none any more, so that the worker can join again."""
        if self.end is None or self.end.ending is not Ending.LEASE_LOST:
            return False
        self.end = None
        self._event.clear()
        return True

    async def wait(self) -> None:
        """Returns when the run should end."""
        await self._event.wait()

    async def wait_hurry(self) -> None:
        """Returns when the run should end at once."""
        await self._hurry.wait()
