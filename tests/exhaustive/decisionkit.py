"""What the tests of decisions are made of: declarations, items and intents, every combination by name."""

from __future__ import annotations

from typing import Any

from payonce.core.model import SECOND_US, Declaration, Item, KeyDeclaration, LookupDeclaration, OpenIntent, Request
from payonce.core.money import Money

HOUR_US = 3600 * SECOND_US
MAX_EXECUTION_US = 60 * SECOND_US
LAG_US = 7 * SECOND_US
ATTEMPTS = 3
ASKED = Money("10.00", "USD")
SENT_US = 1_000_000 * SECOND_US
SEND_BY_US = SENT_US + 2 * SECOND_US
DEADLINE_US = SEND_BY_US + 10 * SECOND_US

KEY = KeyDeclaration("header Idempotency-Key", retention_us=24 * HOUR_US)
LOOKUP = LookupDeclaration("own reference", lag_us=LAG_US, own_reference=True)


def declare(kind: str, *, steps: int = 1, lookup: LookupDeclaration = LOOKUP, key: KeyDeclaration = KEY) -> Declaration:
    """A provider that promises ``keys``, ``lookup``, ``both`` or ``neither``."""
    return Declaration(
        "test",
        "refund",
        key=key if kind in ("keys", "both") else None,
        lookup=lookup if kind in ("lookup", "both") else None,
        max_execution_us=MAX_EXECUTION_US,
        steps=tuple(f"step{n}" for n in range(steps)),
    )


def item(**more: Any) -> Item:
    """An item over 10.00 USD."""
    return Item(**{"n": 1, "id": "r1", "target": "ch_1", "money": ASKED, "fields": {}, **more})


def intent(of: Item | None = None, *, key: str | None = "key-0", **more: Any) -> OpenIntent:
    """The open intent of a call that was sent once, of which nothing is known."""
    values: dict[str, Any] = {
        "request": Request("POST", "/refunds"),
        "first_sent_us": SENT_US,
        "sent_us": SENT_US,
        "send_by_us": SEND_BY_US,
        "deadline_us": DEADLINE_US,
        "fence": 1,
    }
    return OpenIntent(of or item(), key, **{**values, **more})
