"""The sound items of a reading, in order, in an unlinked temporary file: read once, sealed from the same bytes.

Each item is one line of canonical JSON (sorted keys, no blanks, shortest escapes); the seal is the SHA-256 over these
lines, each with its line feed. What is sealed later is therefore what was validated, whatever becomes of the source.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final, TypeVar

import msgspec

from payonce.core.model import NewItem
from payonce.core.money import Money
from payonce.intake.block import Cells
from payonce.intake.scratch import scratch_file
from payonce.intake.validate import Sound

T = TypeVar("T")
_CHUNK: Final = 1 << 20
_MONEYS: Final = 100_000


class Record(msgspec.Struct, frozen=True, gc=False):
    """A normalised item, in the order of its canonical form's keys. ``target`` is the id where none is mapped."""

    amount_minor: int | None
    currency: str | None
    fields: Mapping[str, Any]
    id: str
    target: str


# An item as a store's row takes it: id, target (the id where none is mapped), amount in minor units, currency, and the
# carried columns as canonical JSON.
PlainRow = tuple[str, str, int | None, str | None, str]


class _RawRecord(msgspec.Struct, frozen=True, gc=False):
    """A record whose fields stay JSON."""

    amount_minor: int | None
    currency: str | None
    fields: msgspec.Raw
    id: str
    target: str


_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def canonical_lines(sound: Sound) -> bytes:
    """The canonical lines of some items. Both ways to build them give the same bytes; a test holds that."""
    if not sound.ids:
        return b""
    return _joined(sound) or _encoded(sound)


def _joined(sound: Sound) -> bytes:
    """The lines put together from columns, which is quick; empty where a text would have to be escaped."""
    cells = sound.fields
    if not isinstance(cells, Cells):
        return b""
    texts = (sound.ids, *(() if sound.targets is None else (sound.targets,)), *cells.columns)
    if not all(map(_plain, texts)) or not all(map(_plain_text, cells.names)):
        return b""
    pieces: list[Any] = ['{"amount_minor":', _numbers(sound.minors), ',"currency":', _codes(sound.currencies)]
    pieces += [',"fields":{']
    for place, (name, column) in enumerate(zip(cells.names, cells.columns, strict=True)):
        pieces += [f'{"," if place else ""}"{name}":"', column, '"']
    pieces += ['},"id":"', sound.ids, '","target":"', sound.targets or sound.ids, '"}\n']
    pieces = _merged(pieces)
    width = len(pieces)
    flat: list[str] = [piece if isinstance(piece, str) else "" for piece in pieces] * len(sound.ids)
    for place, piece in enumerate(pieces):
        if not isinstance(piece, str):
            flat[place::width] = piece
    return "".join(flat).encode("utf-8")


def _merged(pieces: list[Any]) -> list[Any]:
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


def _encoded(sound: Sound) -> bytes:
    cells = sound.fields
    rows = cells.rows(len(sound.ids)) if isinstance(cells, Cells) else cells
    made = map(Record, sound.minors, sound.currencies, rows, sound.ids, sound.targets or sound.ids)
    return _ENCODER.encode_lines(list(made))


class Spool:
    """Sound items on their way to the seal. Not safe for two readers at once; ``close`` gives the disk space back."""

    def __init__(self) -> None:
        self._items = scratch_file()
        self._lines = scratch_file()
        self._digest = hashlib.sha256()
        self._dropped = bytearray()
        self.count = 0

    def add(self, sound: Sound) -> None:
        """Appends items. Raises OSError where there is no room for the temporary file."""
        data = canonical_lines(sound)
        self._digest.update(data)
        self._items.write(data)
        self._lines.write(array("q", sound.lines).tobytes())
        self.count += len(sound.ids)

    def drop(self, dropped: bytearray) -> None:
        """Leaves out the items whose place is marked with a 1; the seal is computed anew."""
        if not any(dropped):
            return
        self._dropped = dropped
        self.count -= dropped.count(1)
        self._digest = hashlib.sha256()
        for batch, _ in self._batches(Record):
            self._digest.update(_ENCODER.encode_lines(batch))

    @property
    def seal(self) -> str:
        """The digest of the items in order, in hex."""
        return self._digest.hexdigest()

    def records(self) -> Iterator[tuple[list[Record], list[int]]]:
        """The items in order, some thousand at a time, each with the line it came from."""
        return self._batches(Record)

    def rows(self) -> Iterator[list[PlainRow]]:
        """The items in order, some thousand at a time, without decoding what a store keeps as JSON anyway."""
        for batch, _ in self._batches(_RawRecord):
            yield list(
                zip(
                    [record.id for record in batch],
                    [record.target for record in batch],
                    [record.amount_minor for record in batch],
                    [record.currency for record in batch],
                    [str(record.fields, "utf-8") for record in batch],
                    strict=True,
                )
            )

    def _batches(self, kind: type[T]) -> Iterator[tuple[list[T], list[int]]]:
        decoder = msgspec.json.Decoder(kind)
        offset = place = 0
        carry = b""
        while True:
            # Seeking each time lets a reader be left half-way and another one start.
            self._items.seek(offset)
            data = self._items.read(_CHUNK)
            offset += len(data)
            cut = data.rfind(b"\n") + 1
            if not data:
                self._items.seek(0, 2)
                self._lines.seek(0, 2)
                return
            whole, carry = carry + data[:cut], data[cut:] if cut else carry + data
            if not cut:
                continue
            batch = decoder.decode_lines(whole)
            lines = self._lines_from(place, len(batch))
            place += len(batch)
            yield self._kept(batch, lines, place - len(batch)) if self._dropped else (batch, lines)

    def _lines_from(self, place: int, count: int) -> list[int]:
        self._lines.seek(place * 8)
        lines: array[int] = array("q")
        lines.frombytes(self._lines.read(count * 8))
        return lines.tolist()

    def _kept(self, batch: list[T], lines: list[int], first: int) -> tuple[list[T], list[int]]:
        keep = [not gone for gone in self._dropped[first : first + len(batch)]]
        return list(compress(batch, keep)), list(compress(lines, keep))

    def items(self) -> Iterator[NewItem]:
        """The items in order, as the ledger takes them."""
        moneys: dict[tuple[str | None, int | None], Money | None] = {}
        for batch, lines in self._batches(Record):
            keys = [(record.currency, record.amount_minor) for record in batch]
            for currency, minor in set(keys).difference(moneys):
                moneys[currency, minor] = None if minor is None else Money.of_minor(minor, currency or "")
            yield from map(
                NewItem,
                [record.id for record in batch],
                map(moneys.__getitem__, keys),
                [record.target for record in batch],
                [record.fields for record in batch],
                lines,
            )
            if len(moneys) > _MONEYS:
                moneys.clear()

    def close(self) -> None:
        """Gives the disk space back."""
        self._items.close()
        self._lines.close()
