"""The port to the network: sends one request once and says exactly what became of it.

A transport never retries a request of which a byte may have left, follows no redirect, keeps no cookies and logs
nothing. Whether something was sent is a fact, not a guess: the gate is asked at the place where the first byte is
handed to the socket, and a fault is ``sent=False`` only where that place was never passed.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from typing import Final, Protocol

from payonce.core.model import Request
from payonce.providers.protocol import Gate

DEFAULT_ANSWER_LIMIT: Final = 8 * 1024 * 1024
# A server closes idle connections after 5 s or more, most after 60 s; one that closes just as we send costs an item's
# certainty, so ours are given up well before.
IDLE_TIMEOUT_S: Final = 4.0
# The same where nothing can be resolved afterwards: such a call had better have a fresh connection.
UNSURE_IDLE_TIMEOUT_S: Final = 1.0


@dataclass(slots=True)
class Answer:
    """A whole answer, whatever its status. ``truncated``: it was longer than the limit and cut there.

    ``headers`` are as received; a transport may change nothing in them. Treat it as frozen: it is one only by
    convention, since a frozen dataclass costs three times as much to make and one is made for every call.
    """

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    truncated: bool = False
    _named: dict[bytes, bytes] | None = field(default=None, repr=False, compare=False)

    def header(self, name: str) -> str | None:
        """The first header of this name (case-insensitive), or None."""
        named = self._named
        if named is None:
            # In reverse, so that the first of a name is the one that stays.
            named = self._named = {key.lower(): value for key, value in reversed(self.headers)}
        value = named.get(_as_bytes(name))
        return None if value is None else value.decode("latin-1").strip()


@lru_cache(maxsize=256)  # the names a provider's settings ask for
def _as_bytes(name: str) -> bytes:
    return name.lower().encode("latin-1")


@dataclass(frozen=True, slots=True)
class Fault:
    """No whole answer came. ``sent`` is False only where it is certain that no byte of the request left.

    ``code`` is stable (see transport_errors); ``load``: the cause is load or a passing outage of the network.
    ``status`` and ``body`` are what had been received of an answer that broke off, as evidence.
    """

    code: str
    message: str
    sent: bool = True
    load: bool = False
    status: int | None = None
    body: bytes = b""


# What a refusal of the gate looks like to a caller.
GATE_CLOSED: Final = Fault("not_sent", "the call was held back before its first byte", sent=False)


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """Where and how requests go. ``headers`` and ``query`` may hold credentials: they are added here, on the way out,
    and appear in no Request, message or repr.

    ``base_url`` has no trailing slash; request paths start with one. ``proxy`` is a URL or None. ``limit`` is the
    number of connections, ``answer_limit`` in bytes after decoding.
    """

    base_url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    query: str = field(default="", repr=False)
    limit: int = 64
    ca_file: str | None = None
    verify_tls: bool = True
    proxy: str | None = field(default=None, repr=False)
    answer_limit: int = DEFAULT_ANSWER_LIMIT
    idle_timeout_s: float = IDLE_TIMEOUT_S

    def target(self, path: str) -> str:
        """A request's path with the provider's own query added."""
        if not self.query:
            return path
        return f"{path}{'&' if '?' in path else '?'}{self.query}"


# Told of the head of an answer whose body has not arrived with it: status and headers.
HeadSeen = Callable[[int, tuple[tuple[bytes, bytes], ...]], None]


class Transport(Protocol):
    """One provider's connections."""

    async def open(self) -> None:
        """Prepares; connects to nothing."""
        ...

    async def close(self) -> None:
        """Closes all connections; requests in flight were awaited before."""
        ...

    async def send(
        self, request: Request, *, timeout_us: int, gate: Gate, head: HeadSeen | None = None
    ) -> Answer | Fault:
        """Sends the request once and waits for the whole answer, ``timeout_us`` for everything together. ``head`` is called at
        most once, where the answer's head is there and its body is not.

        Raises nothing for what the network or the other side does. A cancelled call counts as may-have-been-sent.
        """
        ...


def always_open() -> bool:
    """The gate of reads: they may be sent at any time."""
    return True


def default_headers(settings: TransportSettings) -> tuple[tuple[str, str], ...]:
    """The headers of every request: the settings' own, and what they leave out.

    Identity is asked for: answers are small, and a compressed one that breaks off tells less.
    """
    stated = {name.lower() for name, _ in settings.headers}
    usual = (("Accept", "*/*"), ("Accept-Encoding", "identity"), ("User-Agent", f"payonce/{_version()}"))
    return (*settings.headers, *((name, value) for name, value in usual if name.lower() not in stated))


def _version() -> str:
    try:
        return metadata.version("payonce")
    except metadata.PackageNotFoundError:  # run from a copy of the sources
        return "dev"


def tls_context(settings: TransportSettings) -> ssl.SSLContext:
    """TLS with the system's authorities, or only those of ``ca_file``; unverified for loopback tests alone."""
    context = ssl.create_default_context(cafile=settings.ca_file)
    if not settings.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def decoded(answer: Answer, limit: int) -> Answer:
    """The answer with its content encoding (gzip, deflate) undone, cut at ``limit`` bytes.

    An encoding that is not known, or a body that is not what its header says, is left as it is: it will not parse,
    and what does not parse is never taken for a success.
    """
    encoding = answer.header("content-encoding")
    if encoding is None or encoding.lower() not in ("gzip", "x-gzip", "deflate"):
        return answer
    try:
        # 47: zlib and gzip headers are told apart by the decoder.
        decoder = zlib.decompressobj(47)
        body = decoder.decompress(answer.body, limit + 1)
    except zlib.error:
        return answer
    whole = decoder.eof and len(body) <= limit
    return Answer(answer.status, answer.headers, body[:limit], truncated=answer.truncated or not whole)


def join(chunks: Iterable[bytes]) -> bytes:
    """Chunks as one; most bodies are one chunk, which is passed on as it is."""
    parts = tuple(chunks)
    return parts[0] if len(parts) == 1 else b"".join(parts)
