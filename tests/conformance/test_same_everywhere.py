"""Random histories: every store shows what the reference in memory shows, and the trail explains all of it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payonce.testing.ledger_random import Step, histories, play
from payonce.testing.ledger_world import StoreFactory, World
from tests.conformance.explained import assert_explained
from tests.conformance.test_ledgers import MemoryFactory, SqliteFactory
from tests.postgres import PostgresFactory, Server

_SHM = Path("/dev/shm")


@settings(max_examples=60, deadline=None)
@given(history=histories, targets=st.booleans())
def test_sqlite_shows_what_memory_shows(history: list[Step], targets: bool) -> None:
    """Same commands, same answers, items, tallies, findings, outputs and event bytes; every column follows from the
    events."""
    _same(history, targets)


@pytest.mark.lengthy
@settings(max_examples=600, deadline=None)
@given(history=histories, targets=st.booleans())
def test_sqlite_shows_what_memory_shows_at_length(history: list[Step], targets: bool) -> None:
    """As above, many more histories."""
    _same(history, targets)


@settings(max_examples=15, deadline=None)
@given(history=histories, targets=st.booleans())
def test_postgres_shows_what_memory_shows(postgres: Server, history: list[Step], targets: bool) -> None:
    """As above; fewer, since each of them opens connections."""
    with TemporaryDirectory() as folder:
        _compare(PostgresFactory(postgres, Path(folder)), history, targets)


def _same(history: list[Step], targets: bool) -> None:
    # In memory where possible: thousands of fsyncs prove nothing here.
    with TemporaryDirectory(dir=_SHM if _SHM.is_dir() else None) as folder:
        _compare(SqliteFactory(Path(folder)), history, targets)


def _compare(factory: StoreFactory, history: list[Step], targets: bool) -> None:
    memory, other = World(MemoryFactory()), World(factory)
    try:
        assert play(other, history, targets=targets) == play(memory, history, targets=targets)
        assert_explained(memory)
        assert_explained(other)
    finally:
        memory.close()
        other.close()
