"""The trail's Merkle tree (RFC 6962), kept as its compact range: the roots of the complete subtrees, largest first.

Appending a leaf costs about two hashes and needs nothing of the earlier leaves. The roots of complete subtrees of 256
leaves (and of 256 of those, and so on) are handed out as they arise, so that a proof never re-hashes the whole trail.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from payonce.core.events import node_hash, node_hashes

KEPT_LEVELS: Final = (8, 16, 24, 32)
_MARK: Final = Struct(">q").unpack_from
EMPTY_ROOT: Final = hashlib.sha256(b"").digest()


@dataclass(frozen=True, slots=True)
class Node:
    """The root of a complete subtree: of ``2 ** level`` leaves, the ``index``-th of that size, from 0."""

    level: int
    index: int
    hash: bytes


@dataclass(slots=True)
class Head:
    """The head of the trail: how many events, the compact range over them, the last leaf and the last event's time."""

    size: int = 0
    peaks: list[bytes] = field(default_factory=list)
    last_leaf: bytes = b""
    last_us: int = 0

    def append(self, leaf: bytes) -> list[Node]:
        """Takes a leaf hash in; returns the kept nodes that it completed."""
        size, peaks, node = self.size, self.peaks, leaf
        done: list[Node] = []
        if size & 1:
            rest, level = size, 0
            while rest & 1:
                node = node_hash(peaks.pop(), node)
                rest >>= 1
                level += 1
                if level in KEPT_LEVELS:
                    done.append(Node(level, size >> level, node))
        peaks.append(node)
        self.size = size + 1
        self.last_leaf = leaf
        return done

    def extend(self, leaves: Sequence[bytes]) -> list[Node]:
        """Takes leaf hashes in, as ``append`` does one by one; returns the kept nodes that they completed."""
        if not leaves:
            return []
        row, at, level = list(leaves), self.size, 0
        done: list[Node] = []
        fresh: list[bytes] = []
        # Level by level: what stands alone at the left joins the peak there, what stands alone at the right becomes one.
        while row:
            if at & 1:
                row.insert(0, self.peaks.pop())
                at -= 1
            if len(row) & 1:
                fresh.append(row.pop())
            row = node_hashes(row)
            at, level = at >> 1, level + 1
            if row and level in KEPT_LEVELS:
                done += [Node(level, index, node) for index, node in enumerate(row, at)]
        self.peaks += reversed(fresh)
        self.size += len(leaves)
        self.last_leaf = leaves[-1]
        return done

    def root(self) -> bytes:
        """The RFC 6962 tree head over all events."""
        if not self.peaks:
            return EMPTY_ROOT
        node = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            node = node_hash(peak, node)
        return node

    def copy(self) -> Head:
        """An independent copy."""
        return Head(self.size, list(self.peaks), self.last_leaf, self.last_us)


def mark_of(leaf: bytes) -> int:
    """The first eight bytes of a leaf hash as a signed number: kept beside each event, to find the one that was changed."""
    mark: int = _MARK(leaf)[0]
    return mark


def marks_of(leaves: Sequence[bytes]) -> list[int]:
    """The marks of many leaves."""
    first = _MARK
    return [first(leaf)[0] for leaf in leaves]


def pack(peaks: list[bytes]) -> bytes:
    """The peaks as one column: 32 bytes each."""
    return b"".join(peaks)


def unpack(column: bytes) -> list[bytes]:
    """The inverse of ``pack``."""
    return [column[i : i + 32] for i in range(0, len(column), 32)]
