"""The connection to a PostgreSQL ledger is lost at each moment of a transaction, and the server itself crashes: no further
call, exit code 3, nothing lost; the same command finishes when it is back, and nothing was executed twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import payonce
from payonce.core.errors import LedgerError
from payonce.core.model import Actor
from payonce.core.states import BatchState
from payonce.ledger.actors import this_actor
from tests.pgproxy import Cut, Proxy, check, relayed
from tests.postgres import Server, empty_ledger, new_schema

ITEMS, IN_FLIGHT = 60, 8
TEN = payonce.Money("10.00", "USD")
# The moments of a writing transaction: its start (with the lock), what it reads, its end with everything it writes.
MOMENTS = [
    ("BEGIN", Cut.BEFORE),
    ("BEGIN", Cut.UNANSWERED),
    ("SELECT place", Cut.HALF),
    ("SELECT place", Cut.UNANSWERED),
    *(("COMMIT", cut) for cut in Cut),
]


class Far:
    """The far side: remembers keys for ever, executes each once, and counts."""

    def __init__(self) -> None:
        self.executed: Counter[str] = Counter()
        self.calls = 0
        self.at: dict[int, threading.Event] = {}
        self._by_key: dict[str, str] = {}

    async def refund(self, call: payonce.Call) -> payonce.Executed:
        """One call; the answer takes a while."""
        self.calls += 1
        if self.calls in self.at:
            self.at[self.calls].set()
        if call.key not in self._by_key:
            self._by_key[call.key or ""] = f"re_{call.item.id}"
            self.executed[call.item.id] += 1
        await asyncio.sleep(0.005)
        return payonce.Executed(self._by_key[call.key or ""], call.item.money)


def run(url: str, far: Far) -> payonce.Result:
    """The same command each time."""

    @payonce.operation(key=True, retention="24h")
    async def operation(call: payonce.Call) -> payonce.Executed:
        return await far.refund(call)

    items = [(f"r{k}", TEN) for k in range(ITEMS)]
    return payonce.run("lost", items, operation, ledger=url, kind="refund", concurrency=IN_FLIGHT)


def gone() -> Actor:
    """A process of this host that has ended."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    return replace(this_actor(), pid=ended.pid, pid_start="0")


@pytest.fixture
def proxy(postgres: Server) -> Iterator[Proxy]:
    """In front of the run's server."""
    with relayed(postgres) as found:
        yield found


@pytest.mark.parametrize(("start", "cut"), MOMENTS, ids=lambda part: getattr(part, "name", part))
def test_a_connection_lost_in_a_transaction(
    proxy: Proxy, start: str, cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody can know whether the commit was made. What was sent before is known or resolved afterwards."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    url, far = proxy.url(empty_ledger(proxy.server)), Far()
    seen: list[int] = []
    far.at[10] = threading.Event()

    def lose() -> None:
        assert far.at[10].wait(30)
        proxy.loses(start, cut)
        assert proxy.struck.wait(30)
        seen.append(far.calls)

    # Both runs are in this process; the first one is taken for one that has ended, as it would have.
    monkeypatch.setattr("payonce.service.running.this_actor", gone)
    breaking = threading.Thread(target=lose, daemon=True)
    breaking.start()
    broken = run(url, far)
    breaking.join(60)
    assert (broken.exit_code, broken.state) == (3, BatchState.HALTED)
    assert broken.code == "ledger_unreachable"
    assert seen and far.calls <= seen[0] + IN_FLIGHT < ITEMS, "no further call"
    proxy.mend()
    monkeypatch.setattr("payonce.service.running.this_actor", this_actor)
    done = run(url, far)
    assert (done.exit_code, done.counts.committed) == (0, ITEMS)
    assert set(far.executed.values()) == {1} and len(far.executed) == ITEMS
    assert check(url) == ()
    assert not list(tmp_path.rglob("*.spool")), "every answer was taken in"


@pytest.mark.skipif(not os.environ.get("PAYONCE_TORTURE"), reason="half a minute: PAYONCE_TORTURE=1")
@pytest.mark.parametrize("cut", Cut, ids=lambda cut: cut.name)
def test_a_connection_lost_in_each_transaction_of_a_run(
    proxy: Proxy, cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From making the ledger and sealing the batch to its finish and the worker's leave, one after the other."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("payonce.service.running.this_actor", gone)
    halted, nth = 0, 0
    while True:
        nth += 1
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / str(nth)))
        url, far = proxy.url(new_schema()), Far()
        proxy.loses("COMMIT", cut, nth=nth)
        try:
            code = run(url, far).exit_code
        except LedgerError as fault:  # before the first call
            code = fault.exit_code
            assert far.calls == 0
        struck = proxy.struck.is_set()
        proxy.passes()
        proxy.mend()
        if not struck:
            assert code == 0
            break
        # A loss at the very end, when everything is known, changes nothing.
        assert code == 3 or (code == 0 and far.calls == ITEMS)
        halted += code == 3
        calls, sent = far.calls, len(far.executed)
        done = run(url, far)
        assert (done.exit_code, done.counts.committed) == (0, ITEMS)
        assert (len(far.executed), set(far.executed.values())) == (ITEMS, {1})
        assert far.calls <= calls + (ITEMS - sent) + IN_FLIGHT
        assert check(url) == ()
        assert not list(tmp_path.rglob("*.spool"))
    assert halted > 10
