"""Things gone wrong with what others send: bytes flipped, cut and doubled; JSON with values of other kinds in other places."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import orjson
from hypothesis import strategies as st

ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e300, 2**63, -(2**70), "", " ", "0", "null", "é\u2028\x00", "x" * 5000, [], {}, [None],
    [[]], {"id": "re_9"}, {"error": None}, "1e9", "NaN", "succeeded", "failed", "../..", "12.345.678,90",
]  # fmt: skip
_BYTES = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"{",
    b"}",
    b'"',
    b"null",
    b"[[[[",
    b"<html>",
    b"\r\n\r\n",
    b"\xef\xbb\xbf",
    b"e9",
    b"-",
]
_NESTED = b"[" * 3000 + b"]" * 3000

Place = tuple[Any, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Where the parts of a JSON value are."""
    yield at
    if isinstance(value, dict):
        for name, part in value.items():
            yield from places(part, (*at, name))
    elif isinstance(value, list):
        for k, part in enumerate(value):
            yield from places(part, (*at, k))


def put(value: Any, at: Place, new: Any) -> Any:
    """A copy with another part."""
    if not at:
        return new
    made = copy.deepcopy(value)
    inner = made
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = new
    return made


def without(value: Any, at: Place) -> Any:
    """A copy without a part."""
    made = copy.deepcopy(value)
    inner = made
    for step in at[:-1]:
        inner = inner[step]
    del inner[at[-1]]
    return made


def encode(value: Any) -> bytes:
    """JSON, of numbers of any size too."""
    try:
        return orjson.dumps(value)
    except TypeError:
        import json

        return json.dumps(value).encode()


@st.composite
def json_bodies(draw: st.DrawFn, bodies: list[Any]) -> bytes:
    """One of some JSON values with up to three parts replaced, removed, doubled or exchanged."""
    value = draw(st.sampled_from(bodies))
    for _ in range(draw(st.integers(0, 3))):
        known = list(places(value))
        at = known[draw(st.integers(0, len(known) - 1))]
        match draw(st.integers(0, 3)):
            case 0:
                value = put(value, at, draw(st.sampled_from(ODD)))
            case 1 if at:
                value = without(value, at)
            case 2:
                other = known[draw(st.integers(0, len(known) - 1))]
                value = put(value, at, copy.deepcopy(_part(value, other)))
            case _:
                value = put(value, at, [copy.deepcopy(_part(value, at))])
    return encode(value)


def _part(value: Any, at: Place) -> Any:
    for step in at:
        value = value[step]
    return value


@st.composite
def torn_bytes(draw: st.DrawFn, texts: list[bytes]) -> bytes:
    """One of some texts, cut, flipped, doubled, or with something strange in it."""
    data = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 5)):
            case 0:
                data = data[:at]
            case 1 if data:
                k = min(at, len(data) - 1)
                data = data[:k] + bytes([draw(st.integers(0, 255))]) + data[k + 1 :]
            case 2:
                data = data[:at] + draw(st.sampled_from(_BYTES)) + data[at:]
            case 3:
                data = data[at:] + data[:at]
            case 4:
                data = data + data
            case _:
                data = data[:at] + data[at + draw(st.integers(1, 40)) :]
    return draw(st.sampled_from([data, data, data, data, _NESTED, data.decode("latin-1").encode("utf-16")]))
