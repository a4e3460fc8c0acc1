"""How the bytes of a text file are to be read: as declared, as marked at its start, or as UTF-8; never guessed.

Also names what is no text at all by its first bytes, so that the message says what to do with it. Pure.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_OWN_ENDING: Final = "give it its own ending"
_FOREIGN: Final = (
    (b"PK\x03\x04", "an Excel workbook or another zip file", f"{_OWN_ENDING} (.xlsx), or unpack it"),
    (b"PAR1", "a Parquet file", f"{_OWN_ENDING} (.parquet)"),
    (b"\x1f\x8b", "a gzip file", "unpack it"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "unpack it"),
    (b"\xfd7zXZ\x00", "an xz file", "unpack it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it"),
    (b"\x04\x22\x4d\x18", "an lz4 file", "unpack it"),
    (b"%PDF", "a PDF document", "export the data as CSV"),
    (
        b"\xd0\xcf\x11\xe0",
        "an old Excel workbook (.xls), or one with a password",
        "save it as .xlsx without one, or CSV",
    ),
    (b"SQLite format 3", "a SQLite database", 'use input = {url = "sqlite:FILE", query = "..."}'),
)
# Codecs that rewrite text within text; no file is written in them.
_REWRITING: Final = frozenset({"unicode-escape", "raw-unicode-escape", "unicode_escape", "raw_unicode_escape"})
_BZIP: Final = re.compile(rb"BZh[1-9]1AY&SY")
# No line of a table begins like these.
_DOCUMENTS: Final = (
    (re.compile(rb"\s*<(?:!doctype|html|table)\b", re.IGNORECASE), "an HTML page"),
    (re.compile(rb"\s*<\?xml\b"), "an XML document"),
    (re.compile(rb"\{\\rtf"), "an RTF document"),
)


class EncodingFault(Exception):
    """Why the bytes cannot be read as text: a stable code, what is wrong and how to fix it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def foreign(first: bytes) -> tuple[str, str] | None:
    """What a file is that begins with these bytes and is no table in text, and what to do with it."""
    for magic, what, fix in _FOREIGN:
        if first.startswith(magic):
            return what, fix
    if _BZIP.match(first):
        return "a bzip2 file", "unpack it"
    unmarked = first[len(_marked(first)[0]) :]
    for pattern, what in _DOCUMENTS:
        if pattern.match(unmarked):
            return what, "export the data as CSV"
    return None


def text_encoding(name: object) -> str | None:
    """The codec's own name of an encoding in which a file can be written, None if there is none of that name."""
    try:
        info = codecs.lookup(name) if isinstance(name, str) else None
        if info is None or info.name in _REWRITING:
            return None
        # Codecs from bytes to bytes refuse a text here.
        coded = "a,b\n".encode(info.name)
        # Those that have no way to read on after a byte that does not fit are no encodings of files (idna, punycode).
        errors = "strict" if info.name.startswith(("utf-16", "utf-32")) else "surrogateescape"
        codecs.getincrementaldecoder(info.name)(errors).decode(coded, True)
    except (LookupError, UnicodeError, ValueError, TypeError):
        return None
    return info.name


def agreed(declared: str | None, first: bytes) -> tuple[str, int]:
    """The encoding of a file that begins with these bytes, and how many of them are its mark.

    Raises EncodingFault where nothing says it for certain.
    """
    mark, marked = _marked(first)
    if declared is None:
        if marked is None:
            _refuse_nulls(first[:400])
        return marked or "utf-8", len(mark)
    name = text_encoding(declared)
    if name is None:
        raise EncodingFault("unknown_encoding", f"[input] encoding {declared!r} is not known; use utf-8 or cp1252, say")
    if marked is not None and not marked.startswith(name.removesuffix("-sig")):
        raise EncodingFault(
            "bad_encoding",
            f"the file is marked as {marked}, but [input] encoding says {declared}; leave encoding out",
        )
    if marked is None and name in ("utf-16", "utf-32"):
        raise EncodingFault(
            "bad_encoding",
            f'the file has no byte order mark; declare [input] encoding = "{name}-le" (or "{name}-be")',
        )
    return marked or name, len(mark)


def _marked(first: bytes) -> tuple[bytes, str | None]:
    return next(((mark, encoding) for mark, encoding in _MARKS if first.startswith(mark)), (b"", None))


def _refuse_nulls(head: bytes) -> None:
    """Text of one byte a character holds no zero bytes; text of two has them at every other place."""
    if head.count(0) * 3 <= len(head):
        return
    even, odd = head[::2].count(0), head[1::2].count(0)
    if min(even, odd) * 20 > max(even, odd):
        raise EncodingFault(
            "bad_encoding",
            "the file is full of zero bytes: it is damaged, or no text; write it again, and check that all of it arrived",
        )
    order = "le" if odd > even else "be"
    raise EncodingFault(
        "bad_encoding",
        "the file looks like UTF-16 without a byte order mark; "
        f'declare [input] encoding = "utf-16-{order}", or save it as UTF-8',
    )
