"""The adapter of the simulated provider: the real protocol, one for each process, and the last door before the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from payonce.core.model import Declaration, Item, Request
from payonce.core.outcome import LookupReply, NotExecuted, Reply
from payonce.providers.protocol import Gate, Identity, Preflight
from payonce.testing.simulator.books import Call, decode, encode
from payonce.testing.simulator.farside import FarSide
from payonce.testing.simulator.loop import ProcessGone, ProcessLoop

_NOT_SENT = Reply(NotExecuted("not_sent"), sent=False)


class SimAdapter:
    """See providers.protocol. ``sent`` is told of each call as it leaves, ``answered`` of each answer that arrives."""

    provider_digest = "simulated"

    def __init__(
        self,
        process: Any,
        far: FarSide,
        *,
        sent: Callable[[Call, str], None],
        answered: Callable[[Call, Reply], None],
    ) -> None:
        self.declaration: Declaration = far.scenario.declaration
        self._process = process
        self._loop: ProcessLoop = process.loop
        self._far = far
        self._sent = sent
        self._answered = answered

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def identify(self) -> Identity:
        """The simulated provider has one account."""
        return Identity()

    async def preflight(self, item: Item, *, timeout_us: int) -> Preflight | None:
        """It offers no cheap read."""
        return None

    def prepare(self, item: Item, *, key: str | None, step: int) -> Request:
        """The bytes say what is asked; the key travels in a header."""
        assert item.money is not None
        headers = () if key is None else (("Idempotency-Key", key),)
        return Request("POST", f"/{step}", encode(item.id, step=step, money=item.money, target=item.target), headers)

    async def send(self, request: Request, item: Item, *, key: str | None, timeout_us: int, gate: Gate) -> Reply:
        """One call; a process that has died hands nothing to the network."""
        loop = self._loop
        if loop.dead:
            raise ProcessGone
        if not gate():
            return _NOT_SENT
        far, now_us = self._far, loop.timeline.now_us
        future = loop.create_future()
        asked, step, money, target = decode(request.body)
        header = request.headers[0][1] if request.headers else None
        call = Call(
            far.calls + 1, self._process, asked, step, money, target, header, request.body, now_us, now_us + timeout_us,
            lambda reply: self._arrive(call, future, reply),
        )  # fmt: skip
        self._sent(call, item.id)
        far.take(call)
        reply: Reply = await future
        return reply

    def _arrive(self, call: Call, future: Any, reply: Reply) -> None:
        """The answer is with the process now."""
        if future.done() and not future.cancelled():
            return
        self._far.answered(call)
        if not future.cancelled():
            self._answered(call, reply)
            future.set_result(reply)

    async def lookup(self, item: Item, *, key: str | None, step: int, timeout_us: int) -> LookupReply:
        """What the provider shows of the target, as it was when the question arrived."""
        loop, far = self._loop, self._far
        if loop.dead:
            raise ProcessGone
        future = loop.create_future()
        found = far.look_up(item.target, step=step)
        loop.timeline.at(loop.timeline.now_us + far.scenario.network_us, _give, future, found, loop=loop)
        reply: LookupReply = await future
        return reply


def _give(future: Any, value: Any) -> None:
    if not future.done():
        future.set_result(value)
