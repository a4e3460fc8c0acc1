"""The simulated provider as a process of its own, and its books as an auditor sees them.

Speaks to the provider's side door only, which is not part of the API that payonce calls.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from payonce.core.errors import UsageError

_LOOK_EVERY_S = 0.004
_LONGEST_WAIT_S = 120.0


class SimulatedProvider:
    """A running ``payonce simulate``. Its books are kept in the folder it was started with."""

    def __init__(self, url: str) -> None:
        self.url = url
        address = urlsplit(url)
        self._connection = HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=10)

    @classmethod
    @contextmanager
    def started(cls, folder: Path, *, latency: str, command: Sequence[str]) -> Iterator[SimulatedProvider]:
        """Starts the process and ends it again, whatever happens. Raises UsageError where it does not come up."""
        settings = ["--port", "0", "--json", "--quiet", "--parent-pid", str(os.getpid()), "--set", f"latency={latency}"]
        state = ["--set", f"state={folder / 'provider.jsonl'}"]
        with (folder / "provider.log").open("wb") as log:
            child = subprocess.Popen([*command, *settings, *state], stdout=subprocess.PIPE, stderr=log)  # noqa: S603
        try:
            assert child.stdout is not None
            first = child.stdout.readline()
            if not first:
                raise UsageError(
                    "the built-in provider did not start",
                    code="simulator_failed",
                    hint=f"see {folder / 'provider.log'}",
                )
            provider = cls(orjson.loads(first)["url"])
            yield provider
            provider.close()
        finally:
            child.terminate()
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def close(self) -> None:
        """Closes the auditor's connection."""
        self._connection.close()

    def executed(self) -> int:
        """How many executions are in the provider's books."""
        return int(self._get("/_sim/stats")["executed"])

    def effects(self) -> list[dict[str, Any]]:
        """The provider's books: every execution with its own id, the caller's reference, amount and currency."""
        return list(self._get("/_sim/effects"))

    def wait_until_executed(self, count: int, *, or_until: Callable[[], bool]) -> None:
        """Returns once so many items were executed, ``or_until`` holds, or two minutes have passed."""
        end = time.monotonic() + _LONGEST_WAIT_S
        while time.monotonic() < end and not or_until():
            if self.executed() >= count:
                return
            time.sleep(_LOOK_EVERY_S)

    def _get(self, path: str) -> Any:
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        return orjson.loads(answer.read())
