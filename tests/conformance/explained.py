"""What every history of every store must come to: a trail that verifies, with every column explained by its events."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payonce.ledger.connect import connect_trail
from payonce.ledger.memory import MemoryLedger
from payonce.ledger.memory_rows import MemoryRows
from payonce.ledger.rows_trail import MemoryTrail
from payonce.ledger.trail_port import TrailReads
from payonce.testing.ledger_suite import LedgerSuite
from payonce.testing.ledger_world import StoreFactory, World
from payonce.trail.verify import verify


def trail_of(world: World) -> TrailReads:
    """What a check reads of the ledger of a world."""
    ledger = world.ledger
    if isinstance(ledger, MemoryLedger):
        rows = ledger._tables
        assert isinstance(rows, MemoryRows)
        return MemoryTrail(rows)
    url = getattr(world.factory, "url", None) or ledger.info().url
    return connect_trail(url)


def assert_explained(world: World) -> None:
    """The check of the trail finds nothing, and nothing that it could not check."""
    reads = trail_of(world)
    try:
        found = verify(reads)
    finally:
        reads.close()
    assert not found.faults and not found.limits, [*found.faults, *found.limits]


class ExplainedSuite(LedgerSuite):
    """The suite of ledgers; whatever a test has done, the trail explains it."""

    @pytest.fixture
    def world(self, factory: StoreFactory) -> Iterator[World]:
        """One ledger, its clock and its processes."""
        world = World(factory)
        yield world
        assert_explained(world)
        world.close()
