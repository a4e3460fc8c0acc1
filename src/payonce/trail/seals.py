"""The seal of a batch, computed again from its stored items: amounts, targets and fields are those that were sealed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

import orjson

from payonce.ledger.rows import BatchRow
from payonce.ledger.trail_port import SealedRow, TrailReads

_LENGTH: Final = 64
_AT_ONCE: Final = 1000


def broken_seals(reads: TrailReads, rows: Iterable[BatchRow]) -> list[int]:
    """The numbers of the batches whose items do not come to their seal. A seal that is no digest is not looked at."""
    return [row.number for row in rows if len(row.seal) == _LENGTH and not _holds(reads, row)]


def _holds(reads: TrailReads, row: BatchRow) -> bool:
    """Both forms of a line under the seal are known: the amount as text (most) and as a number."""
    return any(_digest(reads, row, quote=quote) == row.seal for quote in ('"', ""))


def _digest(reads: TrailReads, row: BatchRow, *, quote: str) -> str:
    lines, rows = hashlib.sha256(), reads.sealed(row.number)
    while part := list(islice(rows, _AT_ONCE)):
        lines.update(_lines(part, quote=quote))
    return lines.hexdigest()


def _lines(part: Sequence[SealedRow], *, quote: str) -> bytes:
    """The lines of some items, in the order of the keys: that is the canonical form. Put together as text where nothing
    has to be escaped, which is quick."""
    ids, targets, minors, _, _ = zip(*part, strict=True)
    texts = "".join(ids) + "".join(targets)
    if '"' in texts or "\\" in texts or not texts.isprintable() or None in minors:
        return b"".join([_line(row, as_text=bool(quote)) for row in part])
    return "".join(
        [
            f'{{"amount_minor":{quote}{minor}{quote},"currency":"{currency}","fields":{fields},'
            f'"id":"{id_}","target":"{target}"}}\n'
            for id_, target, minor, currency, fields in part
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
