"""The part of an official adapter that is the same for all: one exchange, its evidence, and reads beside it.

A subclass shapes requests, and says what an answer means. It sees answers, never errors of the network: those are
placed here, in one way for all providers, so that "not sent" stays a fact.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from payonce.core.errors import ConfigError
from payonce.core.keys import encode
from payonce.core.model import Declaration, Item, Request
from payonce.core.outcome import (
    Executed,
    LookupFailed,
    LookupReply,
    NotExecuted,
    Outcome,
    Refused,
    Reply,
    Stop,
    Unresolved,
)
from payonce.providers.official.values import parse_object
from payonce.providers.protocol import Gate, Identity, Preflight
from payonce.providers.retry_after import parse_retry_after
from payonce.providers.secrets import Redactor
from payonce.providers.transport import Answer, Fault, Transport, TransportSettings, always_open

TransportMaker = Callable[[TransportSettings], Transport]
MESSAGE_LIMIT: Final = 300


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, parsed. ``tree`` is None where the body is no JSON object."""

    answer: Answer
    tree: dict[str, Any] | None
    retry_after_us: int | None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.answer.status


class NoAnswer(Exception):
    """A read beside the calls that was not answered as it should be; ``failed`` says how, ``told`` what was answered."""

    def __init__(self, failed: LookupFailed, *, told: Told | None = None) -> None:
        super().__init__(failed.message)
        self.failed = failed
        self.told = told

    @property
    def status(self) -> int | None:
        """The HTTP status, if there was an answer."""
        return None if self.told is None else self.told.status


@dataclass(frozen=True, slots=True)
class Setup:
    """What every adapter is built from. ``request_ids`` are the headers that name a call at the provider."""

    declaration: Declaration
    digest: str
    batch: str
    transport: TransportSettings
    redactor: Redactor = field(repr=False)
    request_ids: tuple[str, ...] = ("request-id",)


class OfficialAdapter(ABC):
    """See protocol.Provider."""

    def __init__(self, setup: Setup, *, make_transport: TransportMaker) -> None:
        self._setup = setup
        self._transport = make_transport(setup.transport)

    @property
    def declaration(self) -> Declaration:
        """What the adapter promises; data."""
        return self._setup.declaration

    @property
    def provider_digest(self) -> str:
        """See protocol.Provider."""
        return self._setup.digest

    async def open(self) -> None:
        """Opens the transport. Sends nothing."""
        await self._transport.open()

    async def close(self) -> None:
        """Closes the transport."""
        await self._transport.close()

    @abstractmethod
    async def identify(self) -> Identity:
        """See protocol.Provider."""

    @abstractmethod
    def prepare(self, item: Item, *, key: str | None, step: int) -> Request:
        """See protocol.Provider."""

    @abstractmethod
    def outcome(self, told: Told, request: Request, item: Item, *, key: str | None) -> Outcome:
        """What an answer means for the call it answers. An answer it does not know is Unresolved."""

    def replayed(self, told: Told) -> bool:
        """Whether the provider says that it repeats a remembered answer."""
        return False

    async def lookup(self, item: Item, *, key: str | None, step: int, timeout_us: int) -> LookupReply:
        """See protocol.Provider; an adapter without a look-up never gets here."""
        raise AssertionError("the declaration has no look-up")

    async def preflight(self, item: Item, *, timeout_us: int) -> Preflight | None:
        """None, where an adapter offers no cheap read."""
        return None

    def unsendable(self, item: Item) -> Preflight | None:
        """What keeps an item's call from being built at all; None where it can be. Nothing is read for such an item."""
        key = self.declaration.key
        try:
            self.prepare(item, key=None if key is None else encode(bytes(32), key.format), step=0)
        except ConfigError as error:
            return Preflight(False, error.code, error.message)
        return None

    def unfit(self, error: NoAnswer, outcome: Outcome | None, *, missing: str) -> Preflight:
        """What a read of a target means that brought no target: a definite no, a stop, or nothing known.

        ``outcome`` is what the same answer would mean for a call; ``missing`` says it in words where there is no such
        target.
        """
        match outcome:
            case Stop(code, message):
                return Preflight(False, code, self._setup.redactor.text(message)[:MESSAGE_LIMIT], stop=True)
            case Refused() if error.status == 404:
                return Preflight(False, "no_such_target", missing)
            case Refused(code, message):
                return Preflight(False, code, self._setup.redactor.text(message)[:MESSAGE_LIMIT])
        return Preflight(False, "not_checked", error.failed.message, unread=error.failed)

    async def send(self, request: Request, item: Item, *, key: str | None, timeout_us: int, gate: Gate) -> Reply:
        """See protocol.Provider. The bytes of ``request`` go out as they are."""
        started_us = time.time_ns() // 1000
        result = await self._exchange(request, timeout_us=timeout_us, gate=gate)
        ended_us = time.time_ns() // 1000
        if isinstance(result, Fault):
            return self._faulty(result, started_us, ended_us)
        told = self._told(result)
        if result.truncated:
            outcome: Outcome = Unresolved("answer_too_long", "the answer was not read to its end")
        else:
            outcome = self._redacted(self.outcome(told, request, item, key=key))
        return Reply(
            outcome,
            status=result.status,
            response=self._setup.redactor.body(result.body),
            truncated=result.truncated,
            request_id=self._request_id(result),
            replayed=self.replayed(told),
            started_us=started_us,
            ended_us=ended_us,
        )

    async def _exchange(self, request: Request, *, timeout_us: int, gate: Gate) -> Answer | Fault:
        """The way to the provider; where credentials have to be fetched first, a subclass adds them to a copy."""
        return await self._transport.send(request, timeout_us=timeout_us, gate=gate)

    async def read(self, request: Request, *, timeout_us: int) -> dict[str, Any]:
        """A read's JSON object. Raises NoAnswer for everything but a whole 200 with one."""
        result = await self._exchange(request, timeout_us=timeout_us, gate=always_open)
        if isinstance(result, Fault):
            text = self._setup.redactor.text(result.message)
            raise NoAnswer(LookupFailed(result.code, text, load=result.load))
        told = self._told(result)
        if result.status == 200 and told.tree is not None and not result.truncated:
            return told.tree
        limited = result.status == 429
        raise NoAnswer(
            LookupFailed(
                "rate_limited" if limited else f"http_{result.status}",
                f"a read at the provider was answered with {result.status}",
                load=limited,
                stop=result.status in (401, 403),
                retry_after_us=told.retry_after_us,
            ),
            told=told,
        )

    def _told(self, answer: Answer) -> Told:
        wait = None
        if answer.status >= 300:
            now_us = time.time_ns() // 1000
            wait = parse_retry_after(answer.header("retry-after"), now_us=now_us, date=answer.header("date"))
        try:
            tree = parse_object(answer.body)
        except ValueError:
            tree = None
        return Told(answer, tree, wait.wait_us if wait else None)

    def _faulty(self, fault: Fault, started_us: int, ended_us: int) -> Reply:
        message = self._setup.redactor.text(fault.message)
        outcome: Outcome
        if fault.sent:
            outcome = Unresolved(fault.code, message)
        else:
            outcome = NotExecuted(fault.code, message, load=fault.load)
        return Reply(
            outcome,
            sent=fault.sent,
            status=fault.status,
            response=self._setup.redactor.body(fault.body) if fault.body else None,
            truncated=fault.status is not None,
            started_us=started_us,
            ended_us=ended_us,
        )

    def _redacted(self, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Executed) or not outcome.message:
            return outcome
        return replace(outcome, message=self._setup.redactor.text(outcome.message)[:MESSAGE_LIMIT])

    def _request_id(self, answer: Answer) -> str | None:
        for name in self._setup.request_ids:
            found = answer.header(name)
            if found:
                return found[:200]
        return None

    def credentials_refused(self, error: NoAnswer) -> ConfigError:
        """The error of an identity that could not be read."""
        if error.failed.stop:
            return ConfigError(
                f"{self.declaration.kind} does not accept the credentials (status {error.status})",
                code="bad_credentials",
                hint="check the environment variable they come from, and whether they are for this environment",
            )
        return ConfigError(
            f"{self.declaration.kind} does not tell whose credentials these are: {error.failed.message}",
            code="identity_unreadable",
            hint="check the network and the address; payonce doctor makes the same read",
        )
