"""The simulator without HTTP: the same world, called directly, for tests, demos and deterministic simulations.

What a network would do to a call is raised: `Reset` (the connection broke) and `Silent` (no answer by the deadline).
Both say truthfully whether bytes of the request may have been sent, which is all that a client can ever know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from payonce.providers.simulator.plan import Abort, Answer, Call, Close, Plan, Silence, Wait
from payonce.providers.simulator.world import World

Sleep = Callable[[int], Awaitable[None]]


class SimulatedNetworkError(ConnectionError):
    """A call that got no answer. `may_have_been_sent` is false only where no byte of the request left."""

    def __init__(self, message: str, *, may_have_been_sent: bool) -> None:
        super().__init__(message)
        self.may_have_been_sent = may_have_been_sent


class Reset(SimulatedNetworkError):
    """The connection was reset, closed, or never came about."""


class Silent(SimulatedNetworkError):
    """No answer came until the deadline."""


async def sleep_us(duration_us: int) -> None:
    """Sleeps in real time."""
    await asyncio.sleep(duration_us / 1e6)


class InProcess:
    """A client of a world in the same process.

    `sleep` takes microseconds and must move the world's clock forward by as much; a simulation passes its own.
    """

    def __init__(self, world: World, *, sleep: Sleep = sleep_us) -> None:
        self.world = world
        self._sleep = sleep

    async def call(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        deadline: int | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """The answer as status, headers (names in lower case) and body.

        `path` may carry a query. `deadline` is a time in microseconds on the world's clock; None waits for ever.
        Raises Reset or Silent. What was executed stays executed, whatever is raised; a cancelled call too.
        """
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        plan = self.world.handle(Call(method.upper(), path, lowered, body))
        ticket = plan.ticket
        try:
            return await self._carry_out(plan, deadline)
        finally:
            self.world.done(ticket)

    async def _carry_out(self, plan: Plan, deadline: int | None) -> tuple[int, dict[str, str], bytes]:
        while True:
            match plan:
                case Answer():
                    await self._wait(plan.after_us + plan.trickle_us, deadline)
                    if plan.cut:
                        raise Reset("the connection closed in the middle of the answer", may_have_been_sent=True)
                    named = {"content-type": plan.reply.content_type, "request-id": f"req_{plan.ticket}"}
                    named |= {name.lower(): value for name, value in plan.reply.headers}
                    return plan.reply.status, named, plan.reply.body
                case Wait():
                    await self._wait(plan.until_us - self.world.now(), deadline)
                    plan = self.world.resume(plan.ticket)
                case Silence():
                    await self._wait(None, deadline)
                case Abort():
                    text = "the connection was reset" if plan.sent else "the connection was refused"
                    raise Reset(text, may_have_been_sent=plan.sent)
                case Close():
                    raise Reset("the connection was closed without an answer", may_have_been_sent=True)

    async def _wait(self, duration_us: int | None, deadline: int | None) -> None:
        """Waits so long, or until the deadline and then raises Silent; None is for ever."""
        left_us = None if deadline is None else deadline - self.world.now()
        if left_us is not None and (duration_us is None or duration_us > left_us):
            if left_us > 0:
                await self._sleep(left_us)
            raise Silent("no answer until the deadline", may_have_been_sent=True)
        if duration_us is None:
            await asyncio.get_running_loop().create_future()
        elif duration_us > 0:
            await self._sleep(duration_us)
