"""What the auditor asks of idempotency keys, told from the calls themselves: SPEC sections 6 and 7.

A key stands for one request. It is not sent again after the provider may have forgotten it, nor once it is known to
answer with a stored error, nor after a person put its item back: then the item has a key that was never used.
"""

from __future__ import annotations

from payonce.core.model import Declaration
from payonce.core.states import ItemEvent
from payonce.testing.simulator.books import Call


class KeyRules:
    """All keys of a world. Each method returns what is wrong, or None."""

    def __init__(self, declaration: Declaration) -> None:
        key = declaration.key
        self._has_keys = key is not None
        self._retention_us = None if key is None else key.retention_us
        self._bodies: dict[str, bytes] = {}
        self._first_us: dict[str, int] = {}
        self._of_item: dict[str, list[str]] = {}
        self._over: dict[str, str] = {}

    def sent(self, call: Call, event: ItemEvent | None) -> str | None:
        """A call leaves under an intent of some kind."""
        key = call.key
        if (key is not None) is not self._has_keys:
            return f"a call for {call.item} with the wrong kind of key"
        if key is None:
            return None
        body = self._bodies.get(key)
        first_us = self._first_us.setdefault(key, call.sent_us)
        if body is None:
            self._bodies[key] = call.body
            self._of_item.setdefault(call.item, []).append(key)
            return None
        if body != call.body:
            return f"one key for two requests: {call.item} step {call.step} (section 7)"
        if key in self._over:
            return f"a call for {call.item} under a key that {self._over[key]} (section 2)"
        late = self._retention_us is not None and call.sent_us - first_us >= self._retention_us
        if late and event is ItemEvent.RESEND:
            return f"a call for {call.item} was repeated after its key may have been forgotten (section 6)"
        return None

    def not_executed(self, item: str) -> None:
        """It is durable that nothing was done under the item's last key so far: its age counts from the next call."""
        for key in self._of_item.get(item, ())[-1:]:
            self._first_us.pop(key, None)

    def burnt(self, item: str) -> None:
        """It is durable that the item's last key answers with a stored error."""
        for key in self._of_item.get(item, ())[-1:]:
            self._over[key] = "only answers with a stored error"

    def put_back(self, item: str) -> None:
        """A person had the item planned again."""
        for key in self._of_item.get(item, ()):
            self._over[key] = "was used before a person put the item back"
