"""What an erasure does to the seals of a batch: before fields go, their items are compared with what was sealed; what is left
gets a digest of its own, so that everything else under that seal can be checked for ever after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import orjson

from payonce.core.errors import UsageError
from payonce.core.events import from_iso
from payonce.ledger.rows import BatchRow
from payonce.ledger.sealing import LeftDigest, SealDigest, Sealing, Sealings
from payonce.ledger.tables import Reads, Tables
from payonce.ledger.trail_port import SealedRow

# Where the names of erased fields stand in an item's fields.
ERASED = "$erased"
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Resealed:
    """A sealing, the digest over its items as an erasure leaves them, and whether they could be compared before."""

    sealing: Sealing
    left: str
    unchecked: bool


def reseal(tables: Tables, reads: Reads, batch: BatchRow, fields: Mapping[int, str]) -> list[Resealed]:
    """The seals over some items whose fields are about to be replaced by ``fields``. Reads the items under them once.

    Raises UsageError ``trail_changed`` where items are not as they were sealed: an erasure must not cover that up."""
    found = []
    for sealing in sealings_of(reads, batch.number):
        ns = [n for n in fields if sealing.first <= n <= sealing.last]
        if ns:
            rows = tables.sealed(batch.number, first=sealing.first, last=sealing.last)
            found.append(_reseal(reads, batch, sealing, rows, fields))
    return found


def sealings_of(reads: Reads, number: int) -> Sealings:
    """The sealings of a batch, by its events."""
    found, after = Sealings(), 0
    while page := reads.events(number, n=0, after_seq=after, limit=_AT_ONCE):
        after = page[-1].seq
        for said in (orjson.loads(event.body) for event in page):
            match said["type"]:
                case "sealed" | "amended":
                    first, at_us = said["type"] == "sealed", from_iso(said["at"])
                    seal, added = said.get("seal"), said.get("added")
                    found.sealed(said["seq"], first=first, items=said["items"], seal=seal, added=added, at_us=at_us)
                case "resealed":
                    unchecked = said.get("unchecked", False)
                    found.resealed(said["seq"], of=said["event"], seal=said["seal"], unchecked=unchecked)
                case _:
                    pass
    return found


def _reseal(
    reads: Reads, batch: BatchRow, sealing: Sealing, rows: Iterator[SealedRow], fields: Mapping[int, str]
) -> Resealed:
    before, left, n = SealDigest(sealing), LeftDigest(), sealing.first
    marked: list[int] = []
    while part := list(islice(rows, _AT_ONCE)):
        before.add(part)
        new = [(*row[:4], fields.get(at, row[4])) for at, row in enumerate(part, start=n)]
        left.add(new)
        if not sealing.left:
            marked += [at for at, row in enumerate(part, start=n) if f'"{ERASED}"' in row[4]]
        n += len(part)
    if before.holds():
        return Resealed(sealing, left.hexdigest(), sealing.unchecked)
    if marked and all(_was_erased(reads, batch.number, at) for at in marked):
        return Resealed(
            sealing, left.hexdigest(), unchecked=True
        )  # by an earlier payonce, without a digest of the rest
    raise UsageError(
        f"items number {sealing.first} to {sealing.last} of batch {batch.id} are not as they were sealed: nothing is erased",
        code="trail_changed",
        hint="payonce trail verify names what was changed",
    )


def _was_erased(reads: Reads, number: int, n: int) -> bool:
    events = reads.events(number, n=n, after_seq=0, limit=100_000)
    return any(orjson.loads(event.body)["type"] == "erased" for event in events)
