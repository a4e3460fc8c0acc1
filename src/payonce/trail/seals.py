"""The seals of a batch against its stored items: amounts, targets and fields are those that were sealed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from payonce.ledger.sealing import SealDigest, Sealing
from payonce.ledger.trail_port import SealedRow, TrailReads

_AT_ONCE: Final = 1000


class Broken(NamedTuple):
    """The items of a sealing do not come to what it sealed. ``erased`` counts those whose fields were erased without a
    new digest over what is left, as an earlier payonce did: then nothing else is known to be wrong."""

    sealing: Sealing
    erased: int


def broken_seals(
    reads: TrailReads, number: int, sealings: Iterable[Sealing], erased: Collection[int]
) -> Iterator[Broken]:
    """The sealings of a batch that its stored items do not come to."""
    rows = reads.sealed(number)
    for sealing in sealings:
        if not _holds(rows, sealing):
            unexplained = 0 if sealing.left else sum(sealing.first <= n <= sealing.last for n in erased)
            yield Broken(sealing, unexplained)


def _holds(rows: Iterator[SealedRow], sealing: Sealing) -> bool:
    """Takes the items of one sealing off the rows."""
    digest, left = SealDigest(sealing), sealing.items
    while part := list(islice(rows, min(left, _AT_ONCE))):
        left -= len(part)
        digest.add(part)
    return digest.holds()
