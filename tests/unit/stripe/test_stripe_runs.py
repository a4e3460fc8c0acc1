"""Real runs of the Stripe adapter against the built-in provider, which speaks Stripe's form and misbehaves at will.

The provider's own books say what was executed; payonce's ledger is never asked about that.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crash.harness import PAYONCE, Provider, finish

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
KEY = "sk_test_marked_runs_key"
ITEMS = 60
CHARGES = {f"ch_{n}": {"amount": 100_000, "currency": "usd"} for n in range(ITEMS)}
FAULTS = {
    "reset_before": 0.03,
    "reset_after": 0.05,
    "close_after": 0.05,
    "cut_after": 0.03,
    "garbage": 0.03,
    "error_500_before": 0.03,
    "error_500_after": 0.03,
    "lock_timeout": 0.01,
    "rate_limited": 0.005,
    "odd_success": 0.03,
}


def write(folder: Path, url: str, *, operation: str = "refund", targets: list[str] | None = None) -> None:
    """A batch of ITEMS items."""
    rows = [f"r{n},{targets[n] if targets else f'ch_{n}'},{1 + n % 9}.{n % 100:02d},USD" for n in range(ITEMS)]
    (folder / "input.csv").write_text("\n".join(["id,target,amount,currency", *rows]) + "\n")
    (folder / "batch.toml").write_text(
        f'[batch]\nid = "stripe-runs"\noperation = "{operation}"\ninput = "input.csv"\n'
        '[item]\nid = "id"\ntarget = "target"\namount = "amount"\ncurrency = "currency"\n'
        f'[limits]\nconcurrency = 16\n[provider]\nkind = "stripe"\nbase_url = "{url}"\n'
        'timeout = "2s"\nmax_execution = "500ms"\n'
    )


def start(folder: Path) -> subprocess.Popen[str]:
    """Starts the command."""
    return subprocess.Popen(
        [*PAYONCE, "run", "batch.toml", "--yes", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"STRIPE_API_KEY": KEY, "NO_PROXY": "127.0.0.1"},
    )


def run(folder: Path) -> tuple[int, dict[str, Any], str]:
    """Runs it to its end."""
    process = start(folder)
    try:
        return finish(process, 200)
    finally:
        process.kill()


def kill_at(folder: Path, provider: Provider, calls: int) -> None:
    """Runs it and kills it after so many calls."""
    process = start(folder)
    until = time.monotonic() + 60
    while provider.stats()["calls"] < calls and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)


@pytest.mark.parametrize("keys", ["honoured", "ignored"])
def test_whatever_goes_wrong_every_refund_is_executed_once(tmp_path: Path, keys: str) -> None:
    """Lost answers, stored 500s, limits and a kill: the provider's books have each item exactly once."""
    provider = Provider.start(tmp_path, keys=keys, charges=CHARGES, probability=FAULTS, seed=7)
    try:
        write(tmp_path, provider.url)
        kill_at(tmp_path, provider, 40)
        code, last, err = run(tmp_path)
        assert (code, last["items"]["committed"]) == (0, ITEMS), (last, err)
        executed = provider.executed()
        assert len(executed) == ITEMS and set(executed.values()) == {1}
        for path in tmp_path.iterdir():
            assert KEY.encode() not in path.read_bytes(), path
    finally:
        provider.close()


def test_a_charge_that_someone_else_refunded_is_left_alone(tmp_path: Path) -> None:
    """Already refunded by others: not executed, not committed, and the batch goes on."""
    charges = CHARGES | {
        "ch_3": {"amount": 403, "currency": "usd"},
        "ch_5": {"amount": 605, "currency": "usd", "disputed": True},
    }
    provider = Provider.start(tmp_path, charges=charges)
    try:
        provider_refund(provider, "ch_3", 403)
        write(tmp_path, provider.url)
        code, last, err = run(tmp_path)
        assert code == 1, (last, err)
        assert last["items"]["committed"] == ITEMS - 2
        assert last["items"]["refused"] == 1
        assert last["items"]["skipped"] == 1
        shown = {item["item"]: item for item in items(tmp_path)}
        assert shown["r5"]["code"] == "charge_disputed" and "dispute" in shown["r5"]["message"]
        assert (shown["r3"]["state"], shown["r3"]["code"]) == ("skipped", "already_done_elsewhere")
        assert "r3" not in provider.executed()
    finally:
        provider.close()


def test_bad_targets_are_refused_in_words_before_any_call(tmp_path: Path) -> None:
    """Missing, in another currency, disputed, not enough left, partly refunded outside: the others go on."""
    charges = {name: charge for name, charge in CHARGES.items() if name != "ch_2"}
    charges |= {
        "ch_4": {"amount": 1000, "currency": "eur"},
        "ch_5": {"amount": 1000, "currency": "usd", "disputed": True},
        "ch_6": {"amount": 700, "currency": "usd"},
        "ch_8": {"amount": 5000, "currency": "usd"},
    }
    provider = Provider.start(tmp_path, charges=charges, auto_create_charges=False)
    try:
        provider_refund(provider, "ch_6", 100)
        provider_refund(provider, "ch_8", 100)
        write(tmp_path, provider.url)
        code, last, err = run(tmp_path)
        assert code == 1, (last, err)
        assert (last["items"]["committed"], last["items"]["refused"]) == (ITEMS - 5, 5)
        shown = {item["item"]: item for item in items(tmp_path)}
        for item, told, words in (
            ("r2", "no_such_target", "there is no ch_2 in this account and mode"),
            ("r4", "currency_mismatch", "the charge is in EUR, the item in USD"),
            ("r5", "charge_disputed", "the charge is disputed: its money goes back through the dispute"),
            ("r6", "over_refund", "6.00 USD of 7.00 USD is left, the item asks for 7.06 USD"),
            ("r8", "acted_outside", "1.00 USD of ch_8 was refunded or taken already"),
        ):
            assert (shown[item]["state"], shown[item]["code"]) == ("refused", told)
            assert words in shown[item]["message"]
            assert item not in provider.executed()
        retry = [*PAYONCE, "retry", "stripe-runs", "r8", "--reason", "the first one was another matter"]
        subprocess.run(retry, check=True, capture_output=True, cwd=tmp_path, timeout=60)
        assert run(tmp_path)[0] == 1
        assert provider.executed()["r8"] == 1
    finally:
        provider.close()


def test_the_mode_and_account_are_bound(tmp_path: Path) -> None:
    """Sealed in test mode, resumed with a live key: refused, and nothing is sent."""
    provider = Provider.start(tmp_path, charges=CHARGES)
    try:
        write(tmp_path, provider.url)
        assert run(tmp_path)[0] == 0
        calls = provider.stats()["calls"]
        (tmp_path / "batch.toml").write_text((tmp_path / "batch.toml").read_text().replace("stripe-runs", "second"))
        allowed = [*PAYONCE, "plan", "batch.toml", "--allow-overlap", "--reason", "the same charges, on purpose"]
        environ = os.environ | {"STRIPE_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
        subprocess.run(allowed, check=True, capture_output=True, cwd=tmp_path, env=environ, timeout=60)
        kill_at(tmp_path, provider, calls + 10)
        environ = os.environ | {"STRIPE_API_KEY": "sk_live_marked_runs_key", "NO_PROXY": "127.0.0.1"}
        before = provider.stats()["calls"]
        command = [*PAYONCE, "run", "batch.toml", "--yes", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=60)
        assert done.returncode == 2 and "other_mode" in done.stdout + done.stderr
        assert provider.stats()["calls"] == before
    finally:
        provider.close()


def test_a_refund_that_comes_back_is_recorded_and_never_sent_again(tmp_path: Path) -> None:
    """From a signed webhook file to the item's settlement, by command; the finished batch stays finished."""
    from tests.unit.settling.settlekit import STRIPE_SECRET, stripe_event, stripe_signed

    provider = Provider.start(tmp_path, charges=CHARGES)
    try:
        write(tmp_path, provider.url)
        assert run(tmp_path)[0] == 0
        item = next(one for one in items(tmp_path) if one["item"] == "r7")
        metadata = {"payonce_item": "r7", "payonce_batch": "stripe-runs"}
        about = {"id": item["reference"], "amount": round(float(item["billed"]) * 100), "metadata": metadata}
        told = [stripe_signed(stripe_event(word, event=f"evt_{word}", **about)) for word in ("failed", "succeeded")]
        (tmp_path / "hooks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
        command = [*PAYONCE, "settle", "stripe-runs", "--events", "hooks.jsonl", "--json"]
        environ = os.environ | {"STRIPE_WEBHOOK_SECRET": STRIPE_SECRET}
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=60)
        assert done.returncode == 1, done.stderr
        # The built-in provider had called it succeeded: the failure is a return, and the late success adds nothing.
        assert json.loads(done.stdout)["changed"] == {"returned": 1}
        assert next(one for one in items(tmp_path) if one["item"] == "r7")["settlement"] == "returned"
        calls = provider.stats()["calls"]
        assert run(tmp_path)[0] == 0
        assert provider.stats()["calls"] == calls
    finally:
        provider.close()


def provider_refund(provider: Provider, charge: str, minor: int) -> None:
    """A refund that somebody made by hand."""
    import urllib.request

    request = urllib.request.Request(
        f"{provider.url}/v1/refunds",
        f"charge={charge}&amount={minor}&currency=usd".encode(),
        {"Authorization": f"Bearer {KEY}", "Content-Type": "application/x-www-form-urlencoded"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200


def items(folder: Path) -> list[dict[str, Any]]:
    """The items, as `payonce items --json` lists them."""
    done = subprocess.run(
        [*PAYONCE, "items", "stripe-runs", "--json"], capture_output=True, text=True, cwd=folder, timeout=60
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
