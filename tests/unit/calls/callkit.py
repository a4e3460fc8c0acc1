"""A simulated pay-per-call provider served from a thread, a folder with a batch of calls, and the command line in it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from payonce.cli.main import invoke
from payonce.providers.simulator import parse
from payonce.providers.simulator.server import Server, start

PROVIDER = """
kind = "http"
base_url = "{url}"
account = "acct_sim"
headers = {{Authorization = "Bearer ${{SIM_TOKEN}}"}}
timeout = "{timeout}"
max_execution = "200ms"
{more}
[provider.call]
path = "{path}"
json = {body}
reference = "id"
{call}
"""
BILLED = 'billed = "cost"\nbilled_unit = "major"\nbilled_currency = "currency"\n'
LOOKUP = """
[provider.lookup]
path = "/v1/usage?user={id}"
found = "data"
reference = "id"
amount = "cost"
amount_unit = "major"
currency = "currency"
time = "created"
own_reference = "user"
answer_path = "/v1/calls/{reference}"
"""


class Server_:
    """The server's loop in a thread; the world's books are read only while nobody calls."""

    def __init__(self, **behaviours: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server: Server = self._do(start(parse(behaviours)))

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    @property
    def url(self) -> str:
        return self.server.url

    def executed(self) -> Counter[str]:
        """How often each item was truly executed, by its own reference."""
        return Counter(str(effect.ref) for effect in self.server.world.effects)

    def spent(self) -> int:
        """What was truly billed, in millionths."""
        return sum(effect.amount_minor for effect in self.server.world.effects)

    def configure(self, **behaviours: Any) -> None:
        """Other behaviours from now on."""

        async def change() -> None:
            self.server.world.configure(parse(behaviours, base=self.server.world.config))

        self._do(change())

    def get(self, path: str) -> bytes:
        """One read, as a client with a token makes it."""
        import urllib.request

        request = urllib.request.Request(self.url + path, headers={"Authorization": "Bearer test-token"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bytes(answer.read())

    def close(self) -> None:
        self._do(self.server.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
        self.loop.close()


@dataclass
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Calls:
    """One batch of calls in a folder."""

    folder: Path
    provider: Server_
    capsys: pytest.CaptureFixture[str]
    items: int = 5
    limits: str = ""
    more: str = ""
    call: str = BILLED
    body: str = '{model = "{model}", user = "{id}", input = "{prompt}"}'
    tables: str = ""
    path: str = "/v1/calls"
    timeout: str = "2s"
    columns: dict[str, Any] = field(default_factory=dict)

    def write(self) -> None:
        """The batch file and its input of JSON lines."""
        (self.folder / "batch.toml").write_text(
            '[batch]\nid = "calls"\noperation = "call"\ninput = "prompts.jsonl"\n[item]\nid = "record"\n'
            f"[limits]\nconcurrency = 4\n{self.limits}\n[provider]"
            + PROVIDER.format(
                url=self.provider.url,
                more=self.more,
                call=self.call,
                body=self.body,
                path=self.path,
                timeout=self.timeout,
            )
            + self.tables
        )
        rows = [
            {"record": f"r{n}", "model": f"m{n % 2}", "prompt": f"question {n} " * (n % 4 + 1), **self.columns}
            for n in range(1, self.items + 1)
        ]
        (self.folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def __call__(self, *args: str) -> Said:
        """Runs a command in this process."""
        self.capsys.readouterr()
        code = invoke(list(args))
        out, err = self.capsys.readouterr()
        return Said(code, out, err)

    def run(self) -> Said:
        """Writes the files and runs the batch."""
        self.write()
        return self("run", "batch.toml", "--json")

    def results(self, *args: str) -> list[Any]:
        """The records."""
        said = self("results", "batch.toml", "--out", "-", *args)
        assert said.code == 0, said.err
        return said.lines


@contextmanager
def serving(**behaviours: Any) -> Iterator[Server_]:
    """A provider without idempotency keys, for as long as the test needs it."""
    server = Server_(keys="ignored", **behaviours)
    try:
        yield server
    finally:
        server.close()
