"""The seals of a batch: which items each covers, and its digest computed again from what is stored of them.

A batch is sealed once and may grow: each event that sealed or added items covers the lines of its own items, in order.
Where fields of some of them were erased, a later event holds the digest over the lines as they were left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from payonce.ledger.trail_port import SealedRow

_LENGTH: Final = 64


class Sealing(NamedTuple):
    """What one event sealed: ``items`` items from the number ``first`` on, the seal from then on and before (None for the
    first), the digest over the lines of those items alone where the event has it, and its time.

    ``left``: the event behind an erasure whose digest over the lines stands in ``seal`` since, 0 without one;
    ``unchecked``: it could not be checked then that all else was as it was sealed."""

    seq: int
    first: int
    items: int
    seal: str
    before: str | None
    added: str | None
    at_us: int
    left: int = 0
    unchecked: bool = False

    @property
    def last(self) -> int:
        """The number of the last item."""
        return self.first + self.items - 1


class SealDigest:
    """The digest over lines as a sealing has it. Both forms of a line are known: the amount as text (now) and as a number
    (once), so two digests go along."""

    def __init__(self, sealing: Sealing) -> None:
        self._wanted = sealing.added or sealing.seal
        begun = sealing.before.encode() if sealing.before is not None and sealing.added is None else b""
        self._texts, self._numbers, self._left = hashlib.sha256(begun), hashlib.sha256(begun), sealing.items

    def add(self, rows: Sequence[SealedRow]) -> None:
        """The next items, in order; at least one."""
        self._left -= len(rows)
        columns = tuple(zip(*rows, strict=True))
        self._texts.update(lines_of(*columns))
        self._numbers.update(lines_of(*columns, quote=""))

    def holds(self) -> bool:
        """Whether the items are all there and come to the seal. One that is no digest is not looked at."""
        if len(self._wanted) != _LENGTH:
            return True
        return not self._left and self._wanted in (self._texts.hexdigest(), self._numbers.hexdigest())


def lines_of(
    ids: Sequence[str],
    targets: Sequence[str],
    minors: Sequence[int | None],
    coins: Sequence[str | None],
    fields: Sequence[str],
    *,
    quote: str = '"',
) -> bytes:
    """The lines of some items under a seal, in the order of the keys: that is the canonical form. Put together as text
    where nothing has to be escaped, which is quick. ``quote`` is what stands around an amount."""
    texts = "".join(ids) + "".join(targets)
    if '"' in texts or "\\" in texts or not texts.isprintable() or None in minors or None in coins:
        rows = zip(ids, targets, minors, coins, fields, strict=True)
        return b"".join([_line(row, as_text=bool(quote)) for row in rows])
    return "".join(
        [
            f'{{"amount_minor":{quote}{minor}{quote},"currency":"{currency}","fields":{its},'
            f'"id":"{id_}","target":"{target}"}}\n'
            for id_, target, minor, currency, its in zip(ids, targets, minors, coins, fields, strict=True)
        ]
    ).encode()


def _line(row: SealedRow, *, as_text: bool) -> bytes:
    """One item's line, whatever its texts are."""
    id_, target, minor, currency, fields = row
    line = {
        "amount_minor": str(minor) if as_text and minor is not None else minor,
        "currency": currency,
        "fields": orjson.Fragment(fields),
        "id": id_,
        "target": target,
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
