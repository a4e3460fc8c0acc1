"""The seal of a batch, computed again from its stored items: amounts, targets and fields are those that were sealed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import orjson

from payonce.ledger.rows import BatchRow
from payonce.ledger.trail_port import SealedRow, TrailReads

_LENGTH: Final = 64
_AT_ONCE: Final = 1000


def broken_seals(reads: TrailReads, rows: Iterable[BatchRow]) -> list[int]:
    """The numbers of the batches whose items do not come to their seal. A seal that is no digest is not looked at."""
    return [row.number for row in rows if len(row.seal) == _LENGTH and not _holds(reads, row)]


def _holds(reads: TrailReads, row: BatchRow) -> bool:
    """Both forms of a line under the seal are known: the amount as a number (files) and as text (Python)."""
    return any(_seal(reads.sealed(row.number), as_text=as_text) == row.seal for as_text in (False, True))


def _seal(rows: Iterable[SealedRow], *, as_text: bool) -> str:
    seal = hashlib.sha256()
    lines: list[bytes] = []
    for id_, target, minor, currency, fields in rows:
        amount: Any = str(minor) if as_text and minor is not None else minor
        # Written in the order of the keys: that is the canonical form.
        line = {
            "amount_minor": amount,
            "currency": currency,
            "fields": orjson.Fragment(fields),
            "id": id_,
            "target": target,
        }
        lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        if len(lines) == _AT_ONCE:
            seal.update(b"".join(lines))
            lines.clear()
    seal.update(b"".join(lines))
    return seal.hexdigest()
