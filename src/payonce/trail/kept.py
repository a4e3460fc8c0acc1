"""What is stored of the items of a batch, column by column, to be compared with what their events came to.

Items are taken by the thousand, turned on their side, so that most of the work is done for a whole column at once: this
runs for every item of a ledger. It says only whether all agrees; what does not is named by ``trail.explain_items``.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from payonce.core.keys import digest
from payonce.core.money import exponent, format_minor
from payonce.core.states import ItemState
from payonce.ledger.sealing import lines_of
from payonce.ledger.trail_port import Columns
from payonce.trail.explain import NO_CARRY, NO_CODE, OPEN, STATES, Story

Holds = dict[int, tuple[int | None, str | None]]
_COMMITTED: Final = STATES.index(ItemState.COMMITTED)
_CENTS: Final = tuple(f"{cents:02}" for cents in range(100))
# Number of the first and the last of some items that had no event, and the time that is stored of them.
Untouched = tuple[int, int, int]


class Kept:
    """The items from the number ``first`` on. The hashes are those of ``explain.Story``, of this process alone.

    ``whole`` is False where the numbers have a gap. ``tallies`` are items and minor units by code of state and currency."""

    def __init__(self, first: int, holds: Holds) -> None:
        self.first = first
        self.whole = True
        self.tallies: dict[tuple[int, str | None], list[int]] = {}
        self._holds = holds
        self._states, self._settlements, self._steps = bytearray(), bytearray(), bytearray()
        self._attempts, self._generations, self._spent = array("I"), array("I"), array("I")
        self._ids, self._facts, self._codes, self._carries = array("q"), array("q"), array("q"), array("q")
        self._not_before, self._first_sent, self._updated = array("q"), array("q"), array("q")
        # Of open items: number, what the item is worth, what its intent holds.
        self._held: list[tuple[int, tuple[str | None, str | None], tuple[str | None, str | None]]] = []

    @property
    def items(self) -> int:
        """How many items there are."""
        return len(self._states)

    def take(self, parts: Iterable[Columns], lines: Callable[[bytes], object]) -> None:
        """Takes items in order, and hands out their lines under the seal."""
        for part in parts:
            lines(self._take(part))

    def _take(self, part: Columns) -> bytes:
        start, count = self.first + self.items, len(part.ns)
        there = range(start, start + count)
        if part.ns != there and list(part.ns) != list(there):
            self.whole = False
        self._states.extend(part.states)
        self._settlements.extend(part.settlements)
        self._steps.extend(part.steps)
        self._attempts.extend(part.attempts)
        self._generations.extend(part.generations)
        self._spent.extend(part.spent)
        self._not_before.extend(part.not_before)
        self._first_sent.extend(part.first_sent)
        self._updated.extend(part.updated)
        if part.carries.count("{}") == count:
            self._carries.extend(array("q", [NO_CARRY]) * count)
        else:
            self._carries.extend(hash(digest(text.encode())) for text in part.carries)
        self._ids.extend(map(hash, part.ids))
        billed, billed_in = part.billed, part.billed_in
        self._facts.extend(map(hash, zip(part.references, _texts(billed, billed_in), billed_in, strict=True)))
        if part.codes.count(None) != count or any(part.messages):
            self._codes.extend(hash((code, text or None)) for code, text in zip(part.codes, part.messages, strict=True))
        else:
            self._codes.extend(array("q", [NO_CODE]) * count)
        one = part.states.count(_COMMITTED) == billed_in.count(billed_in[0]) == count
        minor = _sum(billed) if one else None
        if minor is not None and billed_in[0] is not None:
            self._count(_COMMITTED, billed_in[0], items=count, minor=minor)
        else:
            self._count_each(part)
        return lines_of(part.ids, part.targets, part.minors, part.currencies, part.fields)

    def _count(self, state: int, coin: str | None, *, items: int, minor: int) -> None:
        tally = self.tallies.setdefault((state, coin), [0, 0])
        tally[0] += items
        tally[1] += minor

    def _count_each(self, part: Columns) -> None:
        """The tallies of items in several states; what open ones hold is noted."""
        rows = zip(part.ns, part.minors, part.currencies, part.states, part.billed, part.billed_in, strict=True)
        for n, minor, coin, state, billed, billed_in in rows:
            if state in OPEN:
                own = (_text(minor, coin), coin if minor is not None else None)
                minor, coin = self._holds.get(n, (None, None))
                self._held.append((n, own, (_text(minor, coin), coin)))
            elif state == _COMMITTED and billed_in is not None:
                minor, coin = billed, billed_in
            self._count(state, coin, items=1, minor=minor or 0)

    def agrees(self, story: Story, *, last: int) -> bool:
        """Whether the items up to the number ``last`` are all there and what their events say; but for when those that had
        no event were stored (``untouched``)."""
        there = slice(self.first, last + 1)
        mine = [self._states, self._settlements, self._steps, self._attempts, self._generations, self._facts]
        theirs = [story.states, story.settlements, story.steps, story.attempts, story.generations, story.facts]
        mine.append(self._not_before)
        theirs.append(story.not_before)
        if story.exact:
            mine += [self._spent, self._first_sent, self._carries]
            theirs += [story.spent, story.first_sent, story.carries]
        return (
            self.whole
            and all(one == other[there] for one, other in zip(mine, theirs, strict=True))
            and self._codes == story.codes[there]
            and _same(self._ids, story.ids[there])
            and _same(self._updated, story.times[there])
            and all(held == story.holds.get(n, own) for n, own, held in self._held)
        )

    def untouched(self, story: Story) -> list[Untouched]:
        """The items that had no event, as runs of those that were stored at one time."""
        found: list[Untouched] = []
        times = story.times
        if 0 not in times[self.first : self.first + self.items]:
            return found
        for n, stored in enumerate(self._updated, start=self.first):
            if times[n]:
                continue
            if found and found[-1][1:] == (n - 1, stored):
                found[-1] = (found[-1][0], n, stored)
            else:
                found.append((n, n, stored))
        return found


def _same(stored: array[int], told: array[int]) -> bool:
    """Whether ids or times are those in the events, where there are events."""
    return stored == told or all(one == other or not other for one, other in zip(stored, told, strict=True))


def _texts(minors: Sequence[int | None], coins: Sequence[str | None]) -> Iterable[str | None]:
    """Amounts in major units, as they stand in events."""
    one = coins[0]
    if one is not None and exponent(one) == 2 and len(set(coins)) == 1 and None not in minors:
        known: list[Any] = list(minors)
        if min(known) >= 0:
            return [f"{minor // 100}.{_CENTS[minor % 100]}" for minor in known]
    return map(_text, minors, coins)


def _sum(minors: Sequence[int | None]) -> int | None:
    """The sum, where all are known."""
    known: list[Any] = list(minors)
    return None if None in known else sum(known)


def _text(minor: int | None, currency: str | None) -> str | None:
    if minor is None:
        return None
    return f"{minor} of nothing" if currency is None else format_minor(minor, currency)
