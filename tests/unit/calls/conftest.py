"""A fresh folder for every batch; marks and spools of ledgers stay inside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.calls.callkit import Calls, serving


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Calls]:
    """A batch of calls against a provider of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SIM_TOKEN", "test-token")
    monkeypatch.delenv("PAYONCE_LEDGER", raising=False)
    with serving() as provider:
        yield Calls(tmp_path, provider, capsys)
