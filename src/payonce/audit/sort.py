"""Sorts every item of a run without a ledger: executed once, never, more than once, or with a wrong amount. Pure.

An execution belongs to an item if it carries the item's reference, or, where it carries none of ours, if it lies on the
item's target. The earliest execution with the right amount is kept. Of those at one time it is the one with the item's
own reference, then the one that the provider's order shows as the first: a list that begins with the newest is read from
its end. Several items on one target share its executions by their amounts. What nothing explains is listed, never forced
on an item.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from payonce.audit.model import Extra, Found, Seen, Sorted, Stranger, Wish

_LAST = 2**62


def sort(wishes: Sequence[Wish], executions: Sequence[Seen]) -> Sorted:
    """The audit of some items against everything the provider shows. Item ids must be unique."""
    live = sorted(_oldest_first([seen for seen in executions if not seen.undone]), key=_order)
    audit = _Audit(wishes)
    free = audit.by_own_reference(live)
    audit.by_target(free)
    return audit.result(undone=len(executions) - len(live))


def _order(seen: Seen) -> tuple[int, int]:
    return (seen.at_us if seen.at_us is not None else _LAST, seen.place)


def _oldest_first(executions: Sequence[Seen]) -> Sequence[Seen]:
    """The executions with places that rise with time. Which way a list runs is seen on each target; where that does not
    tell, a list that never rises begins with the newest. Look-ups put one target's list after the other's, so that the
    whole proves less."""
    listed = sorted(executions, key=lambda seen: seen.place)
    by_target: dict[str, list[Seen]] = defaultdict(list)
    for seen in listed:
        if seen.target is not None:
            by_target[seen.target].append(seen)
    steps = [step for found in by_target.values() for step in _steps(found)]
    turned = sum(steps) < 0 if steps else -1 in (overall := _steps(listed)) and 1 not in overall
    return [replace(seen, place=-seen.place) for seen in listed] if turned else listed


def _steps(listed: Sequence[Seen]) -> list[int]:
    """1 for each next one that is later, -1 for each that is earlier; nothing for those at one time."""
    times = [seen.at_us for seen in listed if seen.at_us is not None]
    return [1 if after > before else -1 for before, after in pairwise(times) if after != before]


def _order_for(wish: Wish, seen: Seen) -> tuple[int, bool, int]:
    at_us, place = _order(seen)
    return at_us, wish.item not in (*seen.owns, seen.reference), place


def _right(wish: Wish, seen: Seen) -> bool:
    return wish.money is None or wish.money == seen.money


class _Audit:
    def __init__(self, wishes: Sequence[Wish]) -> None:
        self._wishes = {wish.item: wish for wish in wishes}
        assert len(self._wishes) == len(wishes), "item ids are unique"
        self._of: dict[str, list[Seen]] = defaultdict(list)
        self._kept: dict[str, Seen] = {}
        self._strangers: list[Seen] = []

    def by_own_reference(self, live: Sequence[Seen]) -> list[Seen]:
        """Gives executions that carry an item's own reference to it; returns the others."""
        free = []
        for seen in live:
            item = next((own for own in (*seen.owns, seen.reference) if own in self._wishes), None)
            if item is None:
                free.append(seen)
            else:
                self._of[item].append(seen)
        return free

    def by_target(self, free: Sequence[Seen]) -> None:
        """Gives the other executions to the items on their target."""
        targets: dict[str, list[Wish]] = defaultdict(list)
        for wish in self._wishes.values():
            targets[wish.target].append(wish)
        on_target: dict[str, list[Seen]] = defaultdict(list)
        for seen in free:
            # One that carries another reference of ours is another item's, which the input does not have.
            if seen.target is None or seen.target not in targets:
                self._strangers.append(seen)
            else:
                on_target[seen.target].append(seen)
        for target, found in on_target.items():
            self._share(targets[target], found)

    def _share(self, wishes: Sequence[Wish], found: Sequence[Seen]) -> None:
        """One target: first each item its earliest execution of the right amount, then what is left over."""
        left = list(found)
        for wish in wishes:
            if any(_right(wish, seen) for seen in self._of[wish.item]):
                continue
            match = next((seen for seen in left if _right(wish, seen)), None)
            if match is not None:
                left.remove(match)
                self._of[wish.item].append(match)
        for seen in left:
            again = [wish for wish in wishes if _right(wish, seen)]
            never = [wish for wish in wishes if not self._of[wish.item]]
            if again:
                # Among items of one amount, the extra goes to the one with the fewest executions.
                self._of[min(again, key=lambda wish: len(self._of[wish.item])).item].append(seen)
            elif never:
                self._of[never[0].item].append(seen)
            else:
                self._strangers.append(seen)

    def result(self, *, undone: int) -> Sorted:
        """The classes, the extras in the provider's order, and the strangers grouped."""
        classes: dict[str, Found] = {}
        extras: list[Extra] = []
        for item, wish in self._wishes.items():
            found = sorted(self._of[item], key=partial(_order_for, wish))
            if not found:
                classes[item] = Found.NONE
                continue
            kept = next((seen for seen in found if _right(wish, seen)), found[0])
            self._kept[item] = kept
            extras += [Extra(item, seen, kept.reference) for seen in found if seen is not kept]
            if len(found) > 1:
                classes[item] = Found.MORE_THAN_ONE
            else:
                classes[item] = Found.EXACTLY_ONE if _right(wish, kept) else Found.WRONG_AMOUNT
        extras.sort(key=lambda extra: _order(extra.seen))
        return Sorted(classes, self._kept, tuple(extras), _grouped(self._strangers), undone)


def _grouped(strangers: Sequence[Seen]) -> tuple[Stranger, ...]:
    """Executions under one reference are one finding, with their number."""
    groups: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    shared = Counter(own for seen in strangers for own in seen.owns[:1])
    for seen in strangers:
        own = seen.owns[0] if seen.owns and shared[seen.owns[0]] > 1 else None
        name = own or seen.reference or seen.target or "without a reference"
        groups[name, seen.money.currency].append(seen)
    return tuple(
        Stranger(
            name,
            found[0].target,
            len(found),
            currency,
            sum(seen.money.minor for seen in found),
            tuple(dict.fromkeys(seen.reference for seen in found if seen.reference)),
        )
        for (name, currency), found in groups.items()
    )
