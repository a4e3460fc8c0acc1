"""The provider's own books: true effects, keys, charges and work that is still to come.

Everything changes through one door, `Store.apply(Transaction)`. A transaction is also what the journal writes, so a
store that is read back is built by the very code that built it first.
"""

from __future__ import annotations

import bisect
import hashlib
import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from payonce.providers.simulator.behaviours import Charge
from payonce.providers.simulator.faults import Kind
from payonce.providers.simulator.requests import Request

CAME_BACK = frozenset({"failed", "returned", "canceled"})


@dataclass(frozen=True, slots=True)
class Effect:
    """One true execution. `executed_at` is in microseconds since the epoch, `amount_minor` in minor units.

    `key` is the idempotency key as the provider saw it, `ref` the caller's own reference, `digest` the SHA-256 of the
    request, `detail` what the answer shows besides.
    """

    id: str
    operation: str
    ref: str | None
    key: str | None
    target: str
    amount_minor: int
    currency: str
    executed_at: int
    digest: str
    account: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """What is remembered under a key from its first call on; `status` 0 while nothing is answered yet."""

    account: str
    key: str
    path: str
    digest: str
    first_at: int
    ready_at: int
    status: int = 0
    body: str = ""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """An execution that is to come at `due_us`; `keeps_answer` where the key's answer was given already."""

    number: int
    due_us: int
    arrived_us: int
    ticket: int
    kind: Kind
    request: Request
    keeps_answer: bool


@dataclass(frozen=True, slots=True)
class Transaction:
    """One indivisible change: it happened wholly, or (a torn line) not at all."""

    effect: Effect | None = None
    key: KeyEntry | None = None
    scheduled: Scheduled | None = None
    finished: int | None = None
    charge: tuple[str, Charge] | None = None
    status: tuple[str, str, int] | None = None
    counted: str | None = None


class Store:
    """The books in memory. Single-threaded; reads are cheap, and effects are only ever appended."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.keys: dict[tuple[str, str], KeyEntry] = {}
        self.charges: dict[str, Charge] = {}
        self.statuses: dict[str, tuple[str, int]] = {}
        self.moved: dict[tuple[str, str], int] = {}
        self.by_intent: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self.counted = 0
        self.scheduled_so_far = 0
        self._position: dict[str, int] = {}
        self._index: dict[tuple[str, ...], list[int]] = {}
        self._pending: list[tuple[int, int, Scheduled]] = []
        self._finished: set[int] = set()

    def apply(self, change: Transaction) -> None:
        """Makes the change part of the books."""
        if change.effect is not None:
            self._add(change.effect)
        if change.key is not None:
            self.keys[change.key.account, change.key.key] = change.key
        if change.scheduled is not None:
            work = change.scheduled
            self.scheduled_so_far = max(self.scheduled_so_far, work.number + 1)
            heapq.heappush(self._pending, (work.due_us, work.number, work))
        if change.finished is not None:
            self._finished.add(change.finished)
        if change.charge is not None:
            self._set_charge(*change.charge)
        if change.status is not None:
            self._set_status(*change.status)
        if change.counted is not None:
            self.counts[change.counted] = self.counts.get(change.counted, 0) + 1
            self.counted += 1

    def _add(self, effect: Effect) -> None:
        position = len(self.effects)
        self.effects.append(effect)
        self._position[effect.id] = position
        account, operation = effect.account, effect.operation
        index = self._index
        index.setdefault((account, operation), []).append(position)
        index.setdefault((account, operation, "target", effect.target), []).append(position)
        if effect.ref is not None:
            index.setdefault((account, operation, "ref", effect.ref), []).append(position)
        if operation == "refund":
            place = (account, effect.target)
            self.moved[place] = self.moved.get(place, 0) + effect.amount_minor

    def _set_charge(self, charge_id: str, charge: Charge) -> None:
        self.charges[charge_id] = charge
        if charge.payment_intent is not None:
            self.by_intent[charge.payment_intent] = charge_id

    def _set_status(self, effect_id: str, status: str, at: int) -> None:
        effect = self.effects[self._position[effect_id]]
        was_back = self.came_back(effect)
        self.statuses[effect_id] = (status, at)
        if effect.operation == "refund" and self.came_back(effect) and not was_back:
            self.moved[effect.account, effect.target] -= effect.amount_minor

    def came_back(self, effect: Effect) -> bool:
        """Whether the effect's money came back after it was executed."""
        found = self.statuses.get(effect.id)
        return found is not None and found[0] in CAME_BACK

    def next_due_us(self) -> int | None:
        """When the next scheduled execution is due, or None."""
        while self._pending and self._pending[0][1] in self._finished:
            heapq.heappop(self._pending)
        return self._pending[0][0] if self._pending else None

    def take_due(self, now: int) -> Scheduled | None:
        """The earliest scheduled execution that is due, taken out; None where there is none."""
        due = self.next_due_us()
        if due is None or due > now:
            return None
        return heapq.heappop(self._pending)[2]

    def find(self, effect_id: str, *, account: str) -> Effect | None:
        """The effect of that id, if it is the account's."""
        position = self._position.get(effect_id)
        if position is None:
            return None
        effect = self.effects[position]
        return effect if effect.account == account else None

    def newest_first(self, *place: str, before: str | None = None) -> Iterator[Effect]:
        """Effects of an index place, the newest first, beginning after the effect `before`.

        Places: (account, operation), and these with ("target", x) or ("ref", x).
        """
        positions = self._index.get(place, [])
        limit = len(self.effects) if before is None else self._position.get(before, -1)
        for number in range(bisect.bisect_left(positions, limit) - 1, -1, -1):
            yield self.effects[positions[number]]

    def unused_id(self, prefix: str, *, seed: int) -> str:
        """The id of the next effect: the same for the same seed and the same history."""
        text = f"{seed}|{len(self.effects)}".encode()
        return f"{prefix}_{hashlib.blake2b(text, digest_size=12).hexdigest()}"
