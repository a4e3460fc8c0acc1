"""The self-check of a ledger: everything that is kept twice is compared, one sentence per fault. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from payonce.core.events import leaf_hash
from payonce.core.states import ItemState
from payonce.ledger.desk import share
from payonce.ledger.merkle import Head, Node
from payonce.ledger.rows import UNKNOWN, BatchRow, ItemRow, OpenRow, Tallies


def check_trail(events: Iterable[tuple[int, bytes]], head: Head, nodes: Iterable[Node] | None = None) -> list[str]:
    """Re-hashes the whole trail: sequence without a gap, the head's root, and the kept nodes where there are any."""
    faults: list[str] = []
    fresh = Head()
    completed: dict[tuple[int, int], bytes] = {}
    for seq, body in events:
        if seq != fresh.size + 1:
            faults.append(f"the trail jumps from event {fresh.size} to {seq}")
            return faults
        for node in fresh.append(leaf_hash(body)):
            completed[node.level, node.index] = node.hash
    if fresh.size != head.size:
        faults.append(f"the trail ends at event {fresh.size}, its head says {head.size}")
    elif fresh.root() != head.root():
        faults.append("the trail's events do not hash to its head")
    if nodes is not None and {(n.level, n.index): n.hash for n in nodes} != completed:
        faults.append("the kept hashes inside the trail do not agree with its events")
    return faults


def check_batch(row: BatchRow, items: Iterable[ItemRow], opens: Mapping[int, OpenRow], tallies: Tallies) -> list[str]:
    """Recounts one batch: items, tallies, and an open intent for exactly the pending and unknown items."""
    faults: list[str] = []
    counted: dict[tuple[ItemState, str], list[int]] = defaultdict(lambda: [0, 0])
    holders: dict[str, int] = {}
    total = 0
    for item in items:
        total += 1
        held = opens.get(item.n)
        if (held is not None) != item.state.holds_money or (
            held is not None and bool(held.flags & UNKNOWN) != (item.state is ItemState.UNKNOWN)
        ):
            faults.append(f"item {item.id} of batch {row.id} is {item.state}, but its open intent says otherwise")
        if held is not None and held.target and holders.setdefault(item.target, item.n) != item.n:
            faults.append(f"two items of batch {row.id} are open on target {item.target}")
        state, currency, minor = share(item, held)
        counted[state, currency][0] += 1
        counted[state, currency][1] += minor
    if total != row.items:
        faults.append(f"batch {row.id} was sealed with {row.items} items and has {total}")
    kept = {key: tally for key, tally in tallies.items() if tally != [0, 0]}
    if kept != dict(counted):
        faults.append(f"the tallies of batch {row.id} do not agree with its items")
    return faults
