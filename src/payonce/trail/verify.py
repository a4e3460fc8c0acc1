"""Verifying a trail: hashes, kept checkpoints, and that the events explain every state. One snapshot, nothing changed.

What each part can prove: the hashes, that no event was changed by somebody who did not redo all hashes; a checkpoint that
was kept elsewhere, that nobody did; the replay, that states, amounts and counts are those of the events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from payonce.core.keys import digest
from payonce.ledger.trail_port import TrailReads
from payonce.trail.checkpoint import Signed, origin_of
from payonce.trail.explain import Replay, Story
from payonce.trail.explain_items import Stored
from payonce.trail.faults import Fault
from payonce.trail.locate import locate, look
from payonce.trail.scan import Scanned, blocks_of, scan
from payonce.trail.tree import BLOCK, Bodies, TrailHashes, Tree, root_of_peaks

_MOST: Final = 100
_SEAL_LENGTH: Final = 64
# With more blocks than these that do not agree, events were moved: then all rows behind are looked at together.
_FEW: Final = 64
Say = Callable[[str], None]


@dataclass(slots=True)
class Verified:
    """What was verified and found. ``since`` is the size of the checkpoint that an incremental check started from;
    ``limits`` are sentences about what could not be checked."""

    ledger: str
    events: int
    root: str | None
    since: int = 0
    checkpoints: int = 0
    items: int = 0
    faults: list[Fault] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.faults

    def as_json(self) -> dict[str, Any]:
        """The document of ``payonce trail verify --json``."""
        return {
            "ok": self.ok,
            "ledger": self.ledger,
            "events": self.events,
            "root": self.root,
            "since": self.since,
            "checkpoints": self.checkpoints,
            "items": self.items,
            "faults": [fault.as_json() for fault in self.faults],
            "not_checked": self.limits,
        }


def verify(reads: TrailReads, *, checkpoints: Sequence[Signed] = (), since: Signed | None = None) -> Verified:
    """Verifies a trail. ``checkpoints`` are signed and trusted already; ``since`` starts behind one of them.

    An incremental check hashes only the events after ``since`` and replays nothing: it proves that the trail goes on from
    what that checkpoint was signed over, not that nobody changed an event before it since.
    """
    with reads.snapshot():
        head = reads.head()
        found = Verified(reads.ledger_id(), head.size, None, since.checkpoint.size if since else 0)
        kept = _of_this_ledger(found, [*checkpoints, *([since] if since else [])])
        scanned = _scan(reads, head.size, kept, since, found)
        if scanned is not None:
            found.root = scanned.root.hex() if scanned.root else None
            _name_events(reads, scanned, found)
            if scanned.root is not None and scanned.root != head.root() and not found.faults:
                found.faults.append(_head_fault(scanned))
            _compare(scanned, kept, found)
        if since is None:
            explain(reads, found)
    return found


def _of_this_ledger(found: Verified, checkpoints: Sequence[Signed]) -> list[Signed]:
    """The checkpoints of this ledger, by size; others are a fault: comparing them would prove nothing."""
    origin = origin_of(found.ledger)
    kept = []
    for signed in checkpoints:
        if signed.checkpoint.origin == origin:
            kept.append(signed)
        else:
            text = f"a checkpoint is of {signed.checkpoint.origin}, this ledger is {origin}"
            found.faults.append(Fault("other_ledger", text))
    found.checkpoints = len(kept)
    return sorted(kept, key=lambda signed: signed.checkpoint.size)


def _scan(
    reads: TrailReads, size: int, kept: Sequence[Signed], since: Signed | None, found: Verified
) -> Scanned | None:
    sizes = [signed.checkpoint.size for signed in kept]
    if since is None:
        return scan(reads, size=size, sizes=sizes)
    old = since.checkpoint
    if old.size > size:
        _compare(Scanned(1, size), kept, found)
        return None
    tree = Tree(TrailHashes(reads))
    start = old.size - old.size % BLOCK
    try:
        peaks = tree.peaks(start)
    except (KeyError, IndexError):
        found.faults.append(Fault("removed", f"events or kept hashes before event {old.size} are missing", 1, old.size))
        return None
    scanned = scan(reads, size=size, sizes=sizes, start=start, peaks=peaks)
    # The kept hashes before it are only as good as the root that they come to.
    if scanned.roots.get(old.size) != old.root:
        text = f"the kept hashes do not come to the checkpoint over {old.size} events; verify the whole trail"
        found.faults.append(Fault("rewritten", text, 1, old.size))
        return None
    return scanned


def _name_events(reads: TrailReads, scanned: Scanned, found: Verified) -> None:
    """Reads the rows under the hashes that do not agree, and names the events."""
    extent = reads.extent()
    blocks = list(blocks_of(scanned))
    if scanned.root != reads.head().root() and scanned.size % BLOCK:
        blocks.append((scanned.size - scanned.size % BLOCK + 1, scanned.size))
    if scanned.gap is not None or extent != scanned.size or len(blocks) > _FEW:
        first = min([*(first for first, _ in blocks), scanned.gap or scanned.size + 1])
        first -= (first - 1) % BLOCK
        found.faults += locate(look(reads.filed(first, max(extent, scanned.size))), first=first, size=scanned.size)
        return
    named = locate([row for first, last in blocks for row in look(reads.filed(first, last))])
    found.faults += named
    for first, last in blocks_of(scanned):
        if not any(first <= (fault.seq or 0) <= last for fault in named):
            found.faults.append(_block_fault(reads, scanned, first, last))
    for level, index in scanned.bad_nodes:
        if not scanned.bad_blocks:
            first, last = (index << level) + 1, (index + 1) << level
            text = f"the kept hash over events {first} to {last} was changed; the events were not"
            found.faults.append(Fault("hashes_changed", text, first, last))


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


def _compare(scanned: Scanned, kept: Sequence[Signed], found: Verified) -> None:
    """Each kept checkpoint against the root at its size."""
    good = 0
    for signed in kept:
        size, root = signed.checkpoint.size, signed.checkpoint.root
        if size > scanned.size:
            text = (
                f"a checkpoint over {size} events was signed, the trail has {scanned.size}: "
                f"events {scanned.size + 1} to {size} are gone, or this is an older copy of the ledger"
            )
            found.faults.append(Fault("truncated", text, scanned.size + 1, size))
            return
        there = scanned.roots.get(size)
        if there is None and scanned.first <= size:
            found.limits.append(f"the checkpoint over {size} events: events before it are missing")
        elif there is not None and there != root:
            text = (
                f"the checkpoint over {size} events does not agree: events {good + 1} to {size} are not all those that "
                "it was signed over"
            )
            found.faults.append(Fault("rewritten", text, good + 1, size))
            return
        elif there is not None:
            good = size


def explain(reads: TrailReads, found: Verified) -> None:
    """Replays all events and compares what they come to with what is stored."""
    rows = list(reads.batches())
    replay = Replay(rows)
    take = replay.take
    for seq, number, n, body, _, item in reads.filed(1, found.events):
        take(seq, number, n, body, item)
    # What the hashes have named already is not told a second time.
    named = {fault.seq for fault in found.faults}
    found.faults += [fault for fault in replay.faults if fault.seq not in named]
    for row in rows:
        story = replay.stories[row.number]
        stored = Stored(story, row, reads.holds(row.number))
        found.faults += list(stored.faults(reads.facts(row.number), reads.tallies(row.number)))[:_MOST]
        found.items += stored.items
        for text in story.batch.faults(row, reads.findings(row.number)):
            found.faults.append(Fault("unexplained", text, batch=row.id))
        if len(row.seal) == _SEAL_LENGTH and not story.batch.amended:
            _check_seal(stored.seal_holds(), row.id, found)
        _check_outputs(reads, story, found)
    _check_payloads(reads, found)


def _check_seal(holds: bool | None, batch: str, found: Verified) -> None:
    if holds is None:
        found.limits.append(f"the seal of batch {batch}: fields of its items were erased")
    elif not holds:
        text = f"the items of batch {batch} are not those it was sealed with (amounts, targets or fields differ)"
        found.faults.append(Fault("unexplained", text, batch=batch))


def _check_outputs(reads: TrailReads, story: Story, found: Verified) -> None:
    """Each kept output against the digest it was committed with; one that is gone was erased by an event, or by somebody."""
    wanted = story.outputs
    for n, output in reads.outputs(story.number):
        if n in wanted and digest(output) != wanted.pop(n):
            text = f"the output of item number {n} of batch {story.name} is not the one it was committed with"
            found.faults.append(Fault("payload_changed", text, batch=story.name))
    for n in sorted(set(wanted) - story.erased)[:_MOST]:
        text = f"the output of item number {n} of batch {story.name} is gone, and no event erased it"
        found.faults.append(Fault("payload_changed", text, batch=story.name))


def _check_payloads(reads: TrailReads, found: Verified) -> None:
    for seq, kind, wanted, body, _ in reads.payloads():
        if body is not None and digest(body) != wanted.hex():
            found.faults.append(Fault("payload_changed", f"the {kind} kept with event {seq} was changed", seq))


def root_at(reads: Bodies, size: int) -> bytes:
    """The root over the first ``size`` events, from kept hashes where there are any."""
    return root_of_peaks(Tree(TrailHashes(reads)).peaks(size))
