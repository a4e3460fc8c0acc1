"""The JSON Lines ledger against the one suite. That it belongs to one process is declared, and tested as a promise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payonce.core.errors import LedgerError
from payonce.core.model import Actor
from payonce.ledger.connect import connect
from payonce.ledger.jsonl import JsonlLedger
from payonce.ledger.protocol import Ledger
from payonce.testing.ledger_random import Step, histories, play
from payonce.testing.ledger_world import StoreFactory, World
from tests.conformance.explained import ExplainedSuite, assert_explained
from tests.conformance.test_ledgers import MemoryFactory

_SHM = Path("/dev/shm")


class JsonlFactory:
    """One process: while it is open, opening it again is the same ledger; closed, the file is read anew."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "payonce.jsonl"
        self.ledger: JsonlLedger | None = None

    def open(self, *, clock: Callable[[], int], is_alive: Callable[[Actor], bool | None]) -> Ledger:
        if self.ledger is None or self.ledger.closed:
            marks = self.path.parent / "marks"
            opened = connect(f"jsonl:{self.path}", create=True, clock=clock, is_alive=is_alive, marks=marks)
            assert isinstance(opened, JsonlLedger)
            self.ledger = opened
        return self.ledger


class TestJsonl(ExplainedSuite):
    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        return JsonlFactory(tmp_path)


@settings(max_examples=60, deadline=None)
@given(history=histories, targets=st.booleans())
def test_jsonl_shows_what_memory_shows(history: list[Step], targets: bool) -> None:
    """Same commands, same answers, items, tallies, findings, outputs and event bytes; what the file says once more at
    each reopening is what was in memory."""
    with TemporaryDirectory(dir=_SHM if _SHM.is_dir() else None) as folder:
        memory, jsonl = World(MemoryFactory()), World(JsonlFactory(Path(folder)))
        try:
            shown = play(jsonl, history, targets=targets)
            assert shown == play(memory, history, targets=targets)
            assert_explained(jsonl)
        finally:
            memory.close()
            jsonl.close()


def test_it_declares_that_it_belongs_to_one_process(tmp_path: Path) -> None:
    """``info`` says so; a second opening for writing is refused within its time, a reading one is not."""
    url = f"jsonl:{tmp_path / 'payonce.jsonl'}"
    ledger = connect(url, create=True, marks=tmp_path / "marks")
    assert (ledger.info().one_process, ledger.info().one_host, ledger.info().durable) == (True, True, True)
    with pytest.raises(LedgerError) as error:
        JsonlLedger(tmp_path / "payonce.jsonl", lock_timeout_s=0.1)
    assert error.value.code == "ledger_locked"
    reading = connect(url, create=False, read_only=True)
    assert reading.info().root == ledger.info().root
    reading.close()
    ledger.close()
    JsonlLedger(tmp_path / "payonce.jsonl", lock_timeout_s=0.1).close()
