"""The seals of a batch, computed again from its stored items: amounts, targets and fields are those that were sealed.

A batch is sealed once and may grow: each event that sealed or added items covers the lines of its own items, in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import orjson

from payonce.ledger.trail_port import SealedRow, TrailReads

_LENGTH: Final = 64
_AT_ONCE: Final = 1000


class Sealing(NamedTuple):
    """What one event sealed: so many items, the seal from then on and before (None for the first), and the digest over the
    lines of those items alone where the event has it."""

    seq: int
    items: int
    seal: str
    before: str | None
    added: str | None


class Broken(NamedTuple):
    """Items ``first`` to ``last`` of a batch, by number, do not come to what the event ``seq`` sealed. ``erased`` counts
    those whose fields were erased since: then nothing else is known to be wrong."""

    seq: int
    first: int
    last: int
    erased: int


def broken_seals(
    reads: TrailReads, number: int, sealings: Sequence[Sealing], erased: Collection[int]
) -> Iterator[Broken]:
    """The sealings of a batch that its stored items do not come to. A seal that is no digest is not looked at."""
    rows, first = reads.sealed(number), 1
    for sealing in sealings:
        last = first + sealing.items - 1
        if not _holds(rows, sealing):
            yield Broken(sealing.seq, first, last, sum(first <= n <= last for n in erased))
        first = last + 1


def _holds(rows: Iterator[SealedRow], sealing: Sealing) -> bool:
    """Takes the items of one sealing off the rows. Both forms of a line are known: the amount as text (now) and as a
    number (once), so two digests go along."""
    wanted = sealing.added or sealing.seal
    begun = sealing.before.encode() if sealing.before is not None and sealing.added is None else b""
    texts, numbers, left = hashlib.sha256(begun), hashlib.sha256(begun), sealing.items
    while part := list(islice(rows, min(left, _AT_ONCE))):
        left -= len(part)
        columns = tuple(zip(*part, strict=True))
        texts.update(lines_of(*columns))
        numbers.update(lines_of(*columns, quote=""))
    return len(wanted) != _LENGTH or (not left and wanted in (texts.hexdigest(), numbers.hexdigest()))


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
