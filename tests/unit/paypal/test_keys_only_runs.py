"""Real runs of the adapters without a look-up, killed, with answers lost: the key alone keeps each item at one."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.crash.harness import PAYONCE, finish
from tests.unit.paypal.fakepaypal import AdyenRefunds, Books, PayPalPayouts, PayPalRefunds, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ITEMS = 60
SECRETS = {
    "PAYPAL_CLIENT_ID": "client_marked_run_id",
    "PAYPAL_CLIENT_SECRET": "client_marked_run_secret",
    "ADYEN_API_KEY": "adyen_marked_run_key",
}
MARKS = [*SECRETS.values(), "A21_marked_run_token"]
PAYPAL = 'kind = "paypal"\nenvironment = "sandbox"\naccount = "M1"\n'
ADYEN = 'kind = "adyen"\nenvironment = "test"\nmerchant_account = "Shop"\n'


@pytest.mark.parametrize(
    ("books", "operation", "target", "provider"),
    [
        (PayPalRefunds(), "refund", "CAPTURE{n:05d}", PAYPAL),
        (PayPalPayouts(), "payout", "payee{n}@example.com", PAYPAL),
        (AdyenRefunds(), "refund", "PAYMENT{n:09d}", ADYEN),
    ],
    ids=["paypal-refunds", "paypal-payouts", "adyen-refunds"],
)
def test_killed_with_answers_lost_each_item_once(
    tmp_path: Path, books: Books, operation: str, target: str, provider: str
) -> None:
    """And over its amount; no credential in any file or on the screen."""
    rows = [f"i{n},{target.format(n=n)},{n + 1}.25,EUR" for n in range(ITEMS)]
    (tmp_path / "input.csv").write_text("\n".join(["id,target,amount,currency", *rows]) + "\n")
    with serving(books, lose_every=7) as server:
        (tmp_path / "batch.toml").write_text(
            f'[batch]\nid = "keys"\noperation = "{operation}"\ninput = "input.csv"\n'
            '[item]\nid = "id"\ntarget = "target"\namount = "amount"\ncurrency = "currency"\n'
            f'[limits]\nconcurrency = 8\n[provider]\n{provider}base_url = "{server.url}"\ntimeout = "2s"\n'
        )
        command = [*PAYONCE, "run", "batch.toml", "--yes", "--json"]
        environ = os.environ | SECRETS | {"NO_PROXY": "127.0.0.1"}
        for mark in (15, 35, None):
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environ
            )
            if mark is None:
                code, last, err = finish(process, 120)
                break
            until = time.monotonic() + 60
            while server.calls < mark and process.poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=30)
        assert (code, last["items"]["committed"]) == (0, ITEMS), (last, err)
        assert sorted(books.executed) == sorted(f"i{n}" for n in range(ITEMS))
        assert all(len(found) == 1 for found in books.executed.values())
    for path in tmp_path.iterdir():
        assert not any(mark.encode() in path.read_bytes() for mark in MARKS), path
    assert not any(mark in err for mark in MARKS)
