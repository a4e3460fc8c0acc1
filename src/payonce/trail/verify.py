"""Verifying a trail: hashes, kept checkpoints, and that the events explain every state. One snapshot, nothing changed.

What each part can prove: the hashes, that no event was changed by somebody who did not redo all hashes; a checkpoint that
was kept elsewhere, that nobody did; the replay, that states, amounts and counts are those of the events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import orjson

from payonce.core.errors import MoneyError
from payonce.core.events import FORM
from payonce.ledger.rows import BatchRow
from payonce.ledger.trail_port import TrailReads
from payonce.trail.checkpoint import Signed, origin_of
from payonce.trail.explain import Replay, Story
from payonce.trail.explain_items import Stored
from payonce.trail.explain_rest import head_faults, rest_faults
from payonce.trail.faults import Fault
from payonce.trail.judge import compare, ids_lead_to_items, name_events
from payonce.trail.payloads import payload_faults
from payonce.trail.quick import quick
from payonce.trail.returned import differing
from payonce.trail.scan import Scanned, scan
from payonce.trail.seals import Broken, broken_seals
from payonce.trail.tree import BLOCK, Bodies, TrailHashes, Tree, root_of_peaks

_MOST: Final = 100


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


def verify(
    reads: TrailReads, *, checkpoints: Sequence[Signed] = (), since: Signed | None = None, url: str | None = None
) -> Verified:
    """Verifies a trail. ``checkpoints`` are signed and trusted already; ``since`` starts behind one of them.

    An incremental check hashes only the events after ``since`` and replays nothing: it proves that the trail goes on from
    what that checkpoint was signed over, not that nobody changed an event before it since. With ``url``, the ledger's
    address, a second process takes its share of a large trail.
    """
    with reads.snapshot():
        found = Verified("", 0, None, since.checkpoint.size if since else 0)
        try:
            found.ledger = reads.ledger_id()
            found.events = reads.head().size
            _check_identity(reads, found)
            kept = _of_this_ledger(found, [*checkpoints, *([since] if since else [])])
            if since is None:
                _whole(reads, kept, url, found)
            else:
                scanned = _scan_since(reads, kept, since, found)
                if scanned is not None:
                    _judge(reads, scanned, kept, found)
        except (LookupError, ValueError, TypeError, OverflowError, MoneyError) as error:
            # No ledger writes a state, a currency or a row that it cannot read again.
            text = f"a row is none that the ledger wrote, and the check ended at it: {error}"
            found.faults.append(Fault("unreadable", text))
    return found


def _check_identity(reads: TrailReads, found: Verified) -> None:
    """The first event names the ledger that it was written for."""
    for _, body in reads.bodies(1, 1):
        said = orjson.loads(body)
        if said.get("type") == "ledger_created" and said.get("ledger", found.ledger) != found.ledger:
            text = f"this ledger says it is {found.ledger}, its first event says {said['ledger']}"
            found.faults.append(Fault("other_ledger", text, 1))


def _whole(reads: TrailReads, kept: Sequence[Signed], url: str | None, found: Verified) -> None:
    """The quick way; where anything does not agree, the thorough one."""
    sizes = [signed.checkpoint.size for signed in kept]
    rows = list(reads.batches())
    exact = exact_batches(reads, rows)
    agreed = quick(reads, rows, url=url, sizes=sizes, exact=exact)
    if agreed is None:
        replay, sealed = _thorough(reads, kept, rows, exact, found), frozenset[int]()
    else:
        found.items = agreed.items
        _judge(reads, agreed.scanned, kept, found)
        replay, sealed = agreed.replay, agreed.sealed
    _check_seals(reads, [row for row in rows if row.number not in sealed], replay, found)
    found.faults += rest_faults(reads, rows, replay)
    found.faults += islice(payload_faults(reads, told=sum(s.payloads for s in replay.stories.values())), _MOST)
    if not found.faults:  # whatever else is wrong makes these wrong too
        found.faults += head_faults(reads)
    _say_inexact([row for row in rows if row.number not in exact], found)


def exact_batches(reads: TrailReads, rows: Sequence[BatchRow]) -> frozenset[int]:
    """The numbers of the batches whose events explain everything, by the event that sealed each."""
    found = set()
    for row in rows:
        for _, body in reads.bodies(row.first_seq, row.first_seq):
            said = orjson.loads(body)
            if said.get("batch") == row.id and said.get("form", 1) >= FORM:
                found.add(row.number)
    return frozenset(found)


def _say_inexact(rows: Sequence[BatchRow], found: Verified) -> None:
    if rows:
        names = ", ".join(row.id for row in rows[:3]) + (f" and {len(rows) - 3} more" if len(rows) > 3 else "")
        found.limits.append(
            f"of {names}, sealed by an earlier payonce: reasons, times, attempts that count, open intents "
            "and counts of look-ups, rate limits and refusals, which their events do not say"
        )


def _thorough(
    reads: TrailReads, kept: Sequence[Signed], rows: list[BatchRow], exact: frozenset[int], found: Verified
) -> Replay:
    """Everything by itself, and the faults of the hashes first: they name the cause."""
    scanned = scan(reads, size=found.events, sizes=[signed.checkpoint.size for signed in kept])
    replay = Replay(rows, exact)
    replay.run(reads.filed(1, found.events))
    _judge(reads, scanned, kept, found)
    named = {fault.seq for fault in found.faults}
    # Where events were moved along, each of those behind says another number than its place: what moved them is named.
    moved = any(fault.code in ("inserted", "removed", "reordered") for fault in found.faults)
    found.faults += [f for f in replay.faults if f.seq not in named and not (moved and f.code == "reordered")]
    found.faults += [fault for row in rows for fault in _explain(reads, row, replay, found)]
    return replay


def _check_seals(reads: TrailReads, rows: list[BatchRow], replay: Replay, found: Verified) -> None:
    for row in rows:
        story = replay.stories[row.number]
        for broken in broken_seals(reads, row.number, story.batch.sealings, story.erased):
            _seal_fault(row, broken, found)
        for sealing in story.batch.sealings:
            if sealing.unchecked:
                found.limits.append(
                    f"whether items number {sealing.first} to {sealing.last} of batch {row.id} were as sealed when "
                    f"event {sealing.left} was written: fields had been erased by an earlier payonce"
                )


def _judge(reads: TrailReads, scanned: Scanned, kept: Sequence[Signed], found: Verified) -> None:
    found.root = scanned.root.hex() if scanned.root else None
    found.faults += name_events(reads, scanned)
    faults, limits = compare(scanned, kept)
    found.faults += faults
    found.limits += limits


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


def _scan_since(reads: TrailReads, kept: Sequence[Signed], since: Signed, found: Verified) -> Scanned | None:
    """Hashes what came after a checkpoint; None where there is nothing to hash, and the fault is noted."""
    old, size = since.checkpoint, found.events
    if old.size > size:
        found.faults += compare(Scanned(1, size), kept)[0]
        return None
    tree = Tree(TrailHashes(reads))
    start = old.size - old.size % BLOCK
    try:
        peaks = tree.peaks(start)
    except (KeyError, IndexError):
        found.faults.append(Fault("removed", f"events or kept hashes before event {old.size} are missing", 1, old.size))
        return None
    sizes = [signed.checkpoint.size for signed in kept]
    scanned = scan(reads, size=size, sizes=sizes, start=start, peaks=peaks)
    # The kept hashes before it are only as good as the root that they come to.
    if scanned.roots.get(old.size) != old.root:
        text = f"the kept hashes do not come to the checkpoint over {old.size} events; verify the whole trail"
        found.faults.append(Fault("rewritten", text, 1, old.size))
        return None
    return scanned


def _explain(reads: TrailReads, row: BatchRow, replay: Replay, found: Verified) -> list[Fault]:
    """What of one batch and its items the events do not explain: the first hundred."""
    story = replay.stories[row.number]
    stored = Stored(story, row, reads.holds(row.number))
    faults = list(islice(stored.faults(reads.stored(row.number), reads.tallies(row.number)), _MOST))
    found.items += stored.items
    texts = story.batch.faults(row, reads.findings(row.number))
    if not ids_lead_to_items(reads, row):
        texts.append(f"the ids by which items are found are not those of the items of batch {row.id}")
    faults += [Fault("unexplained", text, batch=row.id) for text in texts]
    return faults + _check_outputs(reads, story)


def _seal_fault(row: BatchRow, broken: Broken, found: Verified) -> None:
    """The items do not come to the seal: they were changed, unless some were erased by an earlier payonce."""
    sealing = broken.sealing
    which = f"items number {sealing.first} to {sealing.last} of batch {row.id}"
    if broken.erased:
        found.limits.append(f"the seal over {which}: fields of {broken.erased} of them were erased")
        return
    how = f"left by the erasure of event {sealing.left}" if sealing.left else f"sealed with event {sealing.seq}"
    text = f"{which} are not those that were {how} (amounts, targets or fields differ)"
    found.faults.append(Fault("unexplained", text, batch=row.id))


def _check_outputs(reads: TrailReads, story: Story) -> list[Fault]:
    """What calls returned against what they were committed with."""
    return [
        Fault("payload_changed", f"{what} of item number {n} of batch {story.name} {how}", batch=story.name)
        for n, what, how in islice(differing(reads.outputs(story.number), story), _MOST)
    ]


def root_at(reads: Bodies, size: int) -> bytes:
    """The root over the first ``size`` events, from kept hashes where there are any."""
    return root_of_peaks(Tree(TrailHashes(reads)).peaks(size))
