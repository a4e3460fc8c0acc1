"""A folder with a batch against the provider that runs inside this process, and the command line called in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from payonce.cli.main import invoke
from payonce.providers.simulator import open_world, parse

BATCH = """
[batch]
id = "refunds"
operation = "refund"
input = "refunds.csv"

[item]
id = "request"
target = "charge"
amount = "amount"
currency = {{value = "USD"}}

[limits]
concurrency = 4
{limits}

[provider]
kind = "simulator"
state = "provider.jsonl"
timeout = "1s"
max_execution = "100ms"
{provider}
"""


@dataclass
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """One object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Desk:
    """A working directory and the command line in it. Nothing of the environment reaches it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *args: str) -> Said:
        """Runs a command in this process."""
        self._capsys.readouterr()
        code = invoke(list(args))
        out, err = self._capsys.readouterr()
        return Said(code, out, err)

    def write(self, *, items: int = 5, limits: str = "", provider: str = "") -> None:
        """The batch file and an input of so many refunds of 10.00."""
        (self.folder / "batch.toml").write_text(BATCH.format(limits=limits, provider=provider))
        self.rows([f"R{n},ch_{n},10.00" for n in range(1, items + 1)])

    def rows(self, rows: list[str]) -> None:
        """The input's rows under its header."""
        (self.folder / "refunds.csv").write_text("\n".join(["request,charge,amount", *rows]) + "\n")

    def effects(self) -> int:
        """How many executions are in the provider's own books."""
        return len(open_world(parse({"state": str(self.folder / "provider.jsonl")})).effects)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    """A fresh folder; marks and spools of ledgers stay inside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("PAYONCE_LEDGER", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Desk(tmp_path, capsys)
