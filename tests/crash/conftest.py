"""At full size these tests may be given a time: those that would begin after it are left out, and said so."""

from __future__ import annotations

import os
import time

import pytest

_SECONDS = os.environ.get("PAYONCE_TORTURE_SECONDS")
_UNTIL = time.monotonic() + float(_SECONDS) if _SECONDS else None


@pytest.fixture(autouse=True)
def in_time() -> None:
    """Skips what would begin too late."""
    if _UNTIL is not None and time.monotonic() > _UNTIL:
        pytest.skip(f"the {_SECONDS} seconds were over; give it more: make torture SECONDS=...")
