"""The seals of a batch: which items each covers, and its digest computed again from what is stored of them.

A batch is sealed once and may grow: each event that sealed or added items covers the lines of its own items, in order.
Where fields of some of them were erased, a later event holds the digest over the lines as they were left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
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


class Sealings:
    """The sealings of a batch, from the events about it in sequence."""

    def __init__(self) -> None:
        self.items = 0
        self.seal: str | None = None
        self._all: dict[int, Sealing] = {}

    def __iter__(self) -> Iterator[Sealing]:
        return iter(self._all.values())

    def sealed(self, seq: int, *, first: bool, items: int, seal: str | None, added: str | None, at_us: int) -> None:
        """An event sealed the batch (``first``), or added items to it."""
        # The first amendment of a batch that was never sealed begins with an empty seal.
        before = None if first else self.seal or ""
        self._all[seq] = Sealing(seq, self.items + 1, items, seal or "", before, added, at_us)
        self.items += items
        self.seal = seal

    def resealed(self, seq: int, *, of: int, seal: str | None, unchecked: bool) -> None:
        """Fields of some of the items under a seal were erased: what is left of all of them has a digest of its own."""
        if of in self._all:
            known = self._all[of]
            self._all[of] = known._replace(seal=seal or "", before=None, added=None, left=seq, unchecked=unchecked)


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


class LeftDigest:
    """The digest over lines as an erasure leaves them."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()

    def add(self, rows: Sequence[SealedRow]) -> None:
        """The next items, in order; at least one."""
        self._sha256.update(lines_of(*zip(*rows, strict=True)))

    def hexdigest(self) -> str:
        """The digest so far."""
        return self._sha256.hexdigest()


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
