"""Hashing the whole trail, or what came after a checkpoint, and comparing it with every hash that is kept of it.

The quick path: where all hashes agree nothing else is looked at. Where one does not, ``trail.locate`` finds the event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from payonce.core.events import leaf_hash
from payonce.ledger.merkle import Head
from payonce.trail.tree import BLOCK, BLOCK_LEVEL, Bodies, fold, root_of_peaks


@dataclass(slots=True)
class Scanned:
    """What a scan of the events ``first`` to ``size`` found.

    ``roots`` are the roots at the sizes that were asked for. ``bad_blocks`` are indexes of 256-event blocks whose kept
    hash does not agree, ``bad_nodes`` kept hashes of higher levels (level, index). ``gap`` is the first event that is
    not where it must be; hashing ends there.
    """

    first: int
    size: int
    roots: dict[int, bytes] = field(default_factory=dict)
    bad_blocks: list[int] = field(default_factory=list)
    bad_nodes: list[tuple[int, int]] = field(default_factory=list)
    gap: int | None = None

    @property
    def root(self) -> bytes | None:
        """The root over all of it; None where hashing had to end before."""
        return self.roots.get(self.size)


def scan(
    reads: Bodies, *, size: int, sizes: Iterable[int] = (), start: int = 0, peaks: Sequence[bytes] = ()
) -> Scanned:
    """Hashes events after ``start`` (a multiple of 256) up to ``size``; ``peaks`` are the subtrees before it.

    ``sizes`` are those at which the root is wanted besides the last.
    """
    assert start % BLOCK == 0, "a scan starts with a block"
    found = Scanned(start + 1, size)
    blocks = Head(start >> BLOCK_LEVEL, list(peaks))
    wanted = deque(sorted({s for s in sizes if start <= s <= size} | {size}))
    rows = iter(reads.bodies(start + 1, size))
    for at in range(start, size + 1, BLOCK):
        expected = min(BLOCK, size - at)
        part = list(islice(rows, BLOCK)) if expected else []
        if expected and (len(part) < expected or part[-1][0] != at + expected):
            found.gap = _first_gap(part, at)
            break
        leaves = [leaf_hash(body) for _, body in part]
        while wanted and wanted[0] < at + BLOCK:
            inside = wanted.popleft()
            found.roots[inside] = root_of_peaks(blocks.peaks + partial(leaves[: inside - at]))
        if expected == BLOCK:
            _take_block(reads, blocks, fold(leaves), found)
    return found


def _take_block(reads: Bodies, blocks: Head, node: bytes, found: Scanned) -> None:
    """Adds a complete block to the tree over blocks and compares the kept hashes that it completes."""
    index = blocks.size
    if _kept(reads, BLOCK_LEVEL, index) != node:
        found.bad_blocks.append(index)
    # The tree over blocks has the shape of the tree over events, eight levels higher.
    for done in blocks.append(node):
        level = done.level + BLOCK_LEVEL
        if level <= 32 and _kept(reads, level, done.index) != done.hash:
            found.bad_nodes.append((level, done.index))


def _kept(reads: Bodies, level: int, index: int) -> bytes | None:
    return reads.nodes(level, index, index).get(index)


def partial(leaves: Sequence[bytes]) -> list[bytes]:
    """The complete subtrees over the events of a block that is not full, largest first."""
    peaks, first = [], 0
    for level in reversed(range(BLOCK_LEVEL)):
        if len(leaves) >> level & 1:
            peaks.append(fold(leaves[first : first + (1 << level)]))
            first += 1 << level
    return peaks


def _first_gap(rows: Sequence[tuple[int, bytes]], at: int) -> int:
    for expected, (seq, _) in enumerate(rows, at + 1):
        if seq != expected:
            return expected
    return at + len(rows) + 1


def blocks_of(found: Scanned) -> Iterator[tuple[int, int]]:
    """First and last event of each block that does not agree."""
    for index in found.bad_blocks:
        yield (index << BLOCK_LEVEL) + 1, min((index + 1) << BLOCK_LEVEL, found.size)
