"""What is known of a target under all of its names, once the provider has told them: who acts on it, and what is new.

A payment may be named by its charge or by its payment intent. Only the provider knows that both are one, so it shows
where targets are read (``--check``): items that other batches named the other way are overlaps, two names of one payment
in one input are a finding, and what the provider shows and no batch of the ledger did is one too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from payonce.core.model import BatchSpec, NewItem
from payonce.core.overlap import Acting, same_account
from payonce.core.preflight import ACTED_OUTSIDE, acted_outside
from payonce.core.states import ItemState
from payonce.ledger.protocol import Ledger
from payonce.providers.protocol import Preflight
from payonce.service.overlaps import LISTED, Overlap, Overlaps

# Items in these states may show at the provider.
_SHOWS: Final = (ItemState.PENDING, ItemState.COMMITTED, ItemState.UNKNOWN)
Shown = tuple[Sequence[NewItem], Preflight]


@dataclass(slots=True)
class Known:
    """What a ledger knows of targets, beside what the provider shows of them. ``allowed`` is the reason why targets that
    others acted on may be acted on."""

    ledger: Ledger
    spec: BatchSpec
    allowed: str | None = None
    _count: int = 0
    _first: list[Overlap] = field(default_factory=list)
    _batches: dict[str, None] = field(default_factory=dict)
    # A payment's first name, by hash: the hash of the name it had in the input, and the line.
    _names: dict[int, tuple[int, int | None]] = field(default_factory=dict)

    def look(self, shown: Sequence[Shown]) -> Iterator[tuple[int, str, str]]:
        """What is found about those of some targets that fit: the place in ``shown``, a code, and words. Overlaps are
        kept, of the others too."""
        acting = self._acting(shown)
        for place, (group, result) in enumerate(shown):
            target = _target(group[0])
            names = tuple(dict.fromkeys((target, *result.names)))
            others = [one for name in names for one in acting.get(name, ())]
            self._overlapping(group, [one for one in others if one.target != target and one.batch != self.spec.id])
            if not result.ok:
                continue
            twice = self._named_twice(group[0], names)
            if twice is not None:
                yield place, "same_target", twice
            elif result.touched and self.allowed is None:
                ours = [one for one in others if one.state in _SHOWS]
                outside = acted_outside(target, taken=result.taken, ours=ours)
                if outside is not None:
                    yield place, ACTED_OUTSIDE, outside

    def merged(self, found: Overlaps) -> Overlaps:
        """The overlaps that were found by name alone, and these."""
        if not self._count:
            return found
        first = (*found.first, *self._first)[:LISTED]
        batches = tuple(dict.fromkeys((*found.batches, *self._batches)))
        return replace(found, count=found.count + self._count, first=first, batches=batches, allowed=self.allowed)

    def _acting(self, shown: Sequence[Shown]) -> dict[str, list[Acting]]:
        """The ledger's items on these targets, by the name they have there; only where it matters."""
        asked: dict[str, None] = {}
        for group, result in shown:
            target = _target(group[0])
            others = [name for name in result.names if name != target]
            asked |= dict.fromkeys([*others, target] if result.touched else others)
        found: dict[str, list[Acting]] = {}
        if asked:
            for batch in self.ledger.batches():
                if batch.spec.id == self.spec.id or same_account(self.spec, batch.spec):
                    for one in self.ledger.acting_on(batch.number, list(asked)):
                        found.setdefault(one.target, []).append(one)
        return found

    def _overlapping(self, group: Sequence[NewItem], others: Sequence[Acting]) -> None:
        """Other batches act on this payment under another name."""
        if not others:
            return
        self._count += len(group)
        self._batches |= dict.fromkeys(one.batch for one in others)
        for item in group[: LISTED - len(self._first)]:
            self._first.append(Overlap(item.id, item.line, others[0], named=_target(item)))

    def _named_twice(self, item: NewItem, names: Sequence[str]) -> str | None:
        """Whether another item of the input has this payment under another name."""
        if len(names) < 2:
            return None
        target = _target(item)
        key = hash(min(names))
        before = self._names.setdefault(key, (hash(target), item.line))
        other = next((name for name in names if name != target and hash(name) == before[0]), None)
        if other is None:
            return None
        where = "" if before[1] is None else f" in line {before[1]}"
        return f"{target} and {other}{where} are one payment; name it in one way, so that both are seen together"


def _target(item: NewItem) -> str:
    return item.target or item.id
