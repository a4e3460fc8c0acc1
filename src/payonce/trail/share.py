"""One share of a check: a range of events to hash and a range of items to replay, read in one pass.

Shares need nothing of each other, so that each can have a core of its own. Each event is hashed by the share in whose
range it is, and decoded by the share that has its item, which is mostly the same: then its row is read once. A share
says only whether everything agrees; what does not is named by the slow and thorough way (``trail.verify``).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from payonce.core.errors import PayonceError
from payonce.core.events import from_iso, leaf_hashes
from payonce.ledger.rows import BatchRow
from payonce.ledger.trail_port import PLACE_MASK, PLACE_SHIFT, TrailReads
from payonce.trail.explain import AFTER, NO_CODE, SETTLEMENTS, Replay, Story, is_of_item
from payonce.trail.kept import Kept, Untouched
from payonce.trail.returned import differing
from payonce.trail.said import DECODER, OF_ITEMS
from payonce.trail.tree import BLOCK, fold

LOWEST: Final = -(1 << 63)
HIGHEST: Final = (1 << 63) - 1
_AT_ONCE: Final = 4 * BLOCK
# Takes the lines of the next items of a batch, by its number, as they are under the seal.
Lines = Callable[[int, bytes], object]


class Share(msgspec.Struct, frozen=True):
    """Of a trail of ``size`` events: ``first`` to ``last`` to hash, places ``low`` to ``high`` to replay, all included.

    ``first`` is the first event of a block, ``last`` the last of one or of the trail. ``items_first`` says whether items
    are read before events or after. ``exact``: see ``explain.Replay``."""

    size: int
    first: int
    last: int
    low: int
    high: int
    items_first: bool = False
    exact: frozenset[int] = frozenset()


class Counted(msgspec.Struct):
    """What the events of a batch's items add up to in a share (``explain_course.Counts``, and kept payloads)."""

    sent: int
    lookups: int
    rate_limited: int
    refused: bytes
    committed: int
    payloads: int


class Done(msgspec.Struct):
    """What a share came to: the roots of its blocks, the leaves behind the last, and what batches are judged by.

    ``asides`` are the events that are not about the state of an item: seq, batch number, item number, bytes. ``tallies``
    are batch number, state code, currency, items and minor units; ``open`` are the numbers of pending and unknown items,
    ``untouched`` runs of items without an event, both by batch number."""

    good: bool = True
    blocks: list[bytes] = []
    rest: list[bytes] = []
    asides: list[tuple[int, int, int, bytes]] = []
    counted: dict[int, Counted] = {}
    open: dict[int, set[int]] = {}
    untouched: dict[int, list[Untouched]] = {}
    items: dict[int, int] = {}
    tallies: list[tuple[int, int, str | None, int, int]] = []


class _Doubt(Exception):
    """Something does not agree: the thorough way will say what."""


def work(
    reads: TrailReads, rows: Sequence[BatchRow], share: Share, lines: Lines, *, then: Callable[[], object] = bool
) -> Done:
    """Does a share, and hands out the lines under the seals of its items, in order; ``then`` is called behind the last.
    Where anything does not agree, all that is told of it is that."""
    done, replay = Done(), Replay(rows, share.exact)
    # Millions of rows come and go, none of them in a cycle: looking for cycles among them would cost a fifth of it all.
    collecting = gc.isenabled()
    gc.disable()
    try:
        if not share.items_first:
            _events(reads, replay, share, done)
        kept = _items(reads, rows, share, lines)
        then()
        if share.items_first:
            _events(reads, replay, share, done)
        for row in rows:
            story = replay.stories[row.number]
            if row.number in kept:
                _compare(reads, story, kept[row.number], share=share, done=done)
            done.counted[row.number] = _counted(story)
    except (_Doubt, PayonceError, msgspec.MsgspecError, ValueError, TypeError, OverflowError, LookupError):
        return Done(good=False)
    finally:
        if collecting:
            gc.enable()
    return done


def _events(reads: TrailReads, replay: Replay, share: Share, done: Done) -> None:
    for first in range(1, share.size + 1, _AT_ONCE):
        last = min(first + _AT_ONCE - 1, share.size)
        if share.first <= first <= share.last:
            rows = reads.chunk(first, last)
            if len(rows) != last - first + 1:
                raise _Doubt
            places, bodies = zip(*rows, strict=True)
            _hash(bodies, done)
            if _all_in(share, places):
                _replay(replay, range(first, last + 1), places, bodies, done=done)
                continue
            ours = [(seq, place, body) for seq, (place, body) in enumerate(rows, first) if _in(share, place)]
        else:
            ours = reads.chunk_of(first, last, low=share.low, high=share.high)
        if ours:
            _replay(replay, *zip(*ours, strict=True), done=done)


def _all_in(share: Share, places: Sequence[int | None]) -> bool:
    """Whether all events are about items of the share."""
    known: Sequence[Any] = places
    if None in places:
        known = [place for place in places if place is not None]
        if share.low != LOWEST:
            return False
    return not known or (share.low <= min(known) and max(known) <= share.high)


def _in(share: Share, place: int | None) -> bool:
    return share.low == LOWEST if place is None else share.low <= place <= share.high


def _hash(bodies: Sequence[bytes], done: Done) -> None:
    leaves = leaf_hashes(bodies)
    for at in range(0, len(leaves), BLOCK):
        part = leaves[at : at + BLOCK]
        if len(part) == BLOCK:
            done.blocks.append(fold(part))
        else:
            done.rest = part


def _replay(
    replay: Replay, seqs: Sequence[int], places: Sequence[int | None], bodies: Sequence[bytes], *, done: Done
) -> None:
    """The loop is tight: it runs for every event. First calls and executions are taken here, all else by the replay."""
    number, base, end = 0, 0, 0
    at, at_us = "", 0
    intents, commits = AFTER["intent"], AFTER["commit"]
    for seq, place, body, said in zip(seqs, places, bodies, map(OF_ITEMS.decode, bodies), strict=True):
        if said.seq != seq:
            raise _Doubt
        if place is None:
            if said.batch is not None:
                raise _Doubt
            continue
        n = place - base
        if not 0 < n < end:
            # The first event, one about another batch than the event before, or one about a batch itself.
            number, n = place >> PLACE_SHIFT, place & PLACE_MASK
            story, base = replay.stories[number], number << PLACE_SHIFT
            states, ids, attempts, name, end = story.states, story.ids, story.attempts, story.name, len(story.states)
            facts, codes, holds, times = story.facts, story.codes, story.holds, story.times
            counts = story.batch.counts
        if said.batch != name or n >= end:
            raise _Doubt
        kind = said.type
        if said.at != at:
            at, at_us = said.at, from_iso(said.at)
        if not n:
            done.asides.append((seq, number, n, body))
        elif kind == "intent" and said.reserve is None and ids[n] == 0 and said.worker is not None:
            after = intents[states[n]]
            if after is None:
                raise _Doubt
            ids[n] = hash(said.item)
            states[n] = after
            attempts[n] = said.attempt
            times[n] = at_us
            counts.sent += 1
            if said.request_kept is not None:
                story.payloads += 1
        elif kind == "commit" and said.code is None and not holds and said.worker is not None and said.carry is None:
            after = commits[states[n]]
            if after is None or ids[n] != hash(said.item):
                raise _Doubt
            states[n] = after
            attempts[n] = said.attempt
            times[n] = at_us
            counts.committed = seq
            if said.lookups or said.rate_limited or said.spent:
                counts.lookups += said.lookups
                counts.rate_limited += said.rate_limited
                story.spent[n] += said.spent
            if said.response_kept is not None:
                story.payloads += 1
            facts[n] = hash((said.reference or None, said.billed, said.billed_currency or said.currency))
            codes[n] = NO_CODE if said.message is None else hash((None, said.message))
            if said.settlement is not None:
                story.settlements[n] = SETTLEMENTS[said.settlement]
            if said.output is not None or said.kept:
                story.returned(n, said)
        elif kind in AFTER:
            replay.item(story, n, DECODER.decode(body), at_us)
            if replay.count:
                raise _Doubt
        elif not is_of_item(story, n, said):
            raise _Doubt
        else:
            done.asides.append((seq, number, n, body))
            if kind == "erased":
                story.erased.add(n)


def _items(reads: TrailReads, rows: Sequence[BatchRow], share: Share, lines: Lines) -> dict[int, Kept]:
    """What is stored of the items of the share, by batch number; their lines are handed out."""
    found = {}
    for row in rows:
        first, last = _numbers(share, row.number)
        if first <= last:
            kept = found[row.number] = Kept(first, reads.holds(row.number))
            kept.take(reads.columns(row.number, first=first, last=last), partial(lines, row.number))
    return found


def _numbers(share: Share, number: int) -> tuple[int, int]:
    """The first and the last number that an item of a batch can have in the share."""
    base = number << PLACE_SHIFT
    return max(share.low - base, 1), min(share.high - base, PLACE_MASK)


def _compare(reads: TrailReads, story: Story, kept: Kept, *, share: Share, done: Done) -> None:
    """The stored items of one batch that are in the share, against what their events came to."""
    first, last = _numbers(share, story.number)
    if not kept.agrees(story, last=last):
        raise _Doubt
    done.items[story.number] = kept.items
    story.find_open()
    done.open[story.number] = story.open
    done.untouched[story.number] = kept.untouched(story)
    done.tallies += [
        (story.number, state, coin, items, minor) for (state, coin), (items, minor) in kept.tallies.items()
    ]
    if any(True for _ in differing(reads.outputs(story.number, first=first, last=last), story)):
        raise _Doubt


def _counted(story: Story) -> Counted:
    counts = story.batch.counts
    return Counted(
        counts.sent,
        counts.lookups,
        counts.rate_limited,
        counts.refused.tobytes(),
        counts.committed,
        story.payloads,
    )


def split(
    rows: Sequence[BatchRow], *, size: int, parts: Sequence[float], exact: frozenset[int] = frozenset()
) -> list[Share]:
    """Shares of a trail, each with its part of the events and of the items; together they are everything, once."""
    items = sum(row.items for row in rows)
    shares, first, low, reached = [], 1, LOWEST, 0.0
    for i, part in enumerate(parts):
        reached += part
        end = i == len(parts) - 1
        last = size if end else max(first - 1, int(size * reached) // _AT_ONCE * _AT_ONCE)
        high = HIGHEST if end else max(low, _place_of(rows, int(items * reached)))
        shares.append(Share(size, first, last, low, high, items_first=not i, exact=exact))
        first, low = last + 1, high + 1
    return shares


def _place_of(rows: Sequence[BatchRow], nth: int) -> int:
    """The place of the nth item of all batches."""
    for row in rows:
        if nth <= row.items:
            return row.number << PLACE_SHIFT | nth
        nth -= row.items
    return 0
