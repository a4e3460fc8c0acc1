"""What a PostgreSQL ledger costs over a network: round trips, counted by a relay in front of the server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import payonce
from tests.pgproxy import relayed
from tests.postgres import Server, empty_ledger

ITEMS, IN_FLIGHT, FIRST = 2500, 64, 300


def test_a_run_needs_a_tenth_of_a_round_trip_an_item(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 64 in flight and 20 ms a call, everything included that a run asks of its ledger once it is under way."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    calls = 0
    with relayed(postgres) as proxy:

        @payonce.operation(key=True, retention="24h")
        async def pay(call: payonce.Call) -> payonce.Executed:
            nonlocal calls
            calls += 1
            if calls == FIRST:
                proxy.round_trips = 0
            await asyncio.sleep(0.02)
            return payonce.Executed(f"re_{call.item.id}", call.item.money)

        items = [(f"r{k}", payonce.Money("10.00", "USD")) for k in range(ITEMS)]
        url = proxy.url(empty_ledger(postgres))
        done = payonce.run("round-trips", items, pay, ledger=url, kind="refund", concurrency=IN_FLIGHT)
        assert done.counts.committed == ITEMS
        assert 0 < proxy.round_trips <= (ITEMS - FIRST) / 10, proxy.round_trips / (ITEMS - FIRST)
