"""Idempotency keys: derived from what an item is, never from when, where or how often it is sent.

``key = encode(sha256(lp(namespace) lp(batch) lp(operation) lp(step) lp(item) lp(generation)))`` where ``lp`` puts a
part's length in front of it, so that no two different tuples give the same bytes (SPEC section 7). Nothing personal
can be read back from a key: it is a digest.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b32encode
from dataclasses import dataclass
from typing import Any, Final, Literal

from payonce.core.errors import ConfigError

KeyFormatName = Literal["hex", "uuid", "base32", "bytes32"]
_FULL: Final[dict[str, int]] = {"hex": 64, "uuid": 36, "base32": 52, "bytes32": 66}
# 128 bits of a digest are kept at least: with fewer, two of a few billion items could share a key.
_SHORTEST: Final[dict[str, int]] = {"hex": 32, "uuid": 36, "base32": 26, "bytes32": 66}
_ALPHABET: Final[dict[str, re.Pattern[str]]] = {
    "hex": re.compile(r"[0-9a-f]+"),
    "uuid": re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    "base32": re.compile(r"[a-z2-7]+"),
    "bytes32": re.compile(r"0x[0-9a-f]{64}"),
}


@dataclass(frozen=True, slots=True)
class KeyFormat:
    """How a provider wants its keys. ``max_length`` is in characters; the digest is cut to it, never below 128 bits."""

    name: KeyFormatName = "hex"
    max_length: int = 255

    def __post_init__(self) -> None:
        if self.name not in _FULL:
            raise ConfigError(
                f"unknown key format {self.name!r}", code="bad_key_format", hint="use hex, uuid, base32 or bytes32"
            )
        if self.max_length < _SHORTEST[self.name]:
            raise ConfigError(
                f"a {self.name} key needs at least {_SHORTEST[self.name]} characters, max_length is {self.max_length}",
                code="key_too_short",
                hint="keys shorter than 128 bits could collide; base32 is the shortest format (26 characters)",
            )

    @property
    def length(self) -> int:
        """How many characters every key of this format has."""
        return min(_FULL[self.name], self.max_length)

    def fits(self, key: str) -> bool:
        """Whether a key has this format's length and alphabet."""
        return len(key) == self.length and _ALPHABET[self.name].fullmatch(key) is not None


def length_prefixed(part: str) -> bytes:
    """A part's UTF-8 bytes behind their count as eight big-endian bytes."""
    data = part.encode("utf-8")
    return len(data).to_bytes(8, "big") + data


_FIRST: Final = length_prefixed("0")


class KeyMaker:
    """Keys of one batch and operation. The common prefix is hashed once; a key then costs one copy and one update."""

    __slots__ = ("_format", "_prefix", "_steps")

    def __init__(self, key_format: KeyFormat, *, namespace: str, batch: str, operation: str) -> None:
        self._format = key_format
        self._prefix = hashlib.sha256(length_prefixed(namespace) + length_prefixed(batch) + length_prefixed(operation))
        # The same prefix with a step's name taken in; a provider has a handful of steps.
        self._steps: dict[str, Any] = {}

    def key(self, item: str, *, step: str, generation: int) -> str:
        """The key of one step of one item in one generation: the same on every machine, at any time."""
        state = (self._steps.get(step) or self._begun(step)).copy()
        state.update(length_prefixed(item) + (_FIRST if generation == 0 else length_prefixed(str(generation))))
        return encode(state.digest(), self._format)

    def _begun(self, step: str) -> Any:
        begun = self._steps[step] = self._prefix.copy()
        begun.update(length_prefixed(step))
        return begun


def derive_key(  # every part is named at the call
    key_format: KeyFormat, *, namespace: str, batch: str, operation: str, step: str, item: str, generation: int
) -> str:
    """One idempotency key; see the module's text for the derivation."""
    maker = KeyMaker(key_format, namespace=namespace, batch=batch, operation=operation)
    return maker.key(item, step=step, generation=generation)


def encode(digest: bytes, key_format: KeyFormat) -> str:
    """A 32-byte digest in a provider's key format. A UUID is of version 8 (RFC 9562) with the digest's leading bits."""
    match key_format.name:
        case "hex":
            return digest.hex()[: key_format.max_length]
        case "base32":
            return b32encode(digest).decode("ascii").rstrip("=").lower()[: key_format.max_length]
        case "uuid":
            raw = bytearray(digest[:16])
            raw[6] = 0x80 | (raw[6] & 0x0F)
            raw[8] = 0x80 | (raw[8] & 0x3F)
            text = raw.hex()
            return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        case "bytes32":
            return "0x" + digest.hex()


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes in hex: how requests, answers, files and statements are named in the trail."""
    return hashlib.sha256(data).hexdigest()
