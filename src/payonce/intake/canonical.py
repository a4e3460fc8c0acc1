"""The canonical form of sound items: one line of JSON each (sorted keys, no blanks, shortest escapes).

The seal is the SHA-256 over these lines, each with its line feed. Columns of plain text, which is what most inputs
hold, are put together without looking at single items; the rest goes through an encoder. Both give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from payonce.intake.block import Cells
from payonce.intake.validate import Sound


class Record(msgspec.Struct, frozen=True, gc=False):
    """A normalised item, in the order of its canonical form's keys. ``target`` is the id where none is mapped."""

    amount_minor: int | None
    currency: str | None
    fields: Mapping[str, Any]
    id: str
    target: str


ENCODER: Final = msgspec.json.Encoder(order="sorted")


def canonical(sound: Sound) -> tuple[bytes, bytes]:
    """The canonical lines of some items, and their fields alone, one line of JSON each."""
    if not sound.ids:
        return b"", b""
    lines, fields = joined(sound)
    return (lines, fields) if lines else encoded(sound)


def joined(sound: Sound) -> tuple[bytes, bytes]:
    """Both put together from columns, which is quick; empty where a text would have to be escaped."""
    cells = sound.fields
    if not isinstance(cells, Cells):
        return b"", b""
    texts = (sound.ids, *(() if sound.targets is None else (sound.targets,)), *cells.columns)
    if not all(map(_plain, texts)) or not all(map(_plain_text, cells.names)):
        return b"", b""
    before: list[Any] = ['{"amount_minor":', _numbers(sound.minors), ',"currency":', _codes(sound.currencies)]
    fields: list[Any] = ["{"]
    for place, (name, column) in enumerate(zip(cells.names, cells.columns, strict=True)):
        fields += [f'{"," if place else ""}"{name}":"', column, '"']
    after = [',"id":"', sound.ids, '","target":"', sound.targets or sound.ids, '"}\n']
    count = len(sound.ids)
    return _woven([*before, ',"fields":', *fields, "}", *after], count), _woven([*fields, "}\n"], count)


def _woven(pieces: Sequence[Any], count: int) -> bytes:
    """Columns, and texts that are the same in all rows, as one text row by row."""
    pieces = _merged(pieces)
    width = len(pieces)
    flat: list[str] = [piece if isinstance(piece, str) else "" for piece in pieces] * count
    for place, piece in enumerate(pieces):
        if not isinstance(piece, str):
            flat[place::width] = piece
    return "".join(flat).encode("utf-8")


def _merged(pieces: Sequence[Any]) -> list[Any]:
    """Columns and the constant texts between them, neighbouring texts put together."""
    merged: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def _plain(column: Sequence[str]) -> bool:
    return _plain_text("".join(column))


def _plain_text(text: str) -> bool:
    """Whether JSON writes a text as it is. What is not printable goes the long way, though most of it needs no escape."""
    return text.isprintable() and '"' not in text and "\\" not in text


def _numbers(minors: Sequence[int | None]) -> list[str]:
    return list(map(str, minors)) if None not in minors else ["null" if m is None else str(m) for m in minors]


def _codes(currencies: Sequence[str | None]) -> list[str] | str:
    """A text for each item, or one for all."""
    texts = {code: "null" if code is None else f'"{code}"' for code in set(currencies)}
    return next(iter(texts.values())) if len(texts) == 1 else [texts[code] for code in currencies]


def encoded(sound: Sound) -> tuple[bytes, bytes]:
    """Both by the encoder, whatever the items hold."""
    cells = sound.fields
    rows = cells.rows(len(sound.ids)) if isinstance(cells, Cells) else cells
    made = map(Record, sound.minors, sound.currencies, rows, sound.ids, sound.targets or sound.ids)
    return ENCODER.encode_lines(list(made)), ENCODER.encode_lines(rows)
