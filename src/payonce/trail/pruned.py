"""A trail written down with only the events somebody needs: every other stretch is replaced by the hashes over it.

The parts stand in order and cover all events up to the checkpoint: an event, or the hash over ``2 ** level`` events that
were left out. Whoever reads them comes to the same root, so an event that was left out or changed in between is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from payonce.core.events import leaf_hash, node_hash
from payonce.trail.tree import Tree, root_of_peaks


@dataclass(frozen=True, slots=True)
class Part:
    """An event (its number and bytes), or a hash over ``2 ** level`` events that were left out."""

    seq: int
    body: bytes | None = None
    level: int = 0
    hash: bytes = b""


def prune(tree: Tree, events: Iterable[tuple[int, bytes]], *, size: int) -> Iterator[Part]:
    """Some events, in sequence, with the hashes over all others up to ``size``."""
    at = 0
    for seq, body in events:
        yield from _skipped(tree, at, seq - 1)
        yield Part(seq, body)
        at = seq
    yield from _skipped(tree, at, size)


def _skipped(tree: Tree, first: int, end: int) -> Iterator[Part]:
    """The fewest complete subtrees over the leaves from ``first`` up to ``end``, which is not included."""
    while first < end:
        level = (end - first).bit_length() - 1
        if first:
            level = min(level, (first & -first).bit_length() - 1)
        yield Part(first + 1, None, level, tree.span(first, first + (1 << level)))
        first += 1 << level


class Rebuilt:
    """The root that some parts come to. ``whole`` says whether each stood where it must."""

    def __init__(self) -> None:
        self.size = 0
        self.whole = True
        self._peaks: list[tuple[int, bytes]] = []

    def add(self, part: Part) -> None:
        """The next part."""
        level = 0 if part.body is not None else part.level
        node = leaf_hash(part.body) if part.body is not None else part.hash
        if part.seq != self.size + 1 or not 0 <= level <= 62 or self.size % (1 << level):
            self.whole = False
            return
        self.size += 1 << level
        while self._peaks and self._peaks[-1][0] == level:
            node = node_hash(self._peaks.pop()[1], node)
            level += 1
        self._peaks.append((level, node))

    def root(self) -> bytes:
        """The root over everything so far."""
        return root_of_peaks([node for _, node in self._peaks])
