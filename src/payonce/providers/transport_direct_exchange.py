"""One HTTP/1.1 connection of the direct transport: bytes out, one answer back, nothing assumed.

States: idle (nobody waits for an answer; any byte that arrives now was not asked for, and ends the connection),
exchanging (from the hand-over of a request until its answer is whole, or the connection is lost, or its time is over)
and dead. A connection is reused only after a whole answer that allows it and with no byte left over, so that an answer
can never be taken for that of another call.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from typing import Any, Final, cast

import httptools

from payonce.providers.transport import Answer, Fault, HeadSeen, decoded, join
from payonce.providers.transport_errors import fault_of

# No honest answer has more than this before its body.
_MAX_HEAD: Final = 256 * 1024
_KEEPS: Final = re.compile(rb"timeout\s*=\s*(\d{1,6})", re.IGNORECASE)
_TIMEOUT_MESSAGE: Final = "the call's time was over before a whole answer came"


class Exchange(asyncio.Protocol):
    """See the module's text. ``lost`` is called once, when the connection is gone."""

    __slots__ = (
        "_body",
        "_head",
        "_head_done",
        "_headers",
        "_limit",
        "_lost",
        "_parser",
        "_received",
        "_size",
        "_status",
        "_transport",
        "_waiter",
        "idle_since",
        "server_keeps_s",
        "usable",
    )

    def __init__(self, *, limit: int, lost: Callable[[Exchange], None]) -> None:
        self._limit = limit
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer | Fault] | None = None
        self._head: HeadSeen | None = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self.usable = True
        self.idle_since = 0.0
        self.server_keeps_s = math.inf
        self._fresh()

    def _fresh(self) -> None:
        self._status = 0
        self._head_done = False
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._received = 0

    # What the transport asks for.

    def hand_over(self, data: bytes, waiter: asyncio.Future[Answer | Fault], *, head: HeadSeen | None = None) -> None:
        """Gives the request to the socket. From here on its bytes may have left; the waiter gets what comes of it."""
        assert self._transport is not None and self._waiter is None, "a connection carries one exchange at a time"
        self._waiter = waiter
        self._head = head
        self._transport.write(data)

    def expire(self) -> None:
        """The exchange's time is over."""
        self._end(self._broken("timeout", _TIMEOUT_MESSAGE))
        self.discard()

    def discard(self) -> None:
        """Ends the connection at once, whatever is on it."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is up, TLS included."""
        # Not every loop's transports have asyncio's as their base.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone. An answer that ends where the connection does is whole only if it closed in order."""
        self.usable = False
        self._transport = None
        if self._waiter is not None:
            if exc is None and self._head_done and self._ends_with_connection():
                self._complete()
            elif self._head_done:
                self._end(self._broken("cut_short", "the connection ended in the middle of the answer"))
            elif exc is None:
                self._end(self._broken("closed", "the connection was closed before an answer came"))
            else:
                self._end(fault_of(exc, sent=True))
        self._lost(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer; or bytes that nobody asked for."""
        if self._waiter is None:
            self.discard()
            return
        self._received += len(data)
        if not self._head_done and self._received > _MAX_HEAD:
            self._end(self._broken("bad_answer", "the answer's head does not end"))
            self.discard()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._end(self._broken("bad_answer", "the server switched to another protocol"))
            self.discard()
        except httptools.HttpParserError as error:
            self._end(self._broken("bad_answer", f"not HTTP/1.1: {str(error)[:200]}"))
            self.discard()
        if self._head is not None and self._head_done and self._waiter is not None:
            told, self._head = self._head, None
            told(self._status, tuple(self._headers))

    # What the parser calls.

    def on_message_begin(self) -> None:
        """An answer begins; a second one was not asked for."""
        if self._waiter is None:
            self.usable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; trailers are left out."""
        if not self._head_done:
            self._headers.append((name, value))
            if len(name) == 10 and name.lower() == b"keep-alive":
                self._note_patience(value)

    def on_headers_complete(self) -> None:
        """The head is whole; what came with 1xx does not count."""
        status = self._parser.get_status_code()
        if status < 200:
            self._headers = []
        else:
            self._status = status
            self._head_done = True

    def on_body(self, body: bytes) -> None:
        """A part of the body. Beyond the limit nothing is read any more."""
        if self._waiter is None:
            return
        self._body.append(body)
        self._size += len(body)
        if self._size > self._limit:
            cut = join(self._body)[: self._limit]
            self._end(Answer(self._status, tuple(self._headers), cut, truncated=True))
            self.discard()

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self._head_done and self._waiter is not None:
            if not self._parser.should_keep_alive():
                self.usable = False
            self._complete()

    def _note_patience(self, value: bytes) -> None:
        """How long the server says that it keeps an idle connection: a second less is safe to use."""
        found = _KEEPS.search(value)
        if found is not None:
            self.server_keeps_s = max(0, int(found[1]) - 1)

    def _complete(self) -> None:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        answer = Answer(self._status, tuple(self._headers), body)
        self._end(decoded(answer, self._limit))

    def _end(self, result: Answer | Fault) -> None:
        waiter, self._waiter = self._waiter, None
        self._fresh()
        if waiter is not None and not waiter.done():
            waiter.set_result(result)

    def _broken(self, code: str, message: str) -> Fault:
        return Fault(code, message, status=self._status or None, body=join(self._body)[: self._limit])

    def _ends_with_connection(self) -> bool:
        names = {name.lower() for name, _ in self._headers}
        return not names & {b"content-length", b"transfer-encoding"}
