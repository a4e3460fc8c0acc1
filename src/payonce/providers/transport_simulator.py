"""The transport into a simulated world in the same process: no socket, the same promises."""

from __future__ import annotations

from pathlib import Path

from payonce.core.errors import UsageError
from payonce.core.model import Request
from payonce.providers.protocol import Gate
from payonce.providers.simulator import (
    Config,
    FileJournal,
    InProcess,
    JournalError,
    SimulatedNetworkError,
    World,
    wall_clock_us,
)
from payonce.providers.transport import GATE_CLOSED, Answer, Fault, HeadSeen, TransportSettings


class WorldTransport:
    """See transport.Transport. ``config`` names the state file; its books are open, and locked, while this is."""

    def __init__(self, settings: TransportSettings, *, config: Config, state: Path) -> None:
        self._settings = settings
        self._config = config
        self._state = state
        self._journal: FileJournal | None = None
        self._client: InProcess | None = None
        self._headers = dict(settings.headers)

    async def open(self) -> None:
        """Opens the books. Raises UsageError where another process has them open or they are damaged."""
        try:
            self._journal = FileJournal(self._state)
            world = World(
                self._config,
                clock=wall_clock_us,
                seed=self._config.seed,
                journal=self._journal,
                history=self._journal.read(),
            )
        except (JournalError, OSError) as error:
            raise UsageError(
                f"the simulator's state cannot be opened: {error}",
                code="simulator_state",
                hint="end the other process that uses it, or name another state file",
            ) from error
        self._client = InProcess(world)

    async def close(self) -> None:
        """Closes the books."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
            self._client = None

    async def send(
        self, request: Request, *, timeout_us: int, gate: Gate, head: HeadSeen | None = None
    ) -> Answer | Fault:
        """See transport.Transport. Answers arrive whole, so there is never a head alone."""
        assert self._client is not None, "the transport is not open"
        if not gate():
            return GATE_CLOSED
        try:
            status, headers, body = await self._client.call(
                request.method,
                self._settings.target(request.path),
                headers={**self._headers, **dict(request.headers)},
                body=request.body,
                deadline=self._client.world.now() + timeout_us,
            )
        except SimulatedNetworkError as error:
            sent = error.may_have_been_sent
            return Fault("reset" if sent else "connect_refused", str(error), sent=sent, load=not sent)
        raw = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items())
        limit = self._settings.answer_limit
        return Answer(status, raw, body[:limit], truncated=len(body) > limit)
