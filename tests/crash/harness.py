"""Really running, really killed: a provider process, batch files, child runs, and an auditor that never reads a ledger.

Loopback only; every wait is bounded; only processes started here are ended, by their id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAYONCE = [sys.executable, "-m", "payonce"]


@dataclass
class Provider:
    """The simulator as a process of its own: its true effects survive whatever happens to the runs."""

    process: subprocess.Popen[str]
    url: str

    @classmethod
    def start(cls, folder: Path, **settings: Any) -> Provider:
        """Starts it with behaviours as in a simulator's TOML file."""
        config = folder / "provider.toml"
        config.write_text("".join(f"{name} = {toml(value)}\n" for name, value in settings.items()))
        process = subprocess.Popen(
            [*PAYONCE, "simulate", str(config), "--port", "0", "--json", "--parent-pid", str(os.getpid())],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        return cls(process, json.loads(process.stdout.readline())["url"])

    def get(self, path: str) -> Any:
        """A JSON answer of the admin side."""
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def post(self, path: str, data: dict[str, Any], **headers: str) -> Any:
        """Changes behaviours while it runs."""
        body = json.dumps(data).encode()
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json", **headers})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def stats(self) -> dict[str, Any]:
        """Calls, look-ups, rates."""
        return dict(self.get("/_sim/stats"))

    def executed(self) -> Counter[str]:
        """How often each item was truly executed, by its own reference."""
        return Counter(e["ref"] for e in self.get("/_sim/effects"))

    def close(self) -> None:
        """Ends the process."""
        self.process.terminate()
        self.process.wait(10)


def toml(value: Any) -> str:
    """A Python value in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    return json.dumps(value)


@dataclass
class Job:
    """A batch file in a folder, and child processes that run it."""

    folder: Path
    url: str
    items: int = 100
    keys: bool = True
    lookup: bool = True
    retention: str = "24h"
    lag: str = "0s"
    max_execution: str = "1s"
    timeout: str = "5s"
    amounts: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    limits: dict[str, Any] = field(default_factory=dict)
    concurrency: int = 64
    name: str = "torture"
    ledger: str = "sqlite:payonce.db"
    prefix: str = "r"
    id_header: str = ""
    env: dict[str, str] = field(default_factory=dict)

    def write(self) -> Path:
        """Writes input and batch file; returns the latter."""
        lines = ["id,charge,amount,currency"]
        for k in range(self.items):
            target = self.targets[k] if self.targets else f"ch_{self.prefix.removeprefix('r')}{k}"
            amount = self.amounts[k] if self.amounts else f"{1 + k % 50}.{k % 100:02d}"
            lines.append(f"{self.prefix}{k},{target},{amount},USD")
        (self.folder / "input.csv").write_text("\n".join(lines) + "\n")
        path = self.folder / "batch.toml"
        path.write_text(self._text())
        return path

    def _text(self) -> str:
        limits = {"concurrency": self.concurrency, **self.limits}
        key = f'[provider.key]\nheader = "Idempotency-Key"\nretention = "{self.retention}"\nstores_errors = true\n'
        key += 'replay_header = "Idempotent-Replayed"\n'
        lookup = (
            '[provider.lookup]\npath = "/v1/refunds?charge={charge}"\nfound = "data"\nreference = "id"\n'
            f'amount = "amount"\nown_reference = "metadata.ref"\nlag = "{self.lag}"\n'
        )
        return (
            f'[batch]\nid = "{self.name}"\noperation = "refund"\ninput = "input.csv"\n'
            '[item]\nid = "id"\ntarget = "charge"\namount = "amount"\ncurrency = "currency"\n'
            "[limits]\n"
            + "".join(f"{k} = {toml(v)}\n" for k, v in limits.items())
            + f'[ledger]\nurl = "{self.ledger}"\n'
            f'[provider]\nkind = "http"\nbase_url = "{self.url}"\naccount = "acct_sim"\n'
            f'headers = {{Authorization = "Bearer ${{SIM_TOKEN}}"}}\ntimeout = "{self.timeout}"\n'
            f'max_execution = "{self.max_execution}"\n'
            '[provider.call]\nmethod = "POST"\npath = "/v1/refunds"\n'
            'json = {charge = "{charge}", amount = "{amount_minor}", currency = "{currency_lower}", '
            'metadata = {ref = "{id}"}}\nreference = "id"\nbilled = "amount"\nbilled_currency = "currency"\n'
            + (f'id_header = "{self.id_header}"\n' if self.id_header else "")
            + (key if self.keys else "")
            + (lookup if self.lookup else "")
            + "[[provider.answers]]\nstatus = 400\nwhen = \"error.code == 'charge_already_refunded'\"\n"
            'outcome = "already_done"\n'
            '[[provider.answers]]\nstatus = 402\noutcome = "refused"\ncode = "error.code"\n'
        )

    def start_command(self, *args: str) -> list[str]:
        """The command line of `payonce run` on it."""
        return [*PAYONCE, "run", str(self.folder / "batch.toml"), "--json", *args]

    def environment(self, **env: str) -> dict[str, str]:
        """The environment of its processes."""
        return os.environ | {"SIM_TOKEN": "sim_secret_token"} | self.env | env

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """Starts `payonce run` on it."""
        return subprocess.Popen(
            self.start_command(*args),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment(**env),
        )

    def run(self, *args: str, timeout: float = 300, **env: str) -> tuple[int, dict[str, Any], str]:
        """Runs it to its end: exit code, the last document, what it said on standard error."""
        process = self.start(*args, **env)
        return finish(process, timeout)

    def command(self, *args: str) -> tuple[int, dict[str, Any], str]:
        """Any other command, with --json."""
        process = subprocess.Popen(
            [*PAYONCE, *args, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment(),
        )
        return finish(process, 120)


def finish(process: subprocess.Popen[str], timeout: float = 300) -> tuple[int, dict[str, Any], str]:
    """Waits for a run."""
    out, err = process.communicate(timeout=timeout)
    last = out.strip().splitlines()[-1] if out.strip() else "{}"
    return process.returncode, json.loads(last), err


def kill_at(process: subprocess.Popen[str], provider: Provider, calls: int, *, within: float = 120) -> bool:
    """SIGKILL once the provider has seen so many calls; False if the run ended before."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        if process.poll() is not None:
            return False
        if provider.stats()["calls"] >= calls:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=30)
            return True
        time.sleep(0.01)
    raise AssertionError("the run did not get that far")
