"""The conformance suite of ledgers: every store passes it unchanged. What a store cannot do is declared, not skipped.

Use: subclass ``LedgerSuite`` in a test module and give it a fixture ``factory`` that returns a ``StoreFactory``::

    class TestMyStore(LedgerSuite):
        @pytest.fixture
        def factory(self, tmp_path):
            return MyFactory(tmp_path)
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payonce.testing.ledger_batches import BatchCases
from payonce.testing.ledger_calls import CallCases
from payonce.testing.ledger_edges import EdgeCases
from payonce.testing.ledger_fences import FenceCases
from payonce.testing.ledger_money import MoneyCases
from payonce.testing.ledger_overlaps import OverlapCases
from payonce.testing.ledger_reading import ReadingCases
from payonce.testing.ledger_time import TimeCases
from payonce.testing.ledger_world import StoreFactory, World


class LedgerSuite(EdgeCases, FenceCases, MoneyCases, CallCases, BatchCases, TimeCases, ReadingCases, OverlapCases):
    """Every promise of ``ledger.protocol``, on one store."""

    @pytest.fixture
    def factory(self) -> StoreFactory:
        """The store under test."""
        raise NotImplementedError("a store's test class gives the suite its factory")

    @pytest.fixture
    def world(self, factory: StoreFactory) -> Iterator[World]:
        """One ledger, its clock and its processes."""
        world = World(factory)
        yield world
        world.close()
