"""HTTP providers around a scripted transport: what is asked is kept, what is answered is given."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from payonce.core.model import Item, Request
from payonce.core.money import Money
from payonce.core.outcome import LookupReply, Outcome, Reply
from payonce.providers.http import HttpProvider
from payonce.providers.http_config import configure
from payonce.providers.protocol import Gate
from payonce.providers.transport import GATE_CLOSED, Answer, Fault, TransportSettings

KEY = "k" * 64
USUAL = Money("12.50", "USD")
TOKEN = "sk_test_0123456789abcdef"
ENVIRON = {"API_TOKEN": TOKEN}
REFUND: dict[str, Any] = {
    "kind": "http",
    "base_url": "https://api.example.com",
    "account": "acme-live",
    "headers": {"Authorization": "Bearer ${API_TOKEN}"},
    "call": {
        "path": "/v1/refunds",
        "json": {"charge": "{charge_id}", "amount": "{amount_minor}", "currency": "{currency}"},
        "reference": "id",
        "billed": "amount",
        "billed_currency": "currency",
    },
    "key": {
        "header": "Idempotency-Key",
        "retention": "24h",
        "stores_errors": True,
        "replay_header": "Idempotent-Replayed",
    },
}
LOOKUP: dict[str, Any] = {
    "path": "/v1/refunds?charge={charge_id}",
    "found": "data",
    "reference": "id",
    "amount": "amount",
    "currency": "currency",
    "time": "created",
    "own_reference": "metadata.ref",
    "key": "metadata.payonce_key",
    "status": "status",
    "status_failed": ["failed", "canceled"],
    "lag": "5s",
}


def item(money: Money | None = USUAL, **fields: Any) -> Item:
    """An item; its fields have the charge."""
    return Item(1, "r-1", "ch_1", money, {"charge_id": "ch_1", **fields})


def with_call(**changes: Any) -> dict[str, Any]:
    """The refund table with another call."""
    return {**REFUND, "call": {**REFUND["call"], **changes}}


class Scripted:
    """A transport that answers from a list and keeps what it was asked."""

    def __init__(self, settings: TransportSettings, replies: list[Answer | Fault]) -> None:
        self.settings = settings
        self.replies = replies
        self.asked: list[Request] = []

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    async def send(self, request: Request, *, timeout_us: int, gate: Gate) -> Answer | Fault:
        """The next reply."""
        if not gate():
            return GATE_CLOSED
        self.asked.append(request)
        return self.replies.pop(0)


def answer(status: int, body: bytes | str = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """An answer."""
    raw = tuple((name.encode(), value.encode()) for name, value in (headers or {}).items())
    return Answer(status, raw, body.encode() if isinstance(body, str) else body)


class Bench:
    """A provider with its scripted transport."""

    def __init__(self, table: Mapping[str, Any], *replies: Answer | Fault, operation: str = "refund") -> None:
        config = configure(table, operation=operation, batch="b-1", environ=ENVIRON, mapped={}, concurrency=4)
        self.replies = list(replies)
        self.transport: Scripted

        def make(settings: TransportSettings) -> Scripted:
            self.transport = Scripted(settings, self.replies)
            return self.transport

        self.config = config
        self.provider = HttpProvider(config, make_transport=make)

    def call(self, an_item: Item | None = None) -> Reply:
        """Prepares and sends one call."""
        wanted = an_item or item()
        request = self.provider.prepare(wanted, key=KEY, step=0)
        return asyncio.run(self.provider.send(request, wanted, key=KEY, timeout_us=1_000_000, gate=lambda: True))

    def look_up(self, an_item: Item | None = None) -> LookupReply:
        """One look-up."""
        return asyncio.run(self.provider.lookup(an_item or item(), key=KEY, step=0, timeout_us=1_000_000))


def outcome(table: Mapping[str, Any], reply: Answer | Fault, an_item: Item | None = None) -> Outcome:
    """What a provider with this table makes of one answer."""
    return Bench(table, reply).call(an_item).outcome
