"""Broken variants: the rules of the ledger."""

from __future__ import annotations

import heapq
from typing import Any
from unittest.mock import patch

from payonce.core.states import TRANSITIONS, BatchState, ItemEvent, ItemState
from payonce.engine import beside
from payonce.engine.schedule import Schedule, Task
from payonce.ledger import costs, desk, rules, store_items
from tests.simulation.mutants.registry import Patch, both, mutant, replaced

# the ledger


@mutant("a change is taken from any worker")
def fence_not_compared() -> Patch:
    def wrap(original: Any) -> Any:
        def write(self: Any, worker: Any, commands: Any) -> Any:
            found = self._tables.worker(worker.fence)
            left, found.left_us = found.left_us, None
            try:
                return original(self, worker, commands)
            finally:
                found.left_us = left

        return write

    return both(
        patch.object(rules.Author, "owns", lambda self, held: True), replaced(store_items.ItemVerbs, "write", wrap)
    )


@mutant("live workers are taken over too")
def living_are_taken_over() -> Patch:
    return patch.object(store_items.ItemVerbs, "_is_living", lambda self, worker, *, now_us: False)


@mutant("the budget is not looked at in the transaction of the intent")
def budget_outside_the_transaction() -> Patch:
    return patch.object(costs, "over_budget", lambda *_: False)


@mutant("unknown items do not count against the budget")
def unknown_is_free() -> Patch:
    return patch.object(desk, "_COUNTS", (ItemState.COMMITTED, ItemState.PENDING))


@mutant("several items of one target may be under way")
def targets_not_serial() -> Patch:
    def enqueue(self: Any, item: Any) -> None:
        self._owner[item.target] = item.n
        self._ready.append(item)

    def hand_out(self: Any, now_us: int) -> Any:
        while self._later and self._later[0][0] <= now_us:
            self._enqueue(heapq.heappop(self._later)[2])
        if self._due and self._due[0][0] <= now_us:
            _, n, target = heapq.heappop(self._due)
            self.active += 1
            return Task(n, target, None)
        if not self._ready:
            return None
        item = self._ready.popleft()
        self.active += 1
        return Task(item.n, item.target, item)

    def open_up(self: Any, row: Any, opened: Any) -> None:
        self.opens[row.n] = self._opened[row.n] = opened

    def take(original: Any) -> Any:
        def taking(self: Any, rows: Any) -> None:
            original(self, rows)
            self.holders = {}

        return taking

    return both(
        patch.object(Schedule, "_enqueue", enqueue),
        patch.object(desk.Desk, "open_up", open_up),
        replaced(desk.Desk, "take", take),
        patch.object(Schedule, "take", hand_out),
    )


@mutant("a process starts the batch only where it is alone, and nobody starts it later")
def never_started() -> Patch:
    return patch.object(beside, "_WAITS_FOR_A_START", frozenset())


@mutant("a pause takes no effect on a running process")
def paused_batch_sends() -> Patch:
    def wrap(original: Any) -> Any:
        def intend(desk_: Any, row: Any, command: Any, author: Any) -> Any:
            state, desk_.batch.state = desk_.batch.state, BatchState.RUNNING
            landed = original(desk_, row, command, author)
            desk_.batch.state = state
            return landed

        return intend

    deaf = patch.object(beside.Beside, "paused", property(lambda self: False, lambda self, value: None))
    return both(replaced(rules, "_intend", wrap), deaf)


@mutant("an operator's answer is taken for an item that is committed")
def resolve_over_committed() -> Patch:
    more = {(ItemState.COMMITTED, ItemEvent.NOT_EXECUTED): ItemState.PLANNED,
            (ItemState.COMMITTED, ItemEvent.COMMIT): ItemState.COMMITTED}  # fmt: skip
    return patch.dict(TRANSITIONS, more)


@mutant("a tally is not moved when an item is refused")
def tallies_wrong() -> Patch:
    def wrap(original: Any) -> Any:
        def shift(self: Any, row: Any, before: Any, **more: Any) -> None:
            after = row.state
            original(self, row, before, **more)
            if after is ItemState.REFUSED:
                self.tallies[before[0], before[1]][0] += 1

        return shift

    return replaced(desk.Desk, "shift", wrap)
