"""Signed notes (C2SP signed-note): a text, an empty line, and one line for each signature.

    — <key name> <base64 of: 4 bytes of the key's id, then the signature>

The signed bytes are the text with its last newline and nothing else. This module reads and writes the form; what a
signature is worth is decided by trail.keys.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from payonce.core.errors import UsageError

_DASH: Final = "— "
ID_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line: the key's name, its four-byte id, and the raw signature."""

    name: str
    key_id: bytes
    raw: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A text that ends with a newline, and the signatures over exactly these bytes."""

    text: str
    signatures: tuple[Signature, ...]

    def __str__(self) -> str:
        return self.text + "\n" + "".join(_line(signature) for signature in self.signatures)


def _line(signature: Signature) -> str:
    return f"{_DASH}{signature.name} {base64.b64encode(signature.key_id + signature.raw).decode()}\n"


def parse(text: str) -> Note:
    """One note. Raises UsageError ``bad_note`` where the text is none."""
    body, blank, lines = text.rpartition("\n\n")
    if not blank or not body or not lines.endswith("\n"):
        raise bad_note("a signed note is a text, an empty line and signature lines")
    return Note(body + "\n", tuple(_signature(line) for line in lines.splitlines()))


def parse_many(text: str) -> Iterator[Note]:
    """The notes that stand one after the other in a file, in order; empty lines between them do not count.

    Raises UsageError ``bad_note`` at the first that is none: what is torn or was edited is told, never skipped.
    """
    block: list[str] = []
    signed = False
    for line in text.splitlines(keepends=True):
        if signed and not line.startswith(_DASH):
            yield parse("".join(block))
            block, signed = [], False
        if not block and not line.strip():
            continue
        block.append(line)
        signed = line.startswith(_DASH)
    if block:
        yield parse("".join(block))


def _signature(line: str) -> Signature:
    name, space, coded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space or not name:
        raise bad_note(f"{line[:60]!r} is no signature line")
    try:
        raw = base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_note(f"the signature of {name} is not base64") from error
    if len(raw) <= ID_BYTES:
        raise bad_note(f"the signature of {name} is too short")
    return Signature(name, raw[:ID_BYTES], raw[ID_BYTES:])


def join(notes: Iterable[Note]) -> str:
    """Notes as one text, an empty line after each."""
    return "".join(f"{note}\n" for note in notes)


def bad_note(what: str) -> UsageError:
    """The error for a text that should be a signed note."""
    return UsageError(what, code="bad_note", hint="give the file as `payonce trail checkpoint` wrote it")
