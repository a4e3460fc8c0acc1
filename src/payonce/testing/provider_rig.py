"""What the provider suite needs of an adapter: how to build it, an item, and the answers its documentation lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from payonce.core.model import Item, Request
from payonce.core.outcome import LookupReply, Outcome, Reply
from payonce.providers.protocol import Gate, Provider
from payonce.providers.transport import GATE_CLOSED, Answer, Fault, HeadSeen, Transport, TransportSettings

Script = Callable[[Request], Answer | Fault | None]
MakeTransport = Callable[[TransportSettings], Transport]


def answer(status: int, body: Any = None, /, **headers: str) -> Answer:
    """An answer as a server would give it. ``body``: bytes, or anything JSON; header names with ``_`` for ``-``."""
    data = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    named = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())
    return Answer(status, ((b"Content-Type", b"application/json"), *named), data)


class ScriptedTransport:
    """A transport that answers from a script and remembers what it was given, gate and credentials included.

    ``doorway`` answers requests that are not the call itself (an access token); what it returns None for is the call.
    """

    def __init__(self, settings: TransportSettings, *, doorway: Script | None = None) -> None:
        self.settings = settings
        self.answers: list[Answer | Fault] = []
        self.sent: list[Request] = []
        self._doorway = doorway

    async def open(self) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Nothing."""

    async def send(
        self, request: Request, *, timeout_us: int, gate: Gate, head: HeadSeen | None = None
    ) -> Answer | Fault:
        """The next answer of the script; the gate is asked as a real transport asks it."""
        if not gate():
            return GATE_CLOSED
        at_door = self._doorway(request) if self._doorway else None
        if at_door is not None:
            return at_door
        result = self.answers.pop(0)
        if not isinstance(result, Fault) or result.sent:
            self.sent.append(request)
        return result


@dataclass(frozen=True, slots=True)
class Case:
    """One documented answer and what it must mean. ``facts`` are attributes that the outcome must have.

    ``then`` are the answers of reads that follow it. ``step`` is the step of the item that is answered.
    """

    name: str
    answer: Answer
    outcome: type[Outcome]
    facts: Mapping[str, Any] = field(default_factory=dict)
    step: int = 0
    then: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class Rig:
    """An adapter under test. ``secrets`` are the marked credentials it was built with; ``executed`` is a success."""

    build: Callable[[MakeTransport], Provider]
    item: Callable[[int], Item]
    executed: Callable[[Item], Answer]
    cases: tuple[Case, ...]
    secrets: tuple[str, ...]
    doorway: Script | None = None


@dataclass(slots=True)
class Bench:
    """One adapter on a scripted transport."""

    provider: Provider
    transport: ScriptedTransport

    @classmethod
    def of(cls, rig: Rig) -> Bench:
        """A new adapter, opened by nobody: the script needs no connection."""
        made: list[ScriptedTransport] = []

        def transport(settings: TransportSettings) -> Transport:
            made.append(ScriptedTransport(settings, doorway=rig.doorway))
            return made[0]

        provider = rig.build(transport)
        return cls(provider, made[0])

    async def call(
        self, item: Item, *answers: Answer | Fault, key: str | None, gate: Gate = lambda: True
    ) -> tuple[Request, Reply]:
        """Prepares and sends an item's present step; the script answers."""
        request = self.provider.prepare(item, key=key, step=item.step)
        self.transport.answers[:] = answers
        reply = await self.provider.send(request, item, key=key, timeout_us=5_000_000, gate=gate)
        return request, reply

    async def look(self, item: Item, *answers: Answer | Fault, key: str | None) -> LookupReply:
        """Looks an item's present step up; the script answers, page by page."""
        self.transport.answers[:] = answers
        return await self.provider.lookup(item, key=key, step=item.step, timeout_us=5_000_000)
