"""Roots and proofs of the trail's Merkle tree (RFC 6962), from the hashes the ledger keeps: a proof of one event among
millions reads a few hundred rows.

Trusts no kept hash: what it builds is checked against a signed root by whoever uses it (``inclusion_holds``,
``consistency_holds``), and a wrong hash in the ledger gives a proof that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from payonce.core.events import leaf_hash, node_hash, node_hashes
from payonce.ledger.merkle import EMPTY_ROOT, KEPT_LEVELS

BLOCK_LEVEL: Final = KEPT_LEVELS[0]
BLOCK: Final = 1 << BLOCK_LEVEL


class Hashes(Protocol):
    """Where a tree gets its leaves and kept hashes from: a ledger's trail, or an export."""

    def leaves(self, first: int, last: int) -> list[bytes]:
        """The leaf hashes from the index ``first`` to ``last``, both included, from 0."""
        ...

    def nodes(self, level: int, first: int, last: int) -> dict[int, bytes]:
        """Kept hashes of one level by index; those that are missing are left out."""
        ...


def fold(level: Sequence[bytes]) -> bytes:
    """The root over a power of two of hashes."""
    while len(level) > 1:
        level = node_hashes(level)
    return level[0]


def root_of_peaks(peaks: Sequence[bytes]) -> bytes:
    """The tree head over complete subtrees, largest first."""
    if not peaks:
        return EMPTY_ROOT
    node = peaks[-1]
    for peak in reversed(peaks[:-1]):
        node = node_hash(peak, node)
    return node


class Tree:
    """The tree over the first events of a trail, at any size, with its proofs. Remembers what it has computed."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = hashes
        self._known: dict[tuple[int, int], bytes] = {}

    def complete(self, level: int, index: int) -> bytes:
        """The root of a complete subtree of ``2 ** level`` leaves, the ``index``-th of its size."""
        known = self._known.get((level, index))
        if known is not None:
            return known
        kept = max((k for k in KEPT_LEVELS if k <= level), default=0)
        if kept == level and kept:
            found = self._hashes.nodes(level, index, index)
            node = found[index] if found else self._of_children(level, index, self._kept_below(level))
        else:
            node = self._of_children(level, index, kept)
        self._known[level, index] = node
        return node

    def _kept_below(self, level: int) -> int:
        return max((k for k in KEPT_LEVELS if k < level), default=0)

    def _of_children(self, level: int, index: int, below: int) -> bytes:
        """From the hashes of a lower level, and everything in between, which the next proof may ask for."""
        width = level - below
        first, last = index << width, ((index + 1) << width) - 1
        row = self._row(below, first, last)
        for up in range(1, width + 1):
            row = node_hashes(row)
            start = index << (width - up)
            self._known.update(((below + up, start + i), node) for i, node in enumerate(row))
        return row[0]

    def _row(self, level: int, first: int, last: int) -> list[bytes]:
        if level == 0:
            block = first >> BLOCK_LEVEL << BLOCK_LEVEL
            if (0, block) not in self._known:
                leaves = self._hashes.leaves(block, max(last, block + BLOCK - 1))
                self._known.update(((0, block + i), leaf) for i, leaf in enumerate(leaves))
            return [self._known[0, i] for i in range(first, last + 1)]
        found = self._hashes.nodes(level, first, last)
        return [found[i] if i in found else self.complete(level, i) for i in range(first, last + 1)]

    def span(self, first: int, end: int) -> bytes:
        """MTH of RFC 6962 over the leaves from ``first`` up to ``end``, which is not included."""
        size = end - first
        if size == 0:
            return EMPTY_ROOT
        if size & (size - 1) == 0 and first % size == 0:
            level = size.bit_length() - 1
            return self._row(0, first, first)[0] if level == 0 else self.complete(level, first >> level)
        split = _split(size)
        return node_hash(self.span(first, first + split), self.span(first + split, end))

    def root(self, size: int) -> bytes:
        """The tree head over the first ``size`` events."""
        return self.span(0, size)

    def peaks(self, size: int) -> list[bytes]:
        """The complete subtrees over the first ``size`` events, largest first."""
        found, first = [], 0
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                found.append(self.span(first, first + (1 << level)))
                first += 1 << level
        return found

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """PATH of RFC 6962: the proof that the leaf at ``index`` (from 0) is in the tree of ``size`` events."""
        assert 0 <= index < size, "only what is in the tree can be proven"
        path: list[bytes] = []
        first, end = 0, size
        while end - first > 1:
            middle = first + _split(end - first)
            if index < middle:
                path.append(self.span(middle, end))
                end = middle
            else:
                path.append(self.span(first, middle))
                first = middle
        return path[::-1]

    def consistency(self, old: int, size: int) -> list[bytes]:
        """PROOF of RFC 6962: that the first ``old`` of ``size`` events are those an older head was over."""
        assert 0 < old <= size, "an older tree is not empty, nor larger"
        path: list[bytes] = []
        first, end, whole = 0, size, True
        while old != end:
            middle = first + _split(end - first)
            if old <= middle:
                path.append(self.span(middle, end))
                end = middle
            else:
                path.append(self.span(first, middle))
                first, whole = middle, False
        return ([] if whole else [self.span(first, end)]) + path[::-1]


def _split(size: int) -> int:
    """The largest power of two below a size."""
    return 1 << ((size - 1).bit_length() - 1)


def inclusion_holds(leaf: bytes, index: int, *, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether a path proves a leaf hash at ``index`` (from 0) under a root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    place, last, node = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            node = node_hash(sibling, node)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and node == root


def consistency_holds(old: int, size: int, *, old_root: bytes, root: bytes, path: Sequence[bytes]) -> bool:
    """Whether a path proves that a tree of ``old`` events is the beginning of one of ``size`` (RFC 9162, 2.1.4.2)."""
    if not 0 < old <= size:
        return False
    if old == size:
        return not path and old_root == root
    steps = list(path) if old & (old - 1) else [old_root, *path]
    if not steps:
        return False
    place, last = old - 1, size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    older = newer = steps[0]
    for sibling in steps[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            older, newer = node_hash(sibling, older), node_hash(sibling, newer)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            newer = node_hash(newer, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and older == old_root and newer == root


class TrailHashes:
    """The hashes of a ledger's trail, from its bodies and kept nodes."""

    def __init__(self, reads: Bodies) -> None:
        self._reads = reads

    def leaves(self, first: int, last: int) -> list[bytes]:
        """See Hashes. What is missing is missing here too."""
        return [leaf_hash(body) for _, body in self._reads.bodies(first + 1, last + 1)]

    def nodes(self, level: int, first: int, last: int) -> dict[int, bytes]:
        """See Hashes."""
        return self._reads.nodes(level, first, last)


class Bodies(Protocol):
    """The part of ledger.trail_port.TrailReads that hashing needs."""

    def bodies(self, first: int, last: int) -> Iterator[tuple[int, bytes]]: ...

    def nodes(self, level: int, first: int, last: int) -> dict[int, bytes]: ...
