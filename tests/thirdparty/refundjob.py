"""300 refunds of charges in a third-party server: the batch, its runs, and an auditor that reads that server only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stripe

from tests.thirdparty.relay import Relay

PAYONCE = [sys.executable, "-m", "payonce"]
KEY = "sk_test_thirdparty_marked"
FULL, SPLIT = 100, 100  # charges refunded whole; charges refunded in two parts: 300 refunds


def client(url: str) -> stripe.StripeClient:
    """The official SDK, as the auditor uses it."""
    stripe.enable_telemetry = False
    return stripe.StripeClient(KEY, base_addresses={"api": url}, max_network_retries=0)


@dataclass
class RefundJob:
    """A batch file in a folder. ``wanted`` is what must have been refunded: item to minor units."""

    folder: Path
    url: str
    wanted: dict[str, int] = field(default_factory=dict)
    batch: str = "nov-refunds"

    def write(self, targets: list[str]) -> None:
        """The input and the batch file. Each target has 50.00 USD to refund."""
        lines = ["request,charge,amount,currency"]
        for n, target in enumerate(targets):
            for part, minor in enumerate([5000] if n < FULL else [1500 + n, 900]):
                name = f"R{n:04d}-{part}"
                self.wanted[name] = minor
                lines.append(f"{name},{target},{minor // 100}.{minor % 100:02d},USD")
        (self.folder / "refunds.csv").write_text("\n".join(lines) + "\n")
        (self.folder / "batch.toml").write_text(
            f'[batch]\nid = "{self.batch}"\noperation = "refund"\ninput = "refunds.csv"\n'
            '[item]\nid = "request"\ntarget = "charge"\namount = "amount"\ncurrency = "currency"\n'
            "[limits]\nconcurrency = 16\n"
            f'[provider]\nkind = "stripe"\nbase_url = "{self.url}"\naccount = "acct_third"\n'
            'timeout = "5s"\nmax_execution = "1s"\n'
        )

    def start(self) -> subprocess.Popen[str]:
        """Starts `payonce run`."""
        environ = os.environ | {"STRIPE_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
        return subprocess.Popen(
            [*PAYONCE, "run", "batch.toml", "--yes", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=environ,
        )

    def kill_after(self, relay: Relay, posts: int) -> None:
        """Runs it and kills it once the server has seen so many calls in all."""
        process = self.start()
        until = time.monotonic() + 120
        while relay.posts < posts and time.monotonic() < until:
            if process.poll() is not None:
                raise AssertionError(f"ended before: {process.communicate()}")
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)

    def command(self, *args: str) -> tuple[int, dict[str, Any]]:
        """Any other command, with --json."""
        environ = os.environ | {"STRIPE_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(
            [*PAYONCE, *args, "--json"], capture_output=True, text=True, cwd=self.folder, env=environ, timeout=120
        )
        assert done.stdout.strip(), done.stderr
        return done.returncode, json.loads(done.stdout.strip().splitlines()[-1])

    def finish(self) -> tuple[int, dict[str, Any]]:
        """Runs it to its end: exit code and last document."""
        process = self.start()
        out, err = process.communicate(timeout=400)
        assert out.strip(), err
        assert KEY not in out + err, "the API key is on the screen"
        return process.returncode, json.loads(out.strip().splitlines()[-1])


@dataclass(frozen=True)
class Books:
    """What the third-party server says was refunded: item to its refunds' amounts."""

    amounts: dict[str, list[int]]
    keys: Counter[str]

    @classmethod
    def read(cls, url: str) -> Books:
        """All refunds, over all pages, with the official SDK."""
        amounts: dict[str, list[int]] = {}
        for refund in client(url).v1.refunds.list({"limit": 100}).auto_paging_iter():
            item = (refund.metadata or {})["payonce_item"]
            amounts.setdefault(item, []).append(refund.amount)
        return cls(amounts, Counter({item: len(found) for item, found in amounts.items()}))

    @property
    def doubled(self) -> list[str]:
        """Items refunded more than once."""
        return [item for item, count in self.keys.items() if count > 1]
