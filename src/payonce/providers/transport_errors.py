"""Every error of sockets, TLS and the event loop, placed: may the request have been sent, or surely not?

A place in NOT_SENT is necessary, never sufficient: a fault counts as not sent only if, besides, no byte was handed to
the socket. What is in neither table may have been sent. A test fails when Python or a library gains a class that is not
placed here (or, for aiohttp, in transport_aiohttp_errors), so that each is thought about once.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from payonce.providers.transport import Fault

# Raised while connecting, or before that: by name these come from the way to the server, not from the exchange.
NOT_SENT: Final[dict[type[BaseException], str]] = {
    socket.gaierror: "dns_failed",
    socket.herror: "dns_failed",
    ConnectionRefusedError: "connect_refused",
    # These also end an exchange; then the cell is marked and the table is not asked.
    TimeoutError: "connect_timeout",
    ConnectionResetError: "connect_failed",
    ConnectionAbortedError: "connect_failed",
    BrokenPipeError: "connect_failed",
    OSError: "connect_failed",
    PermissionError: "connect_failed",  # EACCES and EPERM of connect(2): a local firewall
    ssl.SSLError: "tls_failed",
    ssl.SSLCertVerificationError: "tls_failed",
    ssl.SSLEOFError: "tls_failed",
    ssl.SSLSyscallError: "tls_failed",
    ssl.SSLZeroReturnError: "tls_failed",
}

# Raised, or possibly raised, in an exchange: named so that a new class cannot slip by.
MAY_HAVE_BEEN_SENT: Final[dict[type[BaseException], str]] = {
    ConnectionError: "reset",
    BlockingIOError: "network_error",
    InterruptedError: "network_error",
    ChildProcessError: "network_error",
    FileExistsError: "network_error",
    FileNotFoundError: "network_error",
    IsADirectoryError: "network_error",
    NotADirectoryError: "network_error",
    ProcessLookupError: "network_error",
    ssl.SSLWantReadError: "network_error",
    ssl.SSLWantWriteError: "network_error",
    asyncio.IncompleteReadError: "cut_short",
    asyncio.LimitOverrunError: "bad_answer",
    asyncio.InvalidStateError: "network_error",
    asyncio.QueueEmpty: "network_error",
    asyncio.QueueFull: "network_error",
    asyncio.SendfileNotAvailableError: "network_error",
    asyncio.BrokenBarrierError: "network_error",
    asyncio.CancelledError: "cancelled",
}


@dataclass(frozen=True, slots=True)
class Places:
    """The two tables: code by class, for errors that surely come before the hand-over and for all others."""

    not_sent: Mapping[type[BaseException], str]
    may: Mapping[type[BaseException], str]


OWN_PLACES: Final = Places(NOT_SENT, MAY_HAVE_BEEN_SENT)

# The same, once the request has been handed over.
_WHEN_SENT: Final[dict[type[BaseException], str]] = {
    TimeoutError: "timeout",
    OSError: "reset",
    ConnectionResetError: "reset",
    ConnectionAbortedError: "reset",
    BrokenPipeError: "reset",
    ssl.SSLError: "reset",
    ssl.SSLEOFError: "reset",
    ssl.SSLSyscallError: "reset",
    ssl.SSLZeroReturnError: "closed",
}


def fault_of(error: BaseException, *, sent: bool, places: Places = OWN_PLACES) -> Fault:
    """An error as a fault. ``sent`` says whether bytes were handed over, ``places`` where the errors are placed.

    Not sent only if both the mark and the error's place say so. The message names the error; it holds nothing that
    the request held.
    """
    kind = type(error)
    if sent or kind not in places.not_sent:
        code = _WHEN_SENT.get(kind) or places.may.get(kind) or places.not_sent.get(kind, "network_error")
        return Fault(code, _describe(error), sent=True)
    code = places.not_sent[kind]
    cause = getattr(error, "os_error", error)
    number = getattr(cause, "errno", None)
    if number == errno.ECONNREFUSED or isinstance(cause, ConnectionRefusedError):
        code = "connect_refused" if code != "proxy_failed" else code
    # Whatever keeps a connection from coming up meets every item alike: it uses up no attempts, the batch waits, and
    # stops where it lasts. Only an address that cannot be used at all is the item's own fault.
    return Fault(code, _describe(error), sent=False, load=code != "bad_address")


def _describe(error: BaseException) -> str:
    text = str(getattr(error, "os_error", error)) or "no further detail"
    return f"{type(error).__name__}: {text[:300]}"
