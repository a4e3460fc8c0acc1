"""The command line on a ledger in PostgreSQL: the same commands, documents and exit codes; no password anywhere."""

from __future__ import annotations

from typing import cast

import psycopg
import pytest

from payonce.trail.beside import Beside
from payonce.trail.share import Share
from tests.cli.conftest import Desk
from tests.postgres import Server, empty_ledger, new_schema

SECRET = "hunter2"


@pytest.fixture
def job(postgres: Server, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A batch whose file names the ledger, with the password from the environment."""
    url = postgres.url(empty_ledger(postgres)).replace("postgres@", "postgres:${LEDGER_PASSWORD}@")
    monkeypatch.setenv("LEDGER_PASSWORD", SECRET)
    desk.write()
    file = desk.folder / "batch.toml"
    file.write_text(file.read_text() + f'\n[ledger]\nurl = "{url}"\n')
    return desk


def test_a_batch_from_plan_to_proof(job: Desk) -> None:
    """Every command that looks, steers or proves works as on a file, and none shows the password."""
    said = [job("doctor", "batch.toml", "--json"), job("work", "batch.toml", "--json")]
    assert said[0].code == 0, said[0].out
    assert {c["name"]: c["ok"] for c in said[0].json["checks"]}["server"]
    assert (said[1].code, said[1].json["error"]["code"]) == (2, "unknown_batch")
    said += [job("plan", "batch.toml", "--json"), job("work", "batch.toml", "--json")]
    assert [s.code for s in said[2:]] == [0, 0], [s.out for s in said]
    total = said[2].json["items"]
    assert said[3].json["items"]["committed"] == total == said[3].json["items"]["total"]
    said += [
        job("run", "batch.toml", "--json", "--no-reconcile"),
        job("status", "batch.toml", "--json"),
        job("items", "batch.toml", "--json"),
        job("results", "batch.toml", "--out", "results.jsonl", "--json"),
        job("trail", "verify", "--json", "--ledger", _typed(job)),
        job("ledger", "accept", "--reason", "moved", "--json", "--ledger", _typed(job)),
        job("doctor", "batch.toml"),
    ]
    assert [s.code for s in said[4:]] == [0] * len(said[4:]), [(s.out, s.err) for s in said[4:]]
    assert len(said[6].lines) == total
    assert len((job.folder / "results.jsonl").read_text().splitlines()) == total
    first = said[6].lines[0]["item"]
    shown = job("show", "batch.toml", first, "--json")
    assert [e["type"] for e in shown.json["events"]][-2:] == ["intent", "commit"]
    for answer in (*said, shown):
        assert SECRET not in answer.out + answer.err
        assert "postgres@" not in answer.out + answer.err


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_batch_that_is_not_sealed_leaves_nothing_on_the_server(postgres: Server, desk: Desk, command: str) -> None:
    """Problems in the input: no schema is made for a ledger that nothing is in. A ledger that was there and is gone is
    noticed before anything is planned."""
    schema = new_schema()
    there = f"SELECT to_regnamespace('{schema}') IS NOT NULL"
    url = postgres.url(schema)
    desk.write()
    desk.rows(["R1,ch_1,10.00", "R2,ch_2,1.005"])
    said = desk(command, "batch.toml", "--ledger", url, "--json")
    assert said.code == 2 and "1.005" in said.out
    with psycopg.connect(postgres.dsn, autocommit=True) as database:
        assert database.execute(there).fetchone() == (False,)
        desk.rows(["R1,ch_1,10.00"])
        assert desk(command, "batch.toml", "--ledger", url, "--json").code == 0
        assert database.execute(there).fetchone() == (True,)
        database.execute(f"DROP SCHEMA {schema} CASCADE")
        lost = desk(command, "batch.toml", "--ledger", url, "--json")
        assert (lost.code, lost.json["error"]["code"]) == (3, "ledger_lost")
        assert database.execute(there).fetchone() == (False,)


def test_a_password_in_a_batch_file_is_refused(job: Desk) -> None:
    """With the line, without the password."""
    file = job.folder / "batch.toml"
    file.write_text(file.read_text().replace("${LEDGER_PASSWORD}", SECRET))
    said = job("plan", "batch.toml", "--json")
    assert said.code == 2 and said.json["error"]["problems"][0]["code"] == "literal_secret"
    assert SECRET not in said.out + said.err


def test_a_variable_that_is_not_set_is_named(job: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is opened."""
    monkeypatch.delenv("LEDGER_PASSWORD")
    said = job("status", "batch.toml", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "missing_variable")
    assert "LEDGER_PASSWORD" in said.json["error"]["message"]


def test_a_helping_process_has_no_address_in_its_arguments() -> None:
    """Everybody on a machine can list them."""
    share = cast(Share, None)
    started: list[list[str]] = []

    class Pipe:
        def write(self, data: bytes) -> None: ...

        def close(self) -> None: ...

    class Popen:
        def __init__(self, command: list[str], **_: object) -> None:
            started.append(command)
            self.stdin = Pipe()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("payonce.trail.beside.subprocess.Popen", Popen)
        patch.setattr("payonce.trail.beside.msgspec.msgpack.encode", lambda _: b"")
        Beside(f"postgresql://u:{SECRET}@host/db", share)
    assert started and not any(SECRET in word for word in started[0])


def _typed(job: Desk) -> str:
    """The address as a person types it, password and all."""
    line = next(text for text in (job.folder / "batch.toml").read_text().splitlines() if text.startswith("url"))
    return line.partition('"')[2].rstrip('"').replace("${LEDGER_PASSWORD}", SECRET)


def test_a_sqlite_batch_can_be_worked_on_too(desk: Desk) -> None:
    """`work` needs a sealed batch, whatever the store."""
    desk.write()
    assert desk("work", "batch.toml", "--json").code == 2
    assert desk("plan", "batch.toml", "--json").code == 0
    assert desk("work", "batch.toml", "--json").json["items"]["planned"] == 0
