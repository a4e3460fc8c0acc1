"""Broken variants: faults, spools and endings."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from payonce.core.states import ItemEvent
from payonce.engine import beside, runner, session, takein
from payonce.ledger import store_items
from payonce.testing.simulator.ledger import SimLedger
from tests.simulation.mutants.registry import Patch, both, mutant, replaced

# faults and endings


@mutant("the spool is not taken in")
def spool_ignored() -> Patch:
    async def nothing(session: Any, spool: Any) -> int:
        return 0

    return both(patch.object(runner, "take_in_spool", nothing), patch.object(beside, "take_in_spool", nothing))


@mutant("a spooled answer is taken for whatever call came last")
def spool_of_any_attempt() -> Patch:
    return patch.object(takein, "_FACTS", frozenset(ItemEvent))


@mutant("an answer that the ledger would not take is dropped")
def nothing_spooled() -> Patch:
    return patch.object(session.Session, "to_spool", lambda self, item, change: None)


@mutant("a ledger fault does not end the run")
def fault_goes_on() -> Patch:
    def wrap(original: Any) -> Any:
        def make_durable(self: Any) -> None:
            original(self)
            self.failed = None

        return make_durable

    return both(
        patch.object(session.Session, "halt", lambda self, fault: None), replaced(SimLedger, "_make_durable", wrap)
    )


@mutant("pending items of dead workers are never taken over")
def nobody_takes_over() -> Patch:
    def nothing(self: Any, worker: Any, *, limit: int) -> Any:
        return ()

    return patch.object(store_items.ItemVerbs, "take_over", nothing)


@mutant("an item that comes back is forgotten")
def item_lost() -> Patch:
    return patch.object(store_items.ItemVerbs, "planned", _first_sweep_only(store_items.ItemVerbs.planned))


def _first_sweep_only(original: Any) -> Any:
    def planned(self: Any, worker: Any, *, limit: int) -> Any:
        return tuple(item for item in original(self, worker, limit=limit) if not item.attempts)

    return planned
