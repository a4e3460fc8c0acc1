"""The one protocol every adapter speaks. The engine knows nothing else about the outside world.

An adapter builds the exact request of one step (pure: same item and key, same bytes), sends it once, and classifies
every answer and every error into exactly one outcome. It never retries, never follows a redirect on a call, never
sends without asking the gate, and never logs a body or a credential. What it does not recognise is Unresolved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from payonce.core.model import Declaration, Item, Request
from payonce.core.money import Money
from payonce.core.outcome import LookupFailed, LookupReply, Reply

# Asked at the last moment before the first byte of a call is handed to the socket: may it still be sent? False (the
# lease is over, send_by has passed, the batch was stopped) means that nothing may leave.
Gate = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the provider says we are. ``mode`` is ``live`` or ``test`` where the provider has the distinction."""

    account: str | None = None
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a cheap read shows of an item's target before anything is sent.

    ``unread``: the read was not answered as it should be, so nothing is known. ``stop``: every further item would meet
    the same. ``already``: it does not fit for what was refunded or taken already. ``touched``: something was refunded or taken already, ``taken`` how much, where the provider tells.
    ``names`` are all names of the target, where it has several (a payment intent and its charge).
    """

    ok: bool
    code: str | None = None
    message: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    unread: LookupFailed | None = None
    stop: bool = False
    already: bool = False
    touched: bool = False
    taken: Money | None = None
    names: tuple[str, ...] = ()


class Provider(Protocol):
    """A provider for one batch: built from its configuration, bound to one account."""

    @property
    def declaration(self) -> Declaration:
        """What it promises; data."""
        ...

    @property
    def provider_digest(self) -> str:
        """SHA-256 over the settings that decide what a call does (never credentials): bound to the batch."""
        ...

    async def open(self) -> None:
        """Opens clients. Sends nothing."""
        ...

    async def close(self) -> None:
        """Closes clients; calls in flight were awaited before."""
        ...

    async def identify(self) -> Identity:
        """The account and mode, from the configuration or a read-only call. Raises ConfigError for bad credentials."""
        ...

    def prepare(self, item: Item, *, key: str | None, step: int) -> Request:
        """The exact request of one step of an item. Pure. Raises ConfigError where a template cannot be filled."""
        ...

    async def send(self, request: Request, item: Item, *, key: str | None, timeout_us: int, gate: Gate) -> Reply:
        """Sends the request once and says what became of it; never raises for anything the network or provider does.

        ``timeout_us`` bounds the whole call (connect, send, answer); after it the outcome is Unresolved unless surely
        nothing left. ``gate`` is asked immediately before the first byte; a refusal is NotExecuted('not_sent') with
        ``sent=False``. Cancelling the task counts as a timeout for the caller: it must treat it as may-have-been-sent.
        """
        ...

    async def lookup(self, item: Item, *, key: str | None, step: int, timeout_us: int) -> LookupReply:
        """All executions that the provider shows on the item's target, oldest first, complete over all pages; or that
        it could not be told. Only called where the declaration has a look-up."""
        ...

    async def preflight(self, item: Item, *, timeout_us: int) -> Preflight | None:
        """A cheap read of the item's target before anything is sent; None where the adapter offers none. A run makes
        it where the declaration names it (``preflight``), ``plan --check`` always. Never raises for what the network or
        the provider does."""
        ...
