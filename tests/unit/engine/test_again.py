"""Sending the same call again: only while its key is surely remembered, at the very moment it would leave."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from payonce.core.keys import KeyFormat
from payonce.core.model import SECOND_US, Declaration, Item, KeyDeclaration, LookupDeclaration, OpenIntent, Request
from payonce.engine.attempt import Caller

DAY_US = 24 * 3600 * SECOND_US


@dataclass
class Waiting:
    """As much of a session as is asked for before a call is repeated; a turn takes ``turn_us``."""

    declaration: Declaration
    turn_us: int
    us: int = DAY_US
    put_back: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pacer = self.time = self.schedule = self.stop = self
        self.is_set = True

    async def turn(self) -> None:
        self.us += self.turn_us

    def now_us(self) -> int:
        return self.us

    def reschedule(self, n: int, target: str, at_us: int) -> None:
        self.put_back.append(at_us)


@pytest.mark.parametrize("lookup", [None, LookupDeclaration("target", own_reference=True)])
def test_a_call_that_waited_too_long_is_decided_anew(lookup: LookupDeclaration | None) -> None:
    """Its key may have been forgotten while it waited for its turn, whatever a look-up said before: it is put back, to be
    resolved at once, and no intent is written."""
    key = KeyDeclaration("header", KeyFormat(), retention_us=60 * SECOND_US)
    session = Waiting(Declaration("test", "refund", key=key, lookup=lookup), turn_us=50 * SECOND_US)
    item = Item(1, "r1", "t1", None, {})
    times = {"first_sent_us": DAY_US, "sent_us": DAY_US, "send_by_us": DAY_US + 1, "deadline_us": DAY_US + 2}
    intent = OpenIntent(item, "key", Request("POST", "/"), fence=1, **times)
    caller = Caller(cast(Any, session), None, asyncio.Semaphore(1))
    asyncio.run(caller._again(intent))
    assert session.put_back == [DAY_US + 50 * SECOND_US]
