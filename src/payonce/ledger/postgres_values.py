"""Lists of values on their way to the server, whole columns at a time, in PostgreSQL's binary form of arrays.

One statement then writes a whole group of rows (``unnest``), and neither side parses a text. The form: the number of
dimensions, whether there are NULLs, the element's type; length and lower bound; each element behind its length.
(https://www.postgresql.org/docs/current/protocol.html; src/backend/utils/adt/arrayfuncs.c, ``array_recv``)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import pack as pack_as
from typing import Any, Final

from psycopg import adapters
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

_BIGINT, _TEXT, _BYTEA = 20, 25, 17
_NULL: Final = b"\xff\xff\xff\xff"
_length: Final = Struct(">i").pack
_eight: Final = Struct(">iq").pack


class Array:
    """An array in its binary form."""

    __slots__ = ("data",)

    def __init__(self, element: int, count: int, items: bytes) -> None:
        self.data = pack_as(">iii", 0, 0, element) if not count else pack_as(">iiiii", 1, 1, element, count, 1) + items


class Bigints(Array):
    """A ``bigint[]``."""

    __slots__ = ()


class Texts(Array):
    """A ``text[]``."""

    __slots__ = ()


class Byteas(Array):
    """A ``bytea[]``."""

    __slots__ = ()


def bigints(values: Sequence[int]) -> Bigints:
    """Whole numbers, none of them missing."""
    count = len(values)
    flat = [8] * (2 * count)
    flat[1::2] = values
    return Bigints(_BIGINT, count, pack_as(">" + "iq" * count, *flat))


def bigints_or_null(values: Sequence[int | None]) -> Bigints:
    """Whole numbers, None for NULL."""
    return Bigints(_BIGINT, len(values), b"".join([_NULL if v is None else _eight(8, v) for v in values]))


def texts(values: Sequence[str | None]) -> Texts:
    """Texts, None for NULL."""
    return Texts(_TEXT, len(values), _strings([None if v is None else v.encode() for v in values]))


def byteas(values: Sequence[bytes | bytearray | None]) -> Byteas:
    """Bytes, None for NULL."""
    return Byteas(_BYTEA, len(values), _strings(values))


def utf8(values: Sequence[bytes]) -> Texts:
    """Texts that are UTF-8 already."""
    return Texts(_TEXT, len(values), _strings(values))


def _strings(values: Iterable[bytes | bytearray | None]) -> bytes:
    parts: list[bytes | bytearray] = []
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts.append(_length(len(value)))
            parts.append(value)
    return b"".join(parts)


class _Dumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return bytes(obj.data)


class _BigintsDumper(_Dumper):
    oid = 1016


class _TextsDumper(_Dumper):
    oid = 1009


class _ByteasDumper(_Dumper):
    oid = 1001


def adapters_map() -> AdaptersMap:
    """psycopg's types with these arrays. Whole numbers are always ``bigint``: a statement whose parameters change their
    types with their size would be prepared again and again."""
    found = AdaptersMap(adapters)
    found.register_dumper(int, Int8BinaryDumper)
    for kind, dumper in ((Bigints, _BigintsDumper), (Texts, _TextsDumper), (Byteas, _ByteasDumper)):
        found.register_dumper(kind, dumper)
    return found


# PostgreSQL's text cannot hold U+0000, and a provider's words may. It is written out, and so is the sign that starts
# what is written out; every other text is stored as it is.
_SIGN, _ZERO = "\x1a", "\x00"


def held(text: str | None) -> str | None:
    """A text in a form that the server can hold; ``told`` is the inverse."""
    if text is None or (_ZERO not in text and _SIGN not in text):
        return text
    return text.replace(_SIGN, _SIGN + "1").replace(_ZERO, _SIGN + "0")


def told(text: str | None) -> str | None:
    """A text as it was before ``held``."""
    if text is None or _SIGN not in text:
        return text
    return text.replace(_SIGN + "0", _ZERO).replace(_SIGN + "1", _SIGN)
