"""Checkpoints of runs that are started from Python: made as ``payonce run`` makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

import payonce
from payonce import Money
from payonce.service import trailing, trailing_keys
from payonce.trail import checkpoint
from payonce.trail.keys import load_public


@payonce.operation(key=True)
def pay(call: payonce.Call) -> payonce.Executed:
    """Executes."""
    return payonce.Executed(f"re-{call.item.id}", billed=call.money)


def run(url: str, batch: str = "api", **more: object) -> payonce.Result:
    """A batch of three items."""
    items = [payonce.Item(f"{batch}-{n}", Money(f"{n}.00", "USD")) for n in (1, 2, 3)]
    return payonce.run(batch, items, pay, ledger=url, **more)


def test_a_run_ends_with_a_checkpoint_where_the_ledger_has_a_key(tmp_path: Path) -> None:
    """It is in the result and beside the ledger, and the trail agrees with it. Without a key there is none."""
    url = f"sqlite:{tmp_path / 'payonce.db'}"
    assert run(url).checkpoint is None
    made = trailing_keys.make(url, out=None, rotate=False, reason="test")
    result = run(url, "next")
    kept = (tmp_path / "payonce.db.checkpoints").read_text()
    assert result.checkpoint is not None
    assert result.checkpoint.strip() in kept
    publics = load_public(made["public_file"])
    signed = checkpoint.load(tmp_path / "payonce.db.checkpoints", publics).last
    found = trailing.verify_trail(url, trailing.Against())
    assert (found.ok, found.checkpoints, found.events) == (True, 1, signed.checkpoint.size)


def test_the_trail_settings_are_those_of_a_batch_file(tmp_path: Path) -> None:
    """Key, places and payloads; what cannot be published is told and stops nothing; a wrong setting sends nothing."""
    url = f"sqlite:{tmp_path / 'payonce.db'}"
    run(f"sqlite:{tmp_path / 'other.db'}")
    made = trailing_keys.make(f"sqlite:{tmp_path / 'other.db'}", out=tmp_path / "k", rotate=False, reason="test")
    settings = {"key": made["file"], "publish": [str(tmp_path / "kept.txt"), str(tmp_path / "no" / "such" / "folder")]}
    result = run(url, trail=settings)
    assert result.counts.committed == 3
    assert "payonce/" in (tmp_path / "kept.txt").read_text()
    assert len(result.warnings) == 1
    with pytest.raises(payonce.PayonceError, match="publsh"):
        run(f"sqlite:{tmp_path / 'third.db'}", trail={"publsh": "-"})
    assert not (tmp_path / "third.db").exists()
