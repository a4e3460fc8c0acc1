"""Every store against the one suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from payonce.core.model import Actor
from payonce.ledger.connect import connect
from payonce.ledger.memory import MemoryLedger
from payonce.ledger.protocol import Ledger
from payonce.testing.ledger_world import StoreFactory
from tests.conformance.explained import ExplainedSuite
from tests.postgres import PostgresFactory, Server


class MemoryFactory:
    """One process: opening it again is the same ledger."""

    def __init__(self) -> None:
        self.ledger: MemoryLedger | None = None

    def open(self, *, clock: Callable[[], int], is_alive: Callable[[Actor], bool | None]) -> Ledger:
        self.ledger = self.ledger or MemoryLedger(clock=clock, is_alive=is_alive)
        return self.ledger


class SqliteFactory:
    """A file, opened as often as wanted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, *, clock: Callable[[], int], is_alive: Callable[[Actor], bool | None]) -> Ledger:
        url = f"sqlite:{self.folder / 'payonce.db'}"
        return connect(url, create=True, clock=clock, is_alive=is_alive, marks=self.folder / "marks")


class TestMemory(ExplainedSuite):
    @pytest.fixture
    def factory(self) -> StoreFactory:
        return MemoryFactory()


class TestSqlite(ExplainedSuite):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return SqliteFactory(tmp_path)


class TestPostgres(ExplainedSuite):
    @pytest.fixture
    def factory(self, postgres: Server, tmp_path: Path) -> StoreFactory:
        return PostgresFactory(postgres, tmp_path / "marks")
