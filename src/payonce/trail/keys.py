"""The keys that sign checkpoints: Ed25519, written as C2SP signed notes write them.

    public    <name>+<id>+<base64 of 0x01 and the 32-byte public key>
    private   PRIVATE+KEY+<name>+<id>+<base64 of 0x01 and the 32-byte seed>

``id`` is the first four bytes of SHA-256 over the name, a newline, 0x01 and the public key, in hex. A public key may be
shown to anybody; a private one is written with mode 0600 and never printed, logged or put into the ledger.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from payonce.core.errors import ConfigError, UsageError
from payonce.trail.appending import append_whole
from payonce.trail.note import ID_BYTES, Note, Signature

_ED25519: Final = b"\x01"
_PRIVATE: Final = "PRIVATE+KEY+"
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")


def key_id(name: str, public: bytes) -> bytes:
    """The four bytes that name a key beside its name."""
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:ID_BYTES]


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key. ``public`` are its 32 raw bytes."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        """The key's four-byte id."""
        return key_id(self.name, self.public)

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(_ED25519 + self.public).decode()}"

    def signed(self, note: Note) -> bool:
        """Whether this key signed the note: a line with its name and id, and a signature that holds."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        public = Ed25519PublicKey.from_public_bytes(self.public)
        for signature in note.signatures:
            if (signature.name, signature.key_id) != (self.name, self.id):
                continue
            try:
                public.verify(signature.raw, note.text.encode())
            except InvalidSignature:
                continue
            return True
        return False


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey:
    """A private key. ``seed`` are its 32 raw bytes; it is shown by no ``repr``."""

    name: str
    seed: bytes

    @property
    def verifier(self) -> VerifierKey:
        """Its public half."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return VerifierKey(self.name, Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw())

    def sign(self, text: str) -> Signature:
        """The signature over a note's text."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        raw = Ed25519PrivateKey.from_private_bytes(self.seed).sign(text.encode())
        return Signature(self.name, self.verifier.id, raw)

    def text(self) -> str:
        """The private key as it stands in its file. For nothing but that file."""
        return f"{_PRIVATE}{self.name}+{self.verifier.id.hex()}+{base64.b64encode(_ED25519 + self.seed).decode()}"


def new_key(name: str) -> SigningKey:
    """A fresh key from the system's source of randomness. ``name`` has no blanks and no plus sign."""
    assert name and "+" not in name and not any(c.isspace() for c in name), f"{name!r} cannot name a key"
    return SigningKey(name, os.urandom(32))


def parse_public(text: str) -> VerifierKey:
    """A public key from its text. Raises UsageError ``bad_key``; a private key is refused by name."""
    if text.startswith(_PRIVATE):
        raise _bad_key("this is a private key; a check needs the public one, which ends in .pub")
    name, raw = _fields(text.strip())
    key = VerifierKey(name, raw)
    if text.strip() != str(key):
        raise _bad_key(f"the key {name} does not agree with its own id")
    return key


def parse_private(text: str) -> SigningKey:
    """A private key from its text. Raises UsageError ``bad_key`` without repeating any of it."""
    stripped = text.strip()
    if not stripped.startswith(_PRIVATE):
        raise _bad_key("this is no private key of a trail")
    name, seed = _fields(stripped.removeprefix(_PRIVATE))
    key = SigningKey(name, seed)
    if key.text() != stripped:
        raise _bad_key(f"the key {name} does not agree with its own id")
    return key


def _fields(text: str) -> tuple[str, bytes]:
    """Name and raw bytes; the base64 may hold plus signs, name and id cannot."""
    name, plus, rest = text.partition("+")
    _, second, coded = rest.partition("+")
    try:
        raw = base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if not name or not plus or not second or len(raw) != 33 or raw[:1] != _ED25519:
        raise _bad_key("a key is NAME+ID+BASE64 of an Ed25519 key")
    return name, raw[1:]


def _bad_key(what: str) -> UsageError:
    return UsageError(what, code="bad_key", hint="payonce trail key makes one, with a .pub file beside it")


def load_public(place: str) -> tuple[VerifierKey, ...]:
    """All public keys of a file, one a line (a rotated key adds one), or the key itself given as text.

    Raises UsageError where there is none.
    """
    path = Path(place)
    if not path.is_file():
        if place.count("+") >= 2:
            return (parse_public(place),)
        raise UsageError(f"there is no public key at {place}", code="no_key", hint="--key takes a .pub file or the key")
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise UsageError(f"{place} holds no key", code="no_key", hint="--key takes the .pub file of the trail's key")
    return tuple(parse_public(line) for line in lines)


def load_private(place: str, *, environ: Mapping[str, str]) -> SigningKey:
    """The private key of a file, or of an environment variable where ``place`` is ``${NAME}``.

    Raises UsageError where there is none, ConfigError where other users can read the file.
    """
    variable = _VARIABLE.fullmatch(place)
    if variable is not None:
        text = environ.get(variable.group(1))
        if not text:
            raise ConfigError(
                f"the environment variable {variable.group(1)} is not set",
                code="missing_variable",
                hint="it has to hold the trail's private key",
            )
        return parse_private(text)
    path = Path(place)
    if not path.is_file():
        raise UsageError(
            f"there is no private key at {place}",
            code="no_key",
            hint=f"payonce trail key --out {place} makes one there",
        )
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise ConfigError(
            f"the private key {place} can be read by others", code="key_is_open", hint=f"chmod 600 {place}"
        )
    return parse_private(path.read_text("utf-8"))


def save(key: SigningKey, path: Path) -> Path:
    """Writes a new private key (mode 0600, never over a file) and adds its public half to ``PATH.pub``, which it returns.

    Raises UsageError ``key_exists`` where a key is there already: a key that was lost can never be made again, and
    ``file_unwritable``, after which nothing of the new one is there.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise UsageError(
            f"{path} exists", code="key_exists", hint="--rotate replaces a key and keeps the old"
        ) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    os.close(handle)
    public = path.with_name(path.name + ".pub")
    try:
        append_whole(path, key.text() + "\n")
        append_whole(public, f"{key.verifier}\n")
    except OSError as error:
        path.unlink(missing_ok=True)  # it has signed nothing yet
        raise _unwritable(path, error) from error
    return public


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write {path}: {error.strerror}", code="file_unwritable", hint="choose --out")


def signer_of(note: Note, keys: Iterable[VerifierKey]) -> VerifierKey | None:
    """The first of some keys that signed the note; None where none did."""
    return next((key for key in keys if key.signed(note)), None)
