"""Overlaps: items about to be sealed on targets that another batch of the ledger acts on (SPEC invariant 11).

Nothing is looked up one by one: hashes of both sides are compared as sets, a million at a time, and only what is
suspected is compared as text. A ledger without another batch of the account costs nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from payonce.core.errors import Problem, SealedError, UsageError
from payonce.core.model import BatchSpec, NewItem
from payonce.core.overlap import Acting, Clearance, same_account
from payonce.core.wording import some
from payonce.intake import Intake
from payonce.ledger.protocol import Ledger

LISTED: Final = 20
# Hashes of other batches' targets that are held as a set at once: some 100 MB.
_AT_ONCE: Final = 1_000_000
# So many suspects are compared as text; of more, the rest is counted by 64-bit hashes.
_COMPARED: Final = 1000


@dataclass(frozen=True, slots=True)
class Newcomers:
    """The items about to be sealed, as often as they are asked for: their targets in blocks, and themselves, in order."""

    targets: Callable[[], Iterator[Sequence[str]]]
    items: Callable[[], Iterator[NewItem]]


@dataclass(frozen=True, slots=True)
class Overlap:
    """A new item, and the item of the newest other batch that acts on its target. ``named`` is the new item's own name
    of the target, where the other one knows it by another."""

    item: str
    line: int | None
    other: Acting
    named: str | None = None

    @property
    def message(self) -> str:
        """What is the matter, in one sentence."""
        other = self.other
        money = "no amount" if other.money is None else str(other.money)
        too = f"{other.target} too" if self.named is None else f"{other.target}, which is the same as {self.named}"
        return (
            f"item {self.item}: item {other.item} of batch {other.batch} ({other.state.value}, {money}) acts on {too}"
        )


@dataclass(frozen=True, slots=True)
class Overlaps:
    """What a comparison found: how many new items overlap, the first of them, and with which batches.

    ``seen`` are the batches that there were (``core.overlap.Clearance``); ``batches`` are those of the first thousand.
    """

    seen: Mapping[int, int | None] = field(default_factory=dict)
    count: int = 0
    first: tuple[Overlap, ...] = ()
    batches: tuple[str, ...] = ()
    allowed: str | None = None

    @property
    def held(self) -> bool:
        """Whether nothing may be sealed until a person allows it."""
        return self.count > 0 and self.allowed is None

    @property
    def clearance(self) -> Clearance:
        """What the ledger is told at the seal."""
        return Clearance(self.seen, self.count, self.batches, self.allowed)

    def problems(self, file: str) -> tuple[Problem, ...]:
        """The first ones as problems of the input."""
        return tuple(Problem(file, o.line, None, o.other.target, "overlap", o.message) for o in self.first)

    def as_json(self) -> dict[str, Any]:
        """The JSON contract's shape."""
        return {"count": self.count, "allowed": self.allowed, "batches": list(self.batches), "items": [
            {
                "item": o.item,
                "line": o.line,
                "target": o.other.target,
                "batch": o.other.batch,
                "other_item": o.other.item,
                "state": o.other.state.value,
                "amount": o.other.money.text if o.other.money else None,
                "currency": o.other.money.currency if o.other.money else None,
            }
            for o in self.first
        ]}  # fmt: skip


class OverlapError(SealedError):
    """The items overlap with another batch's and nobody allowed it; the first are in ``problems``. Nothing was sealed."""

    def __init__(self, batch: str, found: Overlaps, *, file: str, hint: str) -> None:
        others = ", ".join(found.batches)
        super().__init__(
            f"{some(found.count, 'item')} of batch {batch} {'acts' if found.count == 1 else 'act'} on targets that another batch has acted on ({others})",
            code="overlap",
            hint=hint,
        )
        self.problems = found.problems(file)


def reason_of(allow: bool, reason: str | None) -> str | None:
    """The reason for which overlaps are allowed, None where they are not. Raises UsageError where one of the two is
    missing: a permission without a reason would leave nothing in the trail to judge it by."""
    if allow and not (reason or "").strip():
        raise UsageError("--allow-overlap needs a reason", code="no_reason", hint="say why: --reason TEXT")
    if reason is not None and not allow:
        raise UsageError(
            "--reason is for --allow-overlap here", code="usage", hint="leave it out, or allow the overlap"
        )
    return reason.strip() if allow and reason else None


def of_intake(intake: Intake) -> Newcomers:
    """All items of an input."""
    return Newcomers(lambda: (rows.targets for rows in intake.rows()), intake.items)


def of_items(items: Callable[[], Iterator[NewItem]]) -> Newcomers:
    """Items from anywhere."""

    def targets() -> Iterator[Sequence[str]]:
        rows = items()
        while block := [item.target or item.id for item in islice(rows, 10_000)]:
            yield block

    return Newcomers(targets, items)


def find(ledger: Ledger, spec: BatchSpec, new: Newcomers, *, allowed: str | None) -> Overlaps:
    """Compares the items with every other batch of the same account (``core.overlap.same_account``) in the ledger.

    Reads only. A million items beside a million others take a few seconds and some 200 MB.
    """
    seen: dict[int, int | None] = {}
    others: list[int] = []
    for batch in ledger.batches():
        own = batch.spec.id == spec.id
        matters = own or same_account(spec, batch.spec)
        seen[batch.number] = batch.items if matters else None
        if matters and not own:
            others.append(batch.number)
    if not others:
        return Overlaps(seen)
    hashes: array[int] = array("q")
    for block in new.targets():
        hashes.extend(map(hash, block))
    marks = _marks(hashes, ledger, others)
    suspected = marks.count(1)
    if not suspected:
        return Overlaps(seen)
    checked = list(_at(new.items(), marks))
    proven = _proven(ledger, others, checked)
    count = suspected - len(checked) + len(proven)
    if not count:
        return Overlaps(seen)
    batches = tuple(dict.fromkeys(overlap.other.batch for overlap in proven))
    return Overlaps(seen, count, tuple(proven[:LISTED]), batches, allowed)


def _marks(hashes: array[int], ledger: Ledger, others: Sequence[int]) -> bytes:
    """A 1 for each new item whose target's hash is among those of the other batches."""
    marks = bytes(len(hashes))
    for taken in _taken(ledger, others):
        if not taken.isdisjoint(hashes):
            more = bytes(map(taken.__contains__, hashes))
            both = int.from_bytes(marks, "little") | int.from_bytes(more, "little")
            marks = both.to_bytes(len(hashes), "little")
    return marks


def _taken(ledger: Ledger, others: Sequence[int]) -> Iterator[set[int]]:
    """The hashes of the other batches' targets, as many at once as fit."""
    taken: set[int] = set()
    for number in others:
        for targets in ledger.acted_targets(number):
            taken.update(map(hash, targets))
            if len(taken) >= _AT_ONCE:
                yield taken
                taken = set()
    if taken:
        yield taken


def _at(items: Iterator[NewItem], marks: bytes) -> Iterator[NewItem]:
    """The first marked items."""
    place, before = marks.find(1), -1
    for _ in range(_COMPARED):
        if place < 0:
            return
        yield from islice(items, place - before - 1, place - before)
        place, before = marks.find(1, place + 1), place


def _proven(ledger: Ledger, others: Sequence[int], suspects: Sequence[NewItem]) -> list[Overlap]:
    """Those of the suspects whose target another batch really acts on, each with the newest."""
    targets = [item.target or item.id for item in suspects]
    acting: dict[str, Acting] = {}
    for number in others:  # newest first
        for other in ledger.acting_on(number, targets):
            acting.setdefault(other.target, other)
    return [
        Overlap(item.id, item.line, acting[target])
        for item, target in zip(suspects, targets, strict=True)
        if target in acting
    ]
