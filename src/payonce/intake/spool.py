"""The sound items of a reading, in order, in an unlinked temporary file: read once, sealed from the same columns.

What is sealed later is therefore what was validated, whatever becomes of the source. The seal is taken over the items'
canonical lines (see canonical.py) as they come in.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import compress
from struct import Struct
from typing import Any, Final

import msgspec

from payonce.core.model import NewItem, PlainColumns
from payonce.core.money import Money
from payonce.intake.canonical import ENCODER, Record, canonical
from payonce.intake.scratch import give_back, scratch_file
from payonce.intake.validate import Sound

_MONEYS: Final = 100_000
# Before each block: how many bytes its parts have. Lines, amounts and ids first; no targets: the ids are them.
_SIZES: Final = Struct("6q")
_FIELDS: Final = msgspec.json.Decoder(dict[str, Any])
# Amounts are more than zero.
_NO_AMOUNT: Final = -1


class Spool:
    """Sound items on their way to the seal. Not safe for two readers at once; ``close`` gives the disk space back."""

    def __init__(self) -> None:
        self._file = scratch_file()
        self._digest = hashlib.sha256()
        self._dropped = bytearray()
        self.count = 0

    def add(self, sound: Sound) -> None:
        """Appends items. Raises OSError where there is no room for the temporary file."""
        if not sound.ids:
            return
        lines, fields = canonical(sound)
        self._digest.update(lines)
        parts = [
            array("q", sound.lines).tobytes(),
            array("q", [_NO_AMOUNT if minor is None else minor for minor in sound.minors]).tobytes(),
            _packed(sound.ids),
            b"" if sound.targets is None else _packed(sound.targets),
            _packed_codes(sound.currencies),
            fields,
        ]
        self._file.write(_SIZES.pack(*map(len, parts)) + b"".join(parts))
        self.count += len(sound.ids)

    def drop(self, dropped: bytearray) -> None:
        """Leaves out the items whose place is marked with a 1; the seal is computed anew."""
        if not any(dropped):
            return
        self._dropped = dropped
        self.count -= dropped.count(1)
        self._digest = hashlib.sha256()
        for batch, _ in self.records():
            self._digest.update(ENCODER.encode_lines(batch))

    @property
    def seal(self) -> str:
        """The digest of the items in order, in hex."""
        return self._digest.hexdigest()

    def rows(self) -> Iterator[PlainColumns]:
        """The items in order, some thousand at a time, without decoding what a store keeps as JSON anyway."""
        for columns, _ in self._blocks():
            yield columns

    def records(self) -> Iterator[tuple[list[Record], list[int]]]:
        """The items in order, some thousand at a time, each with the line it came from."""
        for columns, lines in self._blocks():
            fields = map(_FIELDS.decode, columns.fields)
            yield list(map(Record, columns.minors, columns.currencies, fields, columns.ids, columns.targets)), lines

    def _blocks(self) -> Iterator[tuple[PlainColumns, list[int]]]:
        offset = place = 0
        while True:
            # Seeking each time lets a reader be left half-way and another one start.
            self._file.seek(offset)
            head = self._file.read(_SIZES.size)
            if not head:
                self._file.seek(0, 2)
                return
            sizes = _SIZES.unpack(head)
            offset += _SIZES.size + sum(sizes)
            columns, lines = _unpacked([self._file.read(size) for size in sizes])
            place += len(lines)
            if self._dropped:
                keep = [not gone for gone in self._dropped[place - len(lines) : place]]
                columns, lines = columns.keep(keep), list(compress(lines, keep))
            if lines:
                yield columns, lines

    def items(self) -> Iterator[NewItem]:
        """The items in order, as the ledger takes them."""
        moneys: dict[tuple[str | None, int | None], Money | None] = {}
        for batch, lines in self.records():
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

    def written(self) -> None:
        """Everything was added: it is in the file. Raises OSError where there is no room."""
        self._file.flush()

    def close(self) -> None:
        """Gives the disk space back."""
        give_back(self._file)


def _packed(texts: Sequence[str]) -> bytes:
    """Ids or targets, which hold no control characters, as one text."""
    return "\n".join(texts).encode("utf-8")


def _packed_codes(currencies: Sequence[str | None]) -> bytes:
    """One code for all, or one for each; empty for none."""
    if currencies.count(currencies[0]) == len(currencies):
        return (currencies[0] or "").encode()
    return "\n".join([code or "" for code in currencies]).encode()


def _unpacked(parts: list[bytes]) -> tuple[PlainColumns, list[int]]:
    """A block's columns and lines."""
    lines, minors = array("q", parts[0]).tolist(), array("q", parts[1]).tolist()
    ids, targets, codes, fields = (part.decode("utf-8").split("\n") for part in parts[2:])
    amounts = [None if minor == _NO_AMOUNT else minor for minor in minors] if _NO_AMOUNT in minors else minors
    assert len(ids) == len(lines) == len(fields) - 1, "no text of an id or a target holds a line's end"
    one = len(codes) == 1
    currencies = [codes[0] or None] * len(ids) if one else [code or None for code in codes]
    return PlainColumns(ids, targets if parts[3] else ids, amounts, currencies, fields[:-1]), lines
