"""The provider for any HTTP API, described by the batch file alone.

Builds the exact bytes of a call from templates, sends them once through the transport, and classifies whatever comes
back. Credentials are added by the transport on the way out: no Request, digest, message or repr ever holds one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from payonce.core.errors import ConfigError
from payonce.core.model import Declaration, Item, Request
from payonce.core.money import Money
from payonce.core.outcome import (
    AlreadyDone,
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
from payonce.providers.http_config import HttpConfig
from payonce.providers.http_identity import read_identity
from payonce.providers.protocol import Gate, Identity, Preflight
from payonce.providers.templates import Context, check_names
from payonce.providers.transport import Answer, Fault, HeadSeen, Transport, TransportSettings

TransportMaker = Callable[[TransportSettings], Transport]
_REQUEST_ID_HEADERS: Final = ("request-id", "x-request-id", "x-correlation-id")


class HttpProvider:
    """See protocol.Provider. ``make_transport`` is where requests go: the network, or a simulated world."""

    def __init__(self, config: HttpConfig, *, make_transport: TransportMaker) -> None:
        self._config = config
        self._transport = make_transport(config.transport)
        self._redactor = config.redactor
        # Told of a call's id while its answer is still on its way; set by whoever keeps it.
        self.witness: Callable[[Item, str], None] | None = None
        self._request_ids = config.request_id_headers or _REQUEST_ID_HEADERS

    @property
    def declaration(self) -> Declaration:
        """What the settings promise."""
        return self._config.declaration

    @property
    def provider_digest(self) -> str:
        """See protocol.Provider."""
        return self._config.digest

    def check_columns(self, columns: Collection[str]) -> None:
        """Raises ConfigError ``unknown_placeholder`` where a template names what is neither built in nor a column."""
        check_names(self._config.templates, columns=columns, mapped=self._config.mapped)

    async def open(self) -> None:
        """Opens the transport. Sends nothing."""
        await self._transport.open()

    async def close(self) -> None:
        """Closes the transport."""
        await self._transport.close()

    async def identify(self) -> Identity:
        """The account and mode: from a read where [provider.identity] names one, else as configured.

        Raises ConfigError for bad credentials, an account that cannot be read, or another than is configured.
        """
        return await read_identity(self._config, self._transport)

    def prepare(self, item: Item, *, key: str | None, step: int) -> Request:
        """The exact request of an item. Pure. Raises ConfigError where a template cannot be filled."""
        assert step == 0, "an HTTP provider has one step"
        config = self._config
        if config.executions.needs_currency(item):
            raise ConfigError(
                f"item {item.id} has no currency, and [provider.call] reads a billed amount",
                code="billed_without_currency",
                hint='add billed_currency = "currency" or, fixed, billed_currency = "\'USD\'"',
            )
        context = Context(item, key, config.batch)
        if config.price is not None:
            config.price.check(context)
        call = config.call
        headers = [(name, template.header(context)) for name, template in call.headers]
        if call.body.content_type is not None:
            headers.append(("Content-Type", call.body.content_type))
        if call.key_header is not None:
            if key is None:
                raise ConfigError("the call has no key", code="template_unfilled", hint="this is a defect in payonce")
            headers.append((call.key_header, key))
        request = Request(call.method, call.path.path(context), call.body.render(context), tuple(headers))
        if config.price is not None and config.price.bounds_requests:
            config.price.at_most(request, context)  # what cannot be bounded is refused here, before anything is sent
        return request

    def at_most(self, request: Request, item: Item) -> Money | None:
        """What a call can cost at most, from its request alone; None where [provider.price] does not bound it."""
        price = self._config.price
        return None if price is None else price.at_most(request, Context(item, None, self._config.batch))

    def estimated(self, request: Request, item: Item) -> Money | None:
        """What a call will cost, roughly; None where [provider.price] does not say."""
        price = self._config.price
        return None if price is None else price.estimated(request, Context(item, None, self._config.batch))

    async def send(self, request: Request, item: Item, *, key: str | None, timeout_us: int, gate: Gate) -> Reply:
        """See protocol.Provider."""
        started_us = time.time_ns() // 1000
        if self._config.id_header is None or self.witness is None:
            result = await self._transport.send(request, timeout_us=timeout_us, gate=gate)
        else:
            head = self._head(item)
            result = await self._transport.send(request, timeout_us=timeout_us, gate=gate, head=head)
        ended_us = time.time_ns() // 1000
        if isinstance(result, Fault):
            return self._faulty(result, started_us=started_us, ended_us=ended_us)
        classifier = self._config.classifier
        read = classifier.read(result, now_us=ended_us)
        outcome = classifier.outcome(read, Context(item, key, self._config.batch))
        if isinstance(outcome, Unresolved) and self.witness is not None and self._config.keeps_ids:
            self._tell(item, result.headers, outcome.hint_reference)
        return Reply(
            self._redacted(outcome),
            sent=True,
            status=result.status,
            response=self._redactor.body(result.body),
            truncated=result.truncated,
            request_id=self._request_id(result),
            replayed=read.replayed,
            started_us=started_us,
            ended_us=ended_us,
        )

    def _head(self, item: Item) -> HeadSeen:
        return lambda _, headers: self._tell(item, headers, None)

    def _tell(self, item: Item, headers: tuple[tuple[bytes, bytes], ...], shown: str | None) -> None:
        """Tells the call's id: of its header, else as the body shows it."""
        name = self._config.id_header
        found = Answer(0, headers, b"").header(name) if name is not None else None
        if self.witness is not None and (found or shown):
            self.witness(item, (found or shown or "")[:500])

    def _faulty(self, fault: Fault, *, started_us: int, ended_us: int) -> Reply:
        message = self._redactor.text(fault.message)
        outcome: Outcome
        if fault.sent:
            outcome = Unresolved(fault.code, message)
        else:
            outcome = NotExecuted(fault.code, message, load=fault.load)
        return Reply(
            outcome,
            sent=fault.sent,
            status=fault.status,
            response=self._redactor.body(fault.body) if fault.body else None,
            truncated=fault.status is not None,
            started_us=started_us,
            ended_us=ended_us,
        )

    def _redacted(self, outcome: Outcome) -> Outcome:
        match outcome:
            case Executed():
                return outcome
            case Refused() | NotExecuted() | Unresolved() | AlreadyDone() | Stop():
                if not outcome.message:
                    return outcome
                return replace(outcome, message=self._redactor.text(outcome.message))

    def _request_id(self, answer: Answer) -> str | None:
        for name in self._request_ids:
            found = answer.header(name)
            if found:
                return found[:200]
        return None

    async def lookup(self, item: Item, *, key: str | None, step: int, timeout_us: int) -> LookupReply:
        """See protocol.Provider."""
        lookup = self._config.lookup
        assert lookup is not None, "the declaration has no look-up"
        context = Context(item, key, self._config.batch)
        try:
            reply = await lookup.run(context, transport=self._transport, timeout_us=timeout_us)
        except ConfigError as error:
            return LookupFailed(error.code, error.message, final=True)
        if isinstance(reply, LookupFailed):
            return replace(reply, message=self._redactor.text(reply.message))
        return replace(reply, response=self._redactor.body(reply.response or b""))

    async def preflight(self, item: Item, *, timeout_us: int) -> Preflight | None:
        """See protocol.Provider; None where the settings describe no read of a target."""
        preflight = self._config.preflight
        if preflight is None:
            return None
        context = Context(item, None, self._config.batch)
        try:
            found = await preflight.run(context, transport=self._transport, timeout_us=timeout_us)
        except ConfigError as error:
            return Preflight(False, error.code, error.message)
        if found.unread is not None:
            found = replace(found, unread=replace(found.unread, message=self._redactor.text(found.unread.message)))
        return replace(found, message=self._redactor.text(found.message)) if found.message else found
