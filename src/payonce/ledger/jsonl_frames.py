"""The lines of a JSON Lines ledger, and how a whole transaction is told from a torn or a damaged one. Pure.

A file is a sequence of groups, one a transaction, each made durable by one fsync::

    {"$payonce":{...}}                          first line of the file: format and identity
    {"$rows":[...]}                             what the transaction changed of batches, items, workers
    {"actor":...,"seq":12,"type":"intent"}      an event of the trail, byte for byte what is hashed
    {"$end":{"lines":2,...},"sha256":"..."}     closes the group; the digest covers the previous one and these lines

What stands behind the last ``$end`` was never acknowledged: a torn write, which is cut off and kept aside. Anything
else that does not fit is damage, and nothing behind it is believed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import orjson

from payonce.core.errors import LedgerError

HEADER: Final = b'{"$payonce":'
ROWS: Final = b'{"$rows":'
END: Final = b'{"$end":'
_DIGEST: Final = b',"sha256":"'
_HEX: Final = 64
_CLOSE: Final = b'"}\n'


@dataclass(frozen=True, slots=True)
class Group:
    """One whole transaction: where it starts and ends in the file, its lines without line ends, what closes it, and
    the digest of the file up to its end. ``line`` is the number of its first line in the file, from 1."""

    start: int
    end: int
    line: int
    lines: list[bytes]
    meta: dict[str, Any]
    digest: str


@dataclass(frozen=True, slots=True)
class Torn:
    """What stands behind the last whole group."""

    start: int
    line: int
    data: bytes


class Chain:
    """The digest of a group as its lines go by. ``before`` is that of the group before it, empty for the first."""

    __slots__ = ("_sha256",)

    def __init__(self, before: str) -> None:
        self._sha256 = hashlib.sha256(before.encode())

    def take(self, data: bytes) -> None:
        """Lines with their line ends."""
        self._sha256.update(data)

    def close(self, meta: dict[str, Any]) -> tuple[bytes, str]:
        """The line that ends the group, and the digest in it."""
        said = orjson.dumps(meta)
        self._sha256.update(said)
        digest = self._sha256.hexdigest()
        return END + said + _DIGEST + digest.encode() + _CLOSE, digest

    def fits(self, line: bytes) -> tuple[dict[str, Any], str] | None:
        """What a closing line says, where it closes these lines; else None."""
        at = len(line) - len(_CLOSE) - _HEX
        said, mark, digest = line[len(END) : at - len(_DIGEST)], line[at - len(_DIGEST) : at], line[at : at + _HEX]
        if mark != _DIGEST or not line.endswith(_CLOSE):
            return None
        self._sha256.update(said)
        if self._sha256.hexdigest().encode() != digest:
            return None
        meta = orjson.loads(said)
        return meta, digest.decode()


def groups(file: BinaryIO, *, at: int, line: int, digest: str, name: str) -> Iterator[Group | Torn]:
    """The groups of a file from a place that a group begins at, and last what is torn, if anything.

    Raises LedgerError ``ledger_corrupt`` with the line where something is damaged: a closed group that its digest does
    not fit, or a line that is no JSON.
    """
    file.seek(at)
    start, first, lines, chain = at, line, list[bytes](), Chain(digest)
    for text in file:
        at += len(text)
        line += 1
        if not text.startswith(END) or not text.endswith(b"\n"):
            if not text.endswith(b"\n"):
                break
            lines.append(text[:-1])
            chain.take(text)
            continue
        closing = chain.fits(text)
        if closing is None or closing[0].get("lines") != len(lines):
            break
        meta, digest = closing
        yield Group(start, at, first, lines, meta, digest)
        start, first, lines, chain = at, line, [], Chain(digest)
    file.seek(start)
    rest = file.read()
    if rest:
        _refuse_damage(rest, line=first, name=name)
        yield Torn(start, first, rest)


def _refuse_damage(rest: bytes, *, line: int, name: str) -> None:
    """Raises LedgerError where what stands behind the last whole group is no torn write.

    A write that was cut short ends in the middle of a line, or between two lines of a group. One whose blocks did not
    all reach the disk has holes of zero bytes. A line that has its end and no hole was written whole: if it is not what
    it should be, it was changed later, and it may have been acknowledged.
    """
    *whole, stump = rest.split(b"\n")
    closed = [k for k, text in enumerate(whole) if text.startswith(END)]
    if b"\0" in rest and (not closed or (closed == [len(whole) - 1] and not stump)):
        return
    for k, text in enumerate(whole):
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError:
            raise damaged(name, line + k, "is no JSON") from None
    if closed:
        where = f"{line} to {line + closed[0]}" if closed[0] else f"{line}"
        raise damaged(name, where, "do not have the digest that closes them", word="lines")


def damaged(name: str, line: int | str, what: str, *, word: str = "line") -> LedgerError:
    """The error for a file that was changed or has rotted."""
    return LedgerError(
        f"ledger {name} is damaged: {word} {line} {what}; nothing behind it can be believed",
        code="ledger_corrupt",
        hint="keep the file as it is, then restore the ledger from a backup and reconcile before going on",
    )
