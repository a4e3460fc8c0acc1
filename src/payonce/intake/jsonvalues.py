"""Decodes lines of JSON without losing anything: numbers exactly or not at all, repeated keys noticed.

Usual decoders round long fractions and let the last of two equal keys win; with money both are silent changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from math import isinf
from typing import Any, Final

import msgspec

# So many lists and objects may stand in each other.
DEEPEST: Final = 200
# Brackets, and whole texts, so that those inside of texts are passed over.
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_POSITION: Final = re.compile(r" \(byte (\d+)\)$")


class BadJson(Exception):
    """Why a line cannot be taken: a stable code and what is wrong with it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def _exact_float(text: str) -> float:
    value = float(text)
    if repr(value) != text and (isinf(value) or Decimal(text) != Decimal(repr(value))):
        raise BadJson("inexact_number", f"the number {text} does not fit a float exactly; write it in quotes")
    return value


_DECODER: Final = msgspec.json.Decoder(float_hook=_exact_float)
_ENCODER: Final = msgspec.json.Encoder()


def decode_all(text: str, count: int) -> list[dict[str, Any]] | None:
    """All ``count`` lines of a text at once; None where any of them needs a closer look."""
    if not text.startswith("{") or text.count("}\n{") != count - 1 or "\\u00" in text:
        return None
    if text.count("{") + text.count("[") > count + DEEPEST and any(map(_deep, text.split("\n"))):
        return None
    try:
        found: list[Any] = _DECODER.decode_lines(text)
        if len(found) != count or set(map(type, found)) != {dict}:
            return None
        # As many names as were written: none was dropped because another one was equal to it.
        return found if _ENCODER.encode_lines(found).count(b'":') == text.count('":') else None
    except (msgspec.MsgspecError, BadJson, RecursionError, UnicodeEncodeError, ValueError):
        return None


def _deep(line: str) -> bool:
    """Whether a line is nested so deeply that writing it again could fail. Most lines have too few brackets for that."""
    if line.count("{") + line.count("[") <= DEEPEST:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(line):
        depth += 1 if bracket in "{[" else -1 if bracket in "}]" else 0
        if depth > DEEPEST:
            return True
    return False


def decode_value(text: str | bytes) -> Any:
    """Any JSON value. Raises BadJson where it holds a number that cannot be kept, or is no JSON."""
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise BadJson("bad_json", f"a JSON value cannot be read: {error}") from None


def decode_one(line: str) -> dict[str, Any]:
    """One line. Raises BadJson with what is wrong with it."""
    try:
        if _deep(line):
            raise BadJson("bad_json", f"the line is nested more than {DEEPEST} levels deep")
        value = _DECODER.decode(line)
        if not isinstance(value, dict):
            kind = "a list" if isinstance(value, list) else "a single value"
            raise BadJson("bad_json", f"the line holds {kind}, not an object; write one {{...}} a line")
        repeated = _repeated_key(line)
    except msgspec.MsgspecError as error:
        raise BadJson("bad_json", _explained(error)) from None
    except UnicodeEncodeError as error:
        code = ord(line[error.start])
        raise BadJson("bad_encoding", f"byte 0x{code - 0xDC00:02X} is not UTF-8; save the file as UTF-8") from None
    except RecursionError:
        raise BadJson("bad_json", "the line is nested too deeply") from None
    except ValueError as error:
        raise BadJson("bad_json", f"the line cannot be read: {error}") from None
    if repeated is not None:
        raise BadJson(
            "repeated_key", f"the name {repeated!r} stands twice in one object; no rule says which one is meant"
        )
    if any("\0" in text for text in texts_of(value)):
        raise BadJson("bad_character", "a text holds a NUL character; the data is damaged")
    return value


def _explained(error: msgspec.MsgspecError) -> str:
    found = _POSITION.search(str(error))
    what = str(error)[: found.start()] if found else str(error)
    place = f" at byte {int(found[1]) + 1} of the line" if found else ""
    return f"the line is no JSON{place}: {what.removeprefix('JSON is malformed: ')}"


def _repeated_key(line: str) -> str | None:
    repeated: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in found]
        if len(set(names)) != len(names):
            repeated.append(next(name for name in names if names.count(name) > 1))

    json.loads(line, object_pairs_hook=pairs, parse_float=str, parse_int=str)
    return repeated[0] if repeated else None


def texts_of(value: Any) -> Iterator[str]:
    """All texts in a JSON value, names included."""
    match value:
        case str():
            yield value
        case dict():
            for name, inner in value.items():
                yield name
                yield from texts_of(inner)
        case list():
            for inner in value:
                yield from texts_of(inner)
        case _:
            return
