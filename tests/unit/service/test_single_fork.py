"""Guarded calls in forked children, as prefork task queues make them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import payonce


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_guards_with_a_ledger_of_its_own(tmp_path: Path) -> None:
    """A child forked after a guarded call makes its own; afterwards the parent goes on, and each item was done once."""
    ledger = f"sqlite:{tmp_path}/payonce.db"

    def guarded(name: str) -> bool:
        with payonce.once(ledger=ledger, batch="b", item=name, money=payonce.Money("1.00", "USD")) as call:
            if not call.done:
                call.executed(f"re_{name}")
        return call.done

    assert not guarded("first")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if guarded("first") and not guarded("second") else 2
        finally:
            sys.stdout.flush()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert guarded("second")
    assert not guarded("third")
