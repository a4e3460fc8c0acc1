"""The quick check of a whole trail: shares on all cores, put together. It answers only where everything agrees.

Nothing is checked less than by the thorough way: every event is hashed and replayed, every item compared. But where
anything does not agree it says nothing, and ``trail.verify`` goes the thorough way, which names what it is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from payonce.ledger.merkle import Head
from payonce.ledger.rows import BatchRow
from payonce.ledger.trail_port import TrailReads
from payonce.trail.beside import Beside, Following
from payonce.trail.explain import STATES, Replay, Story
from payonce.trail.judge import ids_lead_to_items
from payonce.trail.kept import Untouched
from payonce.trail.said import DECODER
from payonce.trail.scan import Scanned, partial
from payonce.trail.share import Done, split, work
from payonce.trail.tree import BLOCK, BLOCK_LEVEL, TrailHashes, root_of_peaks

# A trail of so many events is worth a second process, whose start takes a fifth of a second.
_LARGE: Final = 50_000
# The other process has to start first, which takes as long as some tens of thousands of events.
_TWO: Final = (0.52, 0.48)


@dataclass(frozen=True, slots=True)
class Agreed:
    """What agreed: the hashes, the batches' stories, the number of items, and the numbers of the batches whose items as a
    whole come to their seal. The items of other batches are still to be compared with what was sealed."""

    scanned: Scanned
    replay: Replay
    items: int
    sealed: frozenset[int]


def quick(
    reads: TrailReads,
    rows: Sequence[BatchRow],
    *,
    url: str | None,
    sizes: Iterable[int],
    exact: frozenset[int] = frozenset(),
) -> Agreed | None:
    """What agrees, with the hashes at ``sizes``; None where anything does not. ``exact``: see ``explain.Replay``.

    With ``url``, the ledger's address, a second process takes part."""
    size = reads.head().size
    two = url is not None and size >= _LARGE and (os.cpu_count() or 1) > 1
    mine, *others = split(rows, size=size, parts=_TWO if two else (1.0,), exact=exact)
    beside = [Beside(url or "", share) for share in others]
    seals = {row.number: hashlib.sha256() for row in rows}

    def lines(number: int, body: bytes) -> None:
        seals[number].update(body)

    following = Following(beside, lines)
    try:
        # In order: the lines of each share come before those of the next.
        done: list[Done | None] = [work(reads, rows, mine, lines, then=following.start)]
        if done[0] is None or not done[0].good or not all(ids_lead_to_items(reads, row) for row in rows):
            return None
        done += following.results()
    finally:
        following.stop()
    good = [part for part in done if part is not None and part.good]
    if len(good) < len(done):
        return None
    scanned = _hashes(reads, [node for part in good for node in part.blocks], good[-1].rest, sizes)
    replay = Replay(rows, exact)
    if scanned is None or not _batches(reads, rows, good, replay):
        return None
    sealed = frozenset(row.number for row in rows if seals[row.number].hexdigest() == row.seal)
    return Agreed(scanned, replay, sum(count for part in good for count in part.items.values()), sealed)


def _hashes(reads: TrailReads, blocks: Sequence[bytes], rest: Sequence[bytes], sizes: Iterable[int]) -> Scanned | None:
    """The tree over the blocks, where all kept hashes and the head agree with it."""
    head = reads.head()
    found = Scanned(1, head.size)
    if len(blocks) * BLOCK + len(rest) != head.size or reads.extent() != head.size:
        return None
    if reads.nodes(BLOCK_LEVEL, 0, len(blocks) - 1) != dict(enumerate(blocks)):
        return None
    wanted = sorted({size for size in sizes if size <= head.size})
    tree = Head()
    at = 0
    for block in [*blocks, None]:
        while wanted and wanted[0] < at + BLOCK:
            inside = wanted.pop(0)
            leaves = TrailHashes(reads).leaves(at, inside - 1) if inside > at else []
            found.roots[inside] = root_of_peaks(tree.peaks + partial(leaves))
        if block is None:
            found.roots[head.size] = root_of_peaks(tree.peaks + partial(rest))
            break
        for node in tree.append(block):
            level = node.level + BLOCK_LEVEL
            if level <= 32 and reads.nodes(level, node.index, node.index).get(node.index) != node.hash:
                return None
        at += BLOCK
    return found if found.root == head.root() else None


def _batches(reads: TrailReads, rows: Sequence[BatchRow], done: Sequence[Done], replay: Replay) -> bool:
    """Whether the batches are what the events about them say, and their tallies those of their items."""
    for _, number, n, body in sorted(aside for part in done for aside in part.asides):
        try:
            replay.aside(replay.stories[number], n, DECODER.decode(body))
        except msgspec.MsgspecError:
            return False
    for row in rows:
        story = replay.stories[row.number]
        for part in done:
            _take(story, part)
        counted: dict[tuple[object, str], list[int]] = {}
        for number, state, coin, items, minor in (tally for part in done for tally in part.tallies):
            if number == row.number:
                tally = counted.setdefault((STATES[state], coin or ""), [0, 0])
                tally[0] += items
                tally[1] += minor
        stored = {key: tally for key, tally in reads.tallies(row.number).items() if tally != [0, 0]}
        counted = {key: tally for key, tally in counted.items() if tally != [0, 0]}
        if stored != counted or sum(part.items.get(row.number, 0) for part in done) != row.items:
            return False
        if story.batch.faults(row, reads.findings(row.number)):
            return False
        if not all(_as_sealed(story, run) for part in done for run in part.untouched.get(row.number, ())):
            return False
    return True


def _take(story: Story, part: Done) -> None:
    """What a share has found out about a batch."""
    story.open |= part.open.get(story.number, set())
    if story.number in part.counted:
        counted = part.counted[story.number]
        story.payloads += counted.payloads
        story.batch.counts.add(
            sent=counted.sent,
            lookups=counted.lookups,
            rate_limited=counted.rate_limited,
            refused=counted.refused,
            committed=counted.committed,
        )


def _as_sealed(story: Story, run: Untouched) -> bool:
    """Whether items that had no event were stored when they were sealed."""
    first, last, stored_us = run
    sealings = story.batch.sealings
    return all(s.at_us == stored_us for s in sealings if s.first <= last and first <= s.last)
