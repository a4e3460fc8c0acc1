"""A real run of invoices in four steps, killed between them, with answers lost: each is created and paid once."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.stripe.fakeinvoices import serving
from tests.unit.stripe.test_stripe_runs import KEY, run, start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ITEMS = 24


def test_four_steps_killed_and_resumed(tmp_path: Path) -> None:
    """No second draft, no second line, no second payment, over the right amounts."""
    rows = [f"inv-{n},cus_{n % 5},{n + 1}.50,EUR" for n in range(ITEMS)]
    (tmp_path / "input.csv").write_text("\n".join(["id,customer,amount,currency", *rows]) + "\n")
    with serving(lose_every=11) as server:
        (tmp_path / "batch.toml").write_text(
            '[batch]\nid = "stripe-runs"\noperation = "invoice"\ninput = "input.csv"\n'
            '[item]\nid = "id"\ntarget = "customer"\namount = "amount"\ncurrency = "currency"\n'
            f'[limits]\nconcurrency = 8\n[provider]\nkind = "stripe"\nbase_url = "{server.url}"\n'
            'account = "acct_1"\ntimeout = "2s"\nmax_execution = "300ms"\n'
        )
        for mark in (10, 40):
            process = start(tmp_path)
            until = time.monotonic() + 60
            while server.calls < mark and process.poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=30)
        code, last, err = run(tmp_path)
        assert (code, last["items"]["committed"]) == (0, ITEMS), (last, err)
        assert len(server.invoices) == len(server.lines) == ITEMS
        assert set(Counter(server.payments).values()) == {1} and len(server.payments) == ITEMS
        totals = {one["metadata"]["payonce_item"]: one["total"] for one in server.invoices.values()}
        assert totals == {f"inv-{n}": (n + 1) * 100 + 50 for n in range(ITEMS)}
        assert {one["status"] for one in server.invoices.values()} == {"paid"}
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir())
