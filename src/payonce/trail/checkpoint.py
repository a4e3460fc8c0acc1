"""Checkpoints: the size and root of the trail, signed (C2SP tlog-checkpoint). Kept elsewhere, they are what nobody who
rewrites the ledger can rewrite too.

    payonce/<ledger id>
    <number of events>
    <base64 of the RFC 6962 root over them>
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from payonce.core.errors import UsageError
from payonce.trail.keys import SigningKey, VerifierKey, signer_of
from payonce.trail.note import Note, bad_note, parse_many

_ORIGIN: Final = "payonce/"


def origin_of(ledger: str) -> str:
    """The name under which a ledger's checkpoints and keys go."""
    return _ORIGIN + ledger


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a trail was: how many events, and their root (32 bytes)."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The note's text."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """From a note's text; further lines are extensions of others and do not count. Raises UsageError."""
        lines = text.split("\n")
        if len(lines) < 4 or not lines[0] or not lines[1].isascii() or not lines[1].isdecimal():
            raise bad_note("this note is no checkpoint: origin, size and root are its first three lines")
        try:
            root = base64.b64decode(lines[2], validate=True)
        except (binascii.Error, ValueError) as error:
            raise bad_note("the checkpoint's root is not base64") from error
        if len(root) != 32 or str(int(lines[1])) != lines[1]:
            raise bad_note("the checkpoint's size or root is malformed")
        return cls(lines[0], int(lines[1]), root)


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint with its note."""

    checkpoint: Checkpoint
    note: Note

    def __str__(self) -> str:
        return str(self.note)


def sign(checkpoint: Checkpoint, keys: Sequence[SigningKey]) -> Signed:
    """A checkpoint signed by each of some keys: two while a key is being replaced."""
    return Signed(checkpoint, Note(checkpoint.text, tuple(key.sign(checkpoint.text) for key in keys)))


def trusted(note: Note, keys: Sequence[VerifierKey]) -> Signed:
    """The checkpoint of a note, signed by one of ``keys``. Raises UsageError ``untrusted`` where none of them did."""
    if signer_of(note, keys) is None:
        names = ", ".join(f"{s.name} ({s.key_id.hex()})" for s in note.signatures)
        raise UsageError(
            f"the checkpoint is signed by {names or 'nobody'}, not by a key that was given",
            code="untrusted",
            hint="--key takes the public key; after a rotation, the file with the old and the new one",
        )
    return Signed(Checkpoint.parse(note.text), note)


@dataclass(frozen=True, slots=True)
class Kept:
    """The checkpoints of a file, in order, that known keys signed; ``others`` counts those that none of them did."""

    signed: tuple[Signed, ...]
    others: int

    @property
    def last(self) -> Signed:
        """The last one."""
        return self.signed[-1]


def load(path: Path, keys: Sequence[VerifierKey]) -> Kept:
    """The checkpoints of a file. One of a key that is not known any more, such as a stolen one, says nothing, and the rest
    stands. Raises UsageError ``untrusted`` where none is signed by one of ``keys``, ``no_checkpoint`` where there is none."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", code="file_unreadable", hint="check the path") from error
    notes = list(parse_many(text))
    signed = tuple(trusted(note, keys) for note in notes if signer_of(note, keys) is not None)
    if signed:
        return Kept(signed, len(notes) - len(signed))
    if notes:
        trusted(notes[0], keys)
    raise UsageError(f"{path} holds no checkpoint", code="no_checkpoint", hint="payonce trail checkpoint makes one")
