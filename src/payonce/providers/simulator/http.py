"""The HTTP/1.1 side of the simulator: one connection, from bytes to plans and back.

Answers leave in the order of their requests. A plan that waits holds up the requests behind it on the same connection,
as a server without multiplexing does. A reset is a real one: SO_LINGER 0 makes the kernel send RST instead of FIN.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections import deque
from http import HTTPStatus
from typing import cast

import httptools

from payonce.providers.simulator.plan import Abort, Answer, Call, Close, Plan, Reply, Silence, Wait
from payonce.providers.simulator.requests import error
from payonce.providers.simulator.world import World

_MAX_BODY = 16 * 1024 * 1024
_MAX_QUEUED = 64
_TRICKLES = 10
_LINGER_ZERO = struct.pack("ii", 1, 0)
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}


def encode(reply: Reply, *, ticket: int, keep_alive: bool) -> bytes:
    """The bytes of an answer. 204 has neither a body nor its headers."""
    lines = [_STATUS_LINES.get(reply.status) or f"HTTP/1.1 {reply.status} Status\r\n"]
    if reply.status != 204:
        lines.append(f"Content-Type: {reply.content_type}\r\nContent-Length: {len(reply.body)}\r\n")
    lines.append(f"Request-Id: req_{ticket}\r\n")
    lines.extend(f"{name}: {value}\r\n" for name, value in reply.headers)
    lines.append("\r\n" if keep_alive else "Connection: close\r\n\r\n")
    return "".join(lines).encode("latin-1") + reply.body


class Connection(asyncio.Protocol):
    """One client. All state is the event loop's; `open_connections` lets the server close everyone."""

    def __init__(self, world: World, *, open_connections: set[Connection]) -> None:
        self._world = world
        self._all = open_connections
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[tuple[Call, bool]] = deque()
        self._ticket: int | None = None
        self._keep_alive = True
        self._timer: asyncio.TimerHandle | None = None
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        # Not checked by isinstance: uvloop's transports are no subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone; what it was waiting for is not in flight any more."""
        self._all.discard(self)
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()
        if self._ticket is not None:
            self._world.done(self._ticket)
            self._ticket = None

    def data_received(self, data: bytes) -> None:
        """Bytes of requests."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._transport.abort()
        except httptools.HttpParserError:
            reply = error(400, "request_unreadable", "This is not an HTTP/1.1 request.")
            self._transport.write(encode(reply, ticket=0, keep_alive=False))
            self._transport.close()

    # What the parser calls.

    def on_message_begin(self) -> None:
        """A request begins."""
        self._headers = {}
        self._body = []
        self._size = 0
        self._target = b""

    def on_url(self, url: bytes) -> None:
        """A part of the request's target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The body comes next; a client that asks first is told to go on."""
        if "expect" in self._headers:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """A part of the body, chunked or not."""
        self._size += len(body)
        if self._size > _MAX_BODY:
            self._transport.abort()
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """A request is whole: it is served now, or after those before it."""
        call = Call(
            self._parser.get_method().decode("latin-1"),
            self._target.decode("latin-1"),
            self._headers,
            self._body[0] if len(self._body) == 1 else b"".join(self._body),
        )
        self._queue.append((call, self._parser.should_keep_alive()))
        if self._ticket is None:
            self._serve()
        elif len(self._queue) > _MAX_QUEUED:
            self._transport.pause_reading()

    # What the world decided.

    def _serve(self) -> None:
        while self._queue and self._ticket is None and not self._transport.is_closing():
            call, self._keep_alive = self._queue.popleft()
            try:
                plan = self._world.handle(call)
            except OSError:
                # The books could not be written: nothing happened, and there is nothing true to answer.
                self._reset()
                return
            self._carry_out(plan)

    def _carry_out(self, plan: Plan) -> None:
        self._ticket = plan.ticket
        match plan:
            case Answer(after_us=0):
                self._answer(plan)
            case Answer():
                self._timer = self._loop.call_later(plan.after_us / 1e6, self._answer_and_serve, plan)
            case Wait():
                delay_us = max(0, plan.until_us - self._world.now())
                self._timer = self._loop.call_later(delay_us / 1e6, self._resume, plan.ticket)
            case Silence():
                pass
            case Abort():
                self._reset()
            case Close():
                self._transport.close()

    def _resume(self, ticket: int) -> None:
        self._carry_out(self._world.resume(ticket))
        self._go_on()

    def _answer_and_serve(self, plan: Answer) -> None:
        self._answer(plan)
        self._go_on()

    def _go_on(self) -> None:
        if self._queue:
            self._serve()
            self._transport.resume_reading()

    def _answer(self, plan: Answer) -> None:
        data = encode(plan.reply, ticket=plan.ticket, keep_alive=self._keep_alive and not plan.cut)
        if plan.trickle_us:
            self._trickle(plan, data)
            return
        if plan.cut:
            data = data[: len(data) - (len(plan.reply.body) + 1) // 2]
        self._transport.write(data)
        self._finish(plan)

    def _trickle(self, plan: Answer, data: bytes) -> None:
        """The head now, the body in equal pieces."""
        head = len(data) - len(plan.reply.body)
        step = max(1, -(-len(plan.reply.body) // _TRICKLES))
        pieces = deque([data[:head], *(data[at : at + step] for at in range(head, len(data), step))])
        self._drip(plan, pieces, plan.trickle_us / 1e6 / _TRICKLES)

    def _drip(self, plan: Answer, pieces: deque[bytes], gap_s: float) -> None:
        self._transport.write(pieces.popleft())
        if pieces:
            self._timer = self._loop.call_later(gap_s, self._drip, plan, pieces, gap_s)
            return
        self._finish(plan)
        self._go_on()

    def _finish(self, plan: Answer) -> None:
        self._world.done(plan.ticket)
        self._ticket = None
        if plan.cut or not self._keep_alive:
            self._transport.close()

    def _reset(self) -> None:
        """Resets the connection. The option is set through a copy of the descriptor: not every loop lends its own."""
        known = self._transport.get_extra_info("socket")
        if known is not None and hasattr(os, "dup"):
            with socket.socket(fileno=os.dup(known.fileno())) as copy:
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self._transport.abort()

    def abort(self) -> None:
        """Ends the connection at once, as when the server goes away."""
        self._transport.abort()
