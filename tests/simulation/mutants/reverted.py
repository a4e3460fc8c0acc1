"""Faults that payonce had and a world showed, put back: each fix is proven by the world that fails without it."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from payonce.engine import attempt, beside, pacing, pool, runner
from payonce.engine.schedule import Schedule
from payonce.ledger import effects, store, store_batches
from tests.simulation.mutants.registry import MUTANTS, Patch, mutant, replaced

_BEFORE = frozenset(MUTANTS)


@mutant("a paused batch with work that is due keeps its process spinning")
def paused_batch_spins() -> Patch:
    def wrap(original: Any) -> Any:
        async def _sleep(self: Any, at_most_s: float) -> Any:
            paused, self.beside.paused = self.beside.paused, False
            try:
                return await original(self, at_most_s)
            finally:
                self.beside.paused = paused

        return _sleep

    return replaced(runner.Runner, "_sleep", wrap)


@mutant("items that wait for busy targets are tried fifty times a second")
def busy_targets_at_once() -> Patch:
    def wrap(original: Any) -> Any:
        def drop(self: Any, n: int, target: str) -> None:
            self.moved += 1
            original(self, n, target)

        return drop

    return replaced(Schedule, "drop", wrap)


@mutant("a call that the gate refused is tried again at once")
def refused_by_the_gate_at_once() -> Patch:
    def wrap(original: Any) -> Any:
        async def _record(self: Any, item: Any, verdict: Any, data: Any, **more: Any) -> Any:
            if getattr(verdict, "code", "") == "not_sent":
                more["wait_us"] = 0
            await original(self, item, verdict, data, **more)

        return _record

    return replaced(attempt.Caller, "_record", wrap)


@mutant("what a dead worker spooled is not looked at when its items are taken over in a run")
def spool_at_take_over_ignored() -> Patch:
    async def nothing(session: Any, spool: Any) -> int:
        return 0

    return patch.object(beside, "take_in_spool", nothing)


@mutant("a worker that asks for work first after its lease was lost ends instead of joining again")
def lost_lease_ends_the_run() -> Patch:
    return patch.object(runner, "LeaseLost", type("Never", (Exception,), {}))


@mutant("what waits for held targets takes turns for ever where calls are paced, and the run never ends")
def held_targets_take_turns() -> Patch:
    return patch.object(runner.Runner, "_may_sweep_again", lambda self: True)


@mutant("a pace that was learned never grows while another process runs")
def pace_held_down() -> Patch:
    def wrap(original: Any) -> Any:
        def follow(self: Any, worker: Any) -> None:
            self._told_per_ks = None
            original(self, worker)

        return follow

    return replaced(pacing.Pacer, "follow", wrap)


@mutant("an answer is noted as seen by a clock that somebody may have set back")
def seen_by_the_wall_clock() -> Patch:
    def wrap(original: Any) -> Any:
        def keep(desk: Any, row: Any, held: Any, change: Any) -> None:
            original(desk, row, held, change)
            if change.seen:
                held.seen_us = desk.log.now_us

        return keep

    return replaced(effects, "_keep_open", wrap)


@mutant("a lease ends when somebody sets the clock forward")
def lease_by_the_wall_clock() -> Patch:
    return patch.object(
        store.StoreBase, "_is_lease_over", lambda self, worker, *, now_us: worker.lease_until_us <= now_us
    )


@mutant("a worker waits for its start times by a clock that was set forward")
def slots_in_the_ledgers_time() -> Patch:
    def wrap(original: Any) -> Any:
        def slots(self: Any, worker: Any, *, count: int) -> Any:
            with patch.object(store.StoreBase, "_time_of", lambda self, worker: None):
                return original(self, worker, count=count)

        return slots

    return replaced(store_batches.BatchVerbs, "slots", wrap)


@mutant("an item that is planned again while a spool is taken in is resolved beside its own call")
def resolved_beside_its_call() -> Patch:
    def wrap(original: Any) -> Any:
        def resolve_at(self: Any, n: int, target: str, at_us: int) -> None:
            sent, self._sent = self._sent, {}
            try:
                original(self, n, target, at_us)
            finally:
                self._sent = sent

        return resolve_at

    return replaced(Schedule, "resolve_at", wrap)


@mutant("a worker's time runs from when it heard of its joining, before which it may have been suspended")
def time_from_hearing() -> Patch:
    def of(cls: Any, clock: Any, worker: Any, *, asked_us: int) -> Any:
        return cls.at(clock, worker.now_us)

    return patch.object(pacing.LedgerTime, "of", classmethod(of))


@mutant("after the grace period an answer that is there already is not read")
def unread_at_the_end() -> Patch:
    return patch.object(pool.asyncio, "sleep", _no_last_look(pool.asyncio.sleep))


def _no_last_look(sleep: Any) -> Any:
    async def sleeping(delay: float, *more: Any) -> Any:
        if delay != pool._LAST_LOOK_S:
            return await sleep(delay, *more)
        return None

    return sleeping


# Fresh worlds meet these about once in two minutes.
RARE = ("resolved_beside_its_call", "time_from_hearing", "unread_at_the_end")
NAMES = tuple(name for name in MUTANTS if name not in _BEFORE)
