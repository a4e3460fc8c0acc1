"""Every error class of the libraries is placed, and what is not placed may have been sent."""

from __future__ import annotations

import asyncio
import builtins
import errno
import inspect
import socket
import ssl
from types import ModuleType

import pytest
from aiohttp import client_exceptions, http_exceptions

from payonce.providers import transport_aiohttp_errors, transport_errors
from payonce.providers.transport_errors import OWN_PLACES, fault_of

ALL = transport_aiohttp_errors.PLACES


def classes(module: ModuleType, base: type[BaseException]) -> set[type[BaseException]]:
    return {found for _, found in inspect.getmembers(module, inspect.isclass) if issubclass(found, base)}


@pytest.mark.parametrize(
    ("module", "base"),
    [
        (client_exceptions, Exception),
        (builtins, OSError),
        (socket, OSError),
        (ssl, OSError),
        (asyncio.exceptions, BaseException),
    ],
    ids=["aiohttp", "os", "socket", "ssl", "asyncio"],
)
def test_every_error_is_placed(module: ModuleType, base: type[BaseException]) -> None:
    """A class that a new version adds fails here, until somebody has thought about where it belongs."""
    assert classes(module, base) - set(ALL.not_sent) - set(ALL.may) == set()


def test_nothing_is_placed_twice() -> None:
    """A class has one place."""
    assert set(ALL.not_sent) & set(ALL.may) == set()


def test_parser_errors_are_wrapped_by_the_client() -> None:
    """aiohttp turns its parser's errors into ClientResponseError; the base class is placed in case one slips out."""
    assert http_exceptions.HttpProcessingError in ALL.may


@pytest.mark.parametrize("kind", sorted(ALL.not_sent, key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_a_place_alone_is_not_enough(kind: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    """Once bytes were handed over, no name of an error says that nothing was sent."""
    error = kind.__new__(kind)
    # Made without its arguments, an error of aiohttp cannot describe itself.
    monkeypatch.setattr(transport_errors, "_describe", lambda error: "")
    assert fault_of(error, sent=True, places=ALL).sent
    assert not fault_of(error, sent=True, places=ALL).load


def test_what_is_not_placed_may_have_been_sent() -> None:
    """A new class, also one derived from a placed one, is not trusted."""

    class Novel(ConnectionRefusedError):
        pass

    for error in (Novel(), RuntimeError("x"), ValueError("y"), Exception()):
        fault = fault_of(error, sent=False)
        assert fault.sent
        assert fault.code == "network_error"


@pytest.mark.parametrize(
    ("error", "code", "load"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "connect_refused", True),
        (OSError(errno.ECONNREFUSED, "several"), "connect_refused", True),
        (TimeoutError(), "connect_timeout", True),
        (OSError(errno.ENETUNREACH, "unreachable"), "connect_failed", True),
        (OSError(errno.EMFILE, "too many files"), "connect_failed", True),
        (PermissionError(errno.EACCES, "firewall"), "connect_failed", True),
        (socket.gaierror(socket.EAI_AGAIN, "again"), "dns_failed", True),
        (socket.gaierror(socket.EAI_NONAME, "no such name"), "dns_failed", True),
        (ssl.SSLCertVerificationError(1, "certificate"), "tls_failed", True),
    ],
)
def test_errors_of_connecting_are_told_apart(error: OSError, code: str, load: bool) -> None:
    """What passes by itself uses up no attempt; what does not, does."""
    fault = fault_of(error, sent=False)
    assert (fault.code, fault.load, fault.sent) == (code, load, False)


def test_the_tables_are_those_the_transports_use() -> None:
    """The direct transport knows Python's errors, aiohttp's knows both."""
    assert OWN_PLACES.not_sent is transport_errors.NOT_SENT
    assert set(transport_errors.NOT_SENT) <= set(ALL.not_sent)
