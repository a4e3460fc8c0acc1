"""From hashes that do not agree to faults: which events, by the rows under them, and what a kept checkpoint says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from payonce.ledger.rows import BatchRow
from payonce.ledger.trail_port import TrailReads
from payonce.trail.checkpoint import Signed
from payonce.trail.faults import Fault
from payonce.trail.locate import locate, look
from payonce.trail.scan import Scanned, blocks_of
from payonce.trail.tree import BLOCK

# With more blocks than these that do not agree, events were moved: then all rows behind are looked at together.
_FEW: Final = 64


def name_events(reads: TrailReads, scanned: Scanned) -> list[Fault]:
    """Reads the rows under the hashes that do not agree, and names the events."""
    extent = reads.extent()
    blocks = list(blocks_of(scanned))
    if scanned.root != reads.head().root() and scanned.size % BLOCK:
        blocks.append((scanned.size - scanned.size % BLOCK + 1, scanned.size))
    if scanned.gap is not None or extent != scanned.size or len(blocks) > _FEW:
        first = min([*(first for first, _ in blocks), scanned.gap or scanned.size + 1])
        first -= (first - 1) % BLOCK
        return locate(look(reads.filed(first, max(extent, scanned.size))), first=first, size=scanned.size)
    named = locate([row for first, last in blocks for row in look(reads.filed(first, last))])
    faults = list(named)
    for first, last in blocks_of(scanned):
        if not any(first <= (fault.seq or 0) <= last for fault in named):
            faults.append(_block_fault(reads, scanned, first, last))
    for level, index in scanned.bad_nodes:
        if not scanned.bad_blocks:
            first, last = (index << level) + 1, (index + 1) << level
            text = f"the kept hash over events {first} to {last} was changed; the events were not"
            faults.append(Fault("hashes_changed", text, first, last))
    if not faults and scanned.root is not None and scanned.root != reads.head().root():
        faults.append(_head_fault(scanned))
    return faults


def _block_fault(reads: TrailReads, scanned: Scanned, first: int, last: int) -> Fault:
    """Every event of the block fits its own mark: either the kept hash was changed, or an event with its mark."""
    if scanned.root == reads.head().root():
        text = f"the kept hash over events {first} to {last} was changed; the events were not"
        return Fault("hashes_changed", text, first, last)
    text = (
        f"one of the events {first} to {last} was changed, and the mark beside it too, so that it cannot be told which"
    )
    return Fault("changed_block", text, first, last)


def _head_fault(scanned: Scanned) -> Fault:
    """All events that can be told fit, and the head does not: it was changed, or an event of the last block and its mark."""
    first = scanned.size - scanned.size % BLOCK + 1
    text = f"the head of the trail is not that of its events; if it was not changed itself, one after {first - 1} was"
    return Fault("head_changed", text, first, scanned.size)


def compare(scanned: Scanned, kept: Sequence[Signed]) -> tuple[list[Fault], list[str]]:
    """Each kept checkpoint, by size, against the root there; and in sentences, which could not be compared."""
    good = 0
    limits: list[str] = []
    for signed in kept:
        size, root = signed.checkpoint.size, signed.checkpoint.root
        if size > scanned.size:
            text = (
                f"a checkpoint over {size} events was signed, the trail has {scanned.size}: "
                f"events {scanned.size + 1} to {size} are gone, or this is an older copy of the ledger"
            )
            return [Fault("truncated", text, scanned.size + 1, size)], limits
        there = scanned.roots.get(size)
        if there is None and scanned.first <= size:
            limits.append(f"the checkpoint over {size} events: events before it are missing")
        elif there is not None and there != root:
            text = (
                f"the checkpoint over {size} events does not agree: events {good + 1} to {size} are not all those that "
                "it was signed over"
            )
            return [Fault("rewritten", text, good + 1, size)], limits
        elif there is not None:
            good = size
    return [], limits


def ids_lead_to_items(reads: TrailReads, row: BatchRow) -> bool:
    """Whether each item of a batch is found by its id, and nothing else is. An id that is not would be taken for that of
    a new item, and paid again."""
    return reads.ids(row.number) in (None, (row.items, row.items))
