"""The database server itself crashes in the middle of a run with two workers, or is held up by another program: nothing is
lost, and the same commands finish."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.crash.harness import Job, Provider, finish
from tests.crash.test_ledger_faults import until_calls
from tests.postgres import Server, new_schema

ITEMS = 240


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of this test's own: the run's must not be crashed under others."""
    found = Server.start(run=tmp_path)
    yield found
    found.stop()


def test_the_server_crashes_and_comes_back(server: Server, tmp_path: Path) -> None:
    """Each acknowledged write is there again: every item is executed once, and the trail is whole."""
    provider = Provider.start(tmp_path, latency="20ms")
    try:
        job = Job(tmp_path, provider.url, ITEMS, concurrency=4, ledger=server.url(new_schema()))
        job.env = {"XDG_STATE_HOME": str(tmp_path / "state"), "PAYONCE_LEDGER": job.ledger}
        assert job.command("plan", str(job.write()))[0] == 0
        workers = [job.start(), job.start()]
        until_calls(provider, 80)
        server.crash()
        for worker in workers:
            code, last, err = finish(worker, 60)
            assert (code, last.get("lost", [])) == (3, []), (last, err)
        assert provider.stats()["calls"] < ITEMS
        server.restart()
        code, last, err = job.run()
        executed = provider.executed()
        assert code == 0, (last, err)
        assert sum(executed.values()) == len(executed) == ITEMS
        assert last["items"]["committed"] == ITEMS
        code, found, err = job.command("trail", "verify")
        assert code == 0, (found, err)
        assert not list(tmp_path.rglob("*.spool"))
    finally:
        provider.close()


@pytest.mark.skipif(not os.environ.get("PAYONCE_TORTURE"), reason="holds a lock for 40 s: PAYONCE_TORTURE=1")
def test_a_lock_that_another_program_holds(server: Server, tmp_path: Path) -> None:
    """Longer than the workers' leases: nothing is sent meanwhile, and when it lets go both go on by themselves."""
    provider = Provider.start(tmp_path, latency="20ms", keys="ignored")
    try:
        schema = new_schema()
        job = Job(tmp_path, provider.url, ITEMS, keys=False, concurrency=4, ledger=server.url(schema))
        job.env, job.limits = {"XDG_STATE_HOME": str(tmp_path / "state")}, {"lease": "10s", "rate": "80/s"}
        assert job.command("plan", str(job.write()))[0] == 0
        workers = [job.start(), job.start()]
        until_calls(provider, 40)
        with psycopg.connect(server.dsn) as other:
            other.execute(f"SELECT size FROM {schema}.head FOR UPDATE".encode())
            time.sleep(1)  # what had its intent already is on its way
            calls = provider.stats()["calls"]
            time.sleep(40)
            assert provider.stats()["calls"] == calls < ITEMS
        for worker in workers:
            code, last, err = finish(worker, 120)
            assert (code, last["items"]["committed"]) == (0, ITEMS), err
        executed = provider.executed()
        assert (len(executed), set(executed.values())) == (ITEMS, {1})
    finally:
        provider.close()
