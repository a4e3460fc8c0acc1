"""Ledgers of the tests keep their marks in the test's own folder, never in the home of whoever runs them."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of a ledger that does not exist yet."""
    return f"sqlite:{tmp_path / 'payonce.db'}"
