"""At full size these tests may be given a time: those that would begin after it are left out, and said so. Then they run
in turns, one of each file, so that a short time covers all of their subjects."""

from __future__ import annotations

import os
import time
from collections import Counter

import pytest

_SECONDS = os.environ.get("PAYONCE_TORTURE_SECONDS")
_UNTIL = time.monotonic() + float(_SECONDS) if _SECONDS else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In turns, where the time is short."""
    if _UNTIL is None:
        return
    before: Counter[object] = Counter()
    turn: dict[pytest.Item, int] = {}
    for item in items:
        turn[item] = before[item.path]
        before[item.path] += 1
    items.sort(key=turn.__getitem__)


@pytest.fixture(autouse=True)
def in_time() -> None:
    """Skips what would begin too late."""
    if _UNTIL is not None and time.monotonic() > _UNTIL:
        pytest.skip(f"the {_SECONDS} seconds were over; give it more: make torture SECONDS=...")
