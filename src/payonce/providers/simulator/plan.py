"""What the world has decided to do about one call, for a driver to carry out.

The world does no I/O: a driver (the HTTP server, the in-process client, a simulation) turns a plan into bytes, waits
and resets. A plan is carried out once; then the driver calls `World.done(ticket)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request as it arrived: `target` is the path with its query, header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP answer."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """Send the reply after `after_us`; if `cut`, send half of its body and close the connection. `trickle_us`: its head at
    once, its body piece by piece over so long."""

    ticket: int
    reply: Reply
    after_us: int = 0
    cut: bool = False
    trickle_us: int = 0


@dataclass(frozen=True, slots=True)
class Silence:
    """Never answer, and keep the connection open until the client gives up."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Abort:
    """Reset the connection; `sent` is false where a client is to see that no byte of the request left."""

    ticket: int
    sent: bool = True


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection in an orderly way, without an answer."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask `World.resume(ticket)` again at `until_us` on the world's clock."""

    ticket: int
    until_us: int


Plan = Answer | Silence | Abort | Close | Wait
