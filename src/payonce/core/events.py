"""The canonical form of the trail's events: RFC 8785 JSON, and what may stand in it.

Only text, whole numbers below 2**53, booleans, null, lists and objects whose keys lie below U+D800 are allowed: for these,
keys sorted by UTF-8 and the shortest escapes are exactly RFC 8785 (which sorts by UTF-16: the two orders part only above).
``plain`` brings any value into that form. Amounts are text in major units. Nothing secret ever enters: events are built
from references, codes and digests, and payloads only by policy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import orjson

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SAFE: Final = 2**53
# A hash that has taken the prefix in: copying it costs a third less than starting a new one.
_LEAF: Final = hashlib.sha256(b"\x00")
_NODE: Final = hashlib.sha256(b"\x01")

# What the events of a batch say, by the event that sealed it. From 2 on they explain every column that follows from them:
# also what attempts count, look-ups, what was learned of open intents, and what each control came to.
FORM: Final = 2

# Item events are named in states.ItemEvent; these are the ones about a whole batch or the ledger.
BATCH_EVENTS: Final = (
    "ledger_created",
    "ledger_accepted",
    "sealed",
    "amended",
    "resealed",
    "worker_joined",
    "worker_left",
    "worker_dead",
    "started",
    "paused",
    "resumed",
    "cancelled",
    "stopped",
    "interrupted",
    "halted",
    "finished",
    "configured",
    "slowed",
    "overlap_allowed",
    "finding",
    "finding_closed",
    "reconciled",
    "spooled",
    "note",
)


def iso(us: int) -> str:
    """Microseconds since the epoch as ``2026-11-30T08:00:00.000000Z``."""
    second, rest = divmod(us, 1_000_000)
    return f"{_second(second)}.{rest:06d}Z"


@lru_cache(maxsize=64)  # a run's times are nearly all in the last few seconds
def _second(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")


def from_iso(text: str) -> int:
    """Microseconds since the epoch of an ISO 8601 time; without an offset it is taken as UTC. Raises ValueError."""
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return (parsed - _EPOCH) // timedelta(microseconds=1)


def well_formed(text: str) -> str:
    """A text that UTF-8 can hold: a lone half of a surrogate pair, which it cannot, is written out as ``\\ud800``."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def plain(value: Any) -> Any:
    """A JSON-like value in the form that may enter an event: floats and large integers become text, exactly."""
    # What events mostly hold, without the detour through the patterns below, which mean the same.
    kind = type(value)
    if kind is str and value.isascii():
        return value
    if kind is dict:
        return {
            k if type(k) is str and k.isascii() else _key(str(k)): v if type(v) is str and v.isascii() else plain(v)
            for k, v in value.items()
        }
    if kind is int:
        return value if -_SAFE < value < _SAFE else str(value)
    match value:
        case None | bool():
            return value
        case str():
            return well_formed(value)
        case int():
            return value if -_SAFE < value < _SAFE else str(value)
        case float():
            return repr(value)
        case Mapping():
            return {_key(str(k)): plain(v) for k, v in value.items()}
        case list() | tuple():
            return [plain(v) for v in value]
        case _:
            return well_formed(str(value))


def _key(text: str) -> str:
    """A key as it may stand in an object: characters from U+D800 on are written out."""
    if text.isascii() or all(c < "\ud800" for c in text):
        return text
    return "".join(c if c < "\ud800" else f"\\u{ord(c):04x}" for c in text)


def canonical(body: Mapping[str, Any]) -> bytes:
    """The canonical bytes of an event's body; None values are left out at the top level."""
    return orjson.dumps({k: v for k, v in body.items() if v is not None}, option=orjson.OPT_SORT_KEYS)


def leaf_hash(body: bytes) -> bytes:
    """The RFC 6962 leaf hash of an event: SHA-256 over a zero byte and its canonical bytes."""
    started = _LEAF.copy()
    started.update(body)
    return started.digest()


def leaf_hashes(bodies: Iterable[bytes]) -> list[bytes]:
    """The leaf hashes of many events: without the cost of a call for each."""
    start, found = _LEAF.copy, []
    for body in bodies:
        started = start()
        started.update(body)
        found.append(started.digest())
    return found


def node_hashes(row: Iterable[bytes]) -> list[bytes]:
    """The hashes of the inner nodes above a row of hashes, of which there is an even number."""
    start, found, hashes = _NODE.copy, [], iter(row)
    for left, right in zip(hashes, hashes, strict=True):
        started = start()
        started.update(left + right)
        found.append(started.digest())
    return found


def node_hash(left: bytes, right: bytes) -> bytes:
    """The RFC 6962 hash of an inner node."""
    started = _NODE.copy()
    started.update(left + right)
    return started.digest()
