"""Every transport on every event loop."""

from __future__ import annotations

import pytest

from tests.unit.providers.transportkit import Kit


@pytest.fixture(params=["direct-asyncio", "direct-uvloop", "aiohttp-asyncio", "aiohttp-uvloop"])
def kit(request: pytest.FixtureRequest) -> Kit:
    """Every transport on every loop."""
    kind, _, loop = request.param.partition("-")
    return Kit(kind, loop)
