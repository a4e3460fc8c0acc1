"""What hangs on a trail besides batches and items: the head's own words, kept hashes, workers, rows of no batch, open
intents. Read once, after the replay, in the quick way and in the thorough one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import orjson

from payonce.core.events import from_iso, leaf_hash
from payonce.ledger.merkle import KEPT_LEVELS
from payonce.ledger.rows import BatchRow
from payonce.ledger.trail_port import TrailReads
from payonce.trail.explain import Replay
from payonce.trail.explain_open import open_faults
from payonce.trail.faults import Fault

_MOST: Final = 100


def rest_faults(reads: TrailReads, rows: Sequence[BatchRow], replay: Replay) -> Iterator[Fault]:
    """Everything of it that the events do not explain."""
    for table in reads.strangers():
        yield Fault("unexplained", f"table {table} holds rows that belong to none of the batches")
    for text in islice(replay.workers.faults(reads.workers()), _MOST):
        yield Fault("unexplained", text)
    ids = sorted(found.id for row in rows for found in reads.findings(row.number))
    if ids != list(range(1, len(ids) + 1)):
        yield Fault("unexplained", "the findings are not numbered as they were opened: from 1 on, without a gap")
    for row in rows:
        story = replay.stories[row.number]
        if story.exact:
            for n, text in islice(open_faults(reads, row, story.open), _MOST):
                yield Fault("unexplained", f"item number {n} of batch {row.id}: {text}", batch=row.id)


def head_faults(reads: TrailReads) -> Iterator[Fault]:
    """What the head says of the last event, and how many hashes are kept. The hashes themselves are compared elsewhere."""
    head = reads.head()
    wanted = sum(head.size >> level for level in KEPT_LEVELS)
    if reads.kept_nodes() != wanted:
        text = f"{reads.kept_nodes()} hashes are kept inside the trail, for {head.size} events there are {wanted}"
        yield Fault("hashes_changed", text)
    for seq, body in reads.bodies(head.size, head.size):
        if (head.last_leaf, head.last_us) != (leaf_hash(body), from_iso(orjson.loads(body)["at"])):
            yield Fault("head_changed", "the head of the trail says another last event or time than there is", seq)
