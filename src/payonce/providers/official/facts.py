"""Later facts about money, as a provider's webhooks tell them: what they say, and whether they are the provider's. Pure.

A webhook may come twice, late, out of order, or before the answer to the call itself. ``settled`` makes all of that
harmless: it only ever adds to what is known, whatever the order.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from payonce.core.money import Money
from payonce.core.states import Settlement

_RANK: Final = {Settlement.NONE: 0, Settlement.PENDING: 1, Settlement.SUCCEEDED: 2, Settlement.FAILED: 2}


@dataclass(frozen=True, slots=True)
class Delivery:
    """One webhook as it was received. ``headers`` have lower-case names; ``body`` is what was signed, byte for byte;
    ``place`` is where it was found, for messages."""

    body: bytes
    headers: Mapping[str, str]
    place: str


@dataclass(frozen=True, slots=True)
class Fact:
    """What one event says about one execution. ``own_reference`` and ``batch`` are ours, where the event echoes them.

    ``target`` is what was acted on, ``at`` the event's time as the provider wrote it, ``word`` its own status.
    """

    event: str
    kind: str
    reference: str
    settlement: Settlement
    word: str
    own_reference: str | None = None
    batch: str | None = None
    target: str | None = None
    money: Money | None = None
    live: bool | None = None
    at: str | None = None


class BadSignature(Exception):
    """The event is not signed with the secret that was given; nothing in it may be believed."""


class NotAnEvent(Exception):
    """The delivery is no event of this provider."""


def settled(known: Settlement, told: Settlement) -> Settlement:
    """What is known once something more is told. Order and repeats make no difference.

    Money that arrived and is said to have failed came back; what came back stays so.
    """
    if Settlement.RETURNED in (known, told):
        return Settlement.RETURNED
    if {known, told} == {Settlement.SUCCEEDED, Settlement.FAILED}:
        return Settlement.RETURNED
    return told if _RANK[told] > _RANK[known] else known


def same_signature(given: str | None, expected: bytes, *, encoding: str) -> bool:
    """Whether a signature is the expected one, in time that does not depend on where they differ."""
    if not given:
        return False
    wanted = expected.hex() if encoding == "hex" else base64.b64encode(expected).decode("ascii")
    return hmac.compare_digest(given.encode("utf-8"), wanted.encode("utf-8"))


def sha256_hmac(secret: bytes, message: bytes) -> bytes:
    """HMAC-SHA-256."""
    return hmac.new(secret, message, hashlib.sha256).digest()


def texts(tree: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    """Fields as the provider signed them: missing ones empty, numbers in their shortest form."""
    return tuple("" if tree.get(name) is None else str(tree[name]) for name in names)
