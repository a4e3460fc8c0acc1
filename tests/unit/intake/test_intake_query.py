"""Queries as input: read-only, in order, typed; credentials never show."""

from __future__ import annotations

import getpass
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from payonce.intake import InputSettings, Intake, ItemColumns, Query, read
from tests.unit.intake.intakekit import amounts, codes, only_problem

COLUMNS = ItemColumns(id="ref", amount="amount", currency="currency")
ALL = "SELECT * FROM refunds ORDER BY ref"


def run(tmp_path: Path, url: str, query: str = ALL) -> Intake:
    """Reads a query's result."""
    intake = read(InputSettings(source=Query(url, query), item=COLUMNS), base_dir=tmp_path, operation="refund")
    counts = intake.counts
    assert counts.rows == counts.items + counts.skipped + counts.refused
    return intake


def sqlite_file(tmp_path: Path) -> None:
    """A database with a sound row, one with a float, and one without an id."""
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("CREATE TABLE refunds (ref, amount, currency, memo)")
        rows = [("001", "12.50", "USD", "x"), ("002", 9.5, "USD", "y"), (3, 7, "EUR", None), (None, 1, "USD", "")]
        database.executemany("INSERT INTO refunds VALUES (?, ?, ?, ?)", rows)
        database.execute("INSERT INTO refunds VALUES ('004', 1, 'USD', CAST(x'ff' AS TEXT))")


@pytest.mark.parametrize("url", ["sqlite:a.db", "sqlite:///ROOT/a.db", "sqlite:${HERE}/a.db"])
def test_sqlite(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers and texts are taken, floats refused; rows are numbered from 1."""
    monkeypatch.setenv("HERE", str(tmp_path))
    sqlite_file(tmp_path)
    with run(tmp_path, url.replace("ROOT", str(tmp_path).lstrip("/"))) as intake:
        assert amounts(intake) == {"3": "7.00 EUR", "001": "12.50 USD"}
        assert codes(intake) == {1: "missing_id", 4: "float_money", 5: "bad_character"}
        assert next(intake.items()).fields == {"memo": None}


def test_a_query_cannot_write(tmp_path: Path) -> None:
    """The input is opened read-only; what gives no rows is no query."""
    sqlite_file(tmp_path)
    with run(tmp_path, "sqlite:a.db", "DELETE FROM refunds") as intake:
        assert only_problem(intake).code == "unreadable"
    with sqlite3.connect(tmp_path / "a.db") as database:
        assert database.execute("SELECT count(*) FROM refunds").fetchone() == (5,)


def test_duckdb(tmp_path: Path) -> None:
    """Typed columns; a float column is refused whole; files outside the database are out of reach."""
    with duckdb.connect(str(tmp_path / "a.duckdb")) as database:
        database.execute("CREATE TABLE refunds AS SELECT 'R1' AS ref, 12.50::DECIMAL(9,2) AS amount, 'USD' AS currency")
        database.execute("CREATE TABLE floats AS SELECT 'R1' AS ref, 12.5::DOUBLE AS amount, 'USD' AS currency")
    with run(tmp_path, "duckdb:a.duckdb") as intake:
        assert amounts(intake) == {"R1": "12.50 USD"}
    with run(tmp_path, "duckdb:a.duckdb", "SELECT * FROM floats") as intake:
        assert only_problem(intake).code == "float_money"
        assert [note.code for note in intake.notes] == ["unordered_query"]
    (tmp_path / "b.csv").write_text("ref,amount,currency\nA,1,USD\n")
    with run(tmp_path, "duckdb:a.duckdb", f"SELECT * FROM read_csv('{tmp_path / 'b.csv'}')") as intake:
        assert only_problem(intake).code == "unreadable"


@pytest.mark.parametrize("tail", ["; SELECT ref, 99 AS amount, currency FROM refunds ORDER BY 1", "; SELECT 1"])
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_two_statements_are_no_query(tmp_path: Path, kind: str, tail: str) -> None:
    """Nobody says which of two results is meant; a semicolon at the end harms nobody."""
    table = "CREATE TABLE refunds AS SELECT 'R1' AS ref, '12.50' AS amount, 'USD' AS currency"
    with sqlite3.connect(tmp_path / "a.sqlite") as first:
        first.execute(table)
    with duckdb.connect(str(tmp_path / "a.duckdb")) as second:
        second.execute(table)
    with run(tmp_path, f"{kind}:a.{kind}", ALL + tail) as intake:
        assert only_problem(intake).code == "unreadable"
        assert "statement" in only_problem(intake).message
    with run(tmp_path, f"{kind}:a.{kind}", f"{ALL};") as intake:
        assert amounts(intake) == {"R1": "12.50 USD"}


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("sqlite:.", "not_a_file"),
        ("sqlite:gone.db", "input_missing"),
        ("oracle://x/y", "unknown_format"),
        ("sqlite:${GONE_VARIABLE}", "missing_variable"),
        ("duckdb:broken.db", "unreadable"),
        ("sqlite:broken.db", "unreadable"),
    ],
)
def test_addresses_that_cannot_be_read(tmp_path: Path, url: str, code: str) -> None:
    """Each says what is wrong with it."""
    (tmp_path / "broken.db").write_bytes(b"no database" * 100)
    with run(tmp_path, url) as intake:
        assert only_problem(intake).code == code


def test_credentials_never_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the input's name nor in what the database says."""
    monkeypatch.setenv("DB_PASSWORD", "hunter2-secret")
    for password in ("hunter2-secret", "${DB_PASSWORD}"):
        with run(tmp_path, f"postgresql://someone:{password}@127.0.0.1:1/db?x=hunter2-secret") as intake:
            assert "hunter2" not in repr(list(intake.problems))
            assert "hunter2" not in intake.file
            assert not intake.ok
    for url in ("postgresql://u:p/hunter2@host/db", "postgresql://u:p?hunter2@host/db", "sqlite:x?hunter2"):
        assert "hunter2" not in Query(url, "").shown


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of our own on a socket, where one is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [
        Path(place) for place in [shutil.which("initdb")] if place
    ]
    if not found:
        pytest.skip("no PostgreSQL on this machine")
    # The server refuses to run as root, and its user must be able to reach its folder.
    root = os.geteuid() == 0
    become = ["runuser", "-u", "postgres", "--"] if root else []
    user = "postgres" if root else getpass.getuser()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if root:
        shutil.chown(folder, "postgres")
    tools = found[-1].parent
    data = folder / "data"
    subprocess.run(
        [*become, tools / "initdb", "-D", data, "-U", user, "-A", "trust", "-N"], check=True, capture_output=True
    )
    options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    control = [*become, tools / "pg_ctl", "-D", data]
    subprocess.run([*control, "-w", "-l", folder / "log", "-o", options, "start"], check=True, capture_output=True)
    try:
        yield f"postgresql://{user}@/postgres?host={folder}"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, capture_output=True)
        shutil.rmtree(folder)


def test_postgresql(tmp_path: Path, postgres: str) -> None:
    """Numeric, text and JSON come exactly; floats are refused whole; nothing can be written."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as database:
        database.execute(
            "CREATE TABLE refunds (ref text, amount numeric(12,2), currency text, meta jsonb, at timestamptz)"
        )
        database.execute(
            "INSERT INTO refunds SELECT 'R' || to_char(i, 'FM00000'), i * 0.01, 'USD', '{\"n\": 1.25}', "
            "'2025-03-01 00:00+00' FROM generate_series(1, 9000) i"
        )
    with run(tmp_path, postgres) as intake:
        assert (intake.counts.items, intake.ok) == (9000, True)
        first = next(intake.items())
        assert (first.id, str(first.money), first.fields["meta"]) == ("R00001", "0.01 USD", {"n": 1.25})
        assert str(first.fields["at"]).startswith("2025-03-01T00:00:00")
    with run(tmp_path, postgres, "SELECT ref, amount::float8 AS amount, currency FROM refunds ORDER BY 1") as intake:
        assert only_problem(intake).code == "float_money"
    for query in ("DELETE FROM refunds RETURNING *", "SELECT nothing FROM nowhere", f"{ALL}; SELECT 2"):
        with run(tmp_path, postgres, query) as intake:
            assert not intake.ok
    with psycopg.connect(postgres) as database:
        assert database.execute("SELECT count(*) FROM refunds").fetchone() == (9000,)
