"""Whoever can write to a store and changes any one value in it is found out by the check of the trail; but for columns that
nothing follows from, each of which is here with its reason, and in docs/concepts/safety.md.

The tests walk the schema: a column that comes later is attacked as well, or has to be excused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, cast

import pytest

from payonce.core.model import Actor, Finding, Request
from payonce.ledger.jsonl_trail import JsonlTrail
from payonce.ledger.rows import BatchRow, ItemRow, OpenRow, OutputRow, PayloadRow, WorkerRow
from payonce.ledger.rows_trail import RowsTrail
from payonce.testing.ledger_world import World
from payonce.trail.verify import verify
from tests.conformance.columns import (
    PostgresShelf,
    Row,
    Shelf,
    SqliteShelf,
    added,
    changed,
    other_values,
    removed,
)
from tests.conformance.explained import trail_of
from tests.conformance.rich import fill
from tests.conformance.test_jsonl_ledger import JsonlFactory
from tests.conformance.test_ledgers import MemoryFactory, SqliteFactory
from tests.postgres import Server, new_schema

SAFETY = Path(__file__).parents[2] / "docs" / "concepts" / "safety.md"

# What the events cannot say, and why that is no loss. docs/concepts/safety.md names each of these columns.
EXCUSED = {
    ("meta", "name"): "where the ledger lives, and where it went: guarded at every start, followed by nothing",
    ("meta", "value"): "the same",
    ("states", "code"): "names for whoever reads the file with other tools; payonce has its own",
    ("states", "name"): "the same",
    ("settlements", "code"): "the same",
    ("settlements", "name"): "the same",
    ("head", "turn"): "lets a process tell whether another one wrote; a wrong one makes it read again",
    ("events", "mark"): "names the event that was changed among 256; protects nothing",
    ("batches", "cursor"): "how far the present sweep over planned items has come; each sweep begins anew",
    ("batches", "next_slot_ns"): "when the next call may start: pace, not money",
    ("intents", "send_by_us"): "in no event, which would make each of them longer",
    ("intents", "deadline_us"): "the same",
    ("workers", "lease_until_us"): "renewed every few seconds without an event",
    ("sqlite_sequence", "name"): "SQLite's own: the highest number of a worker, which is in the workers too",
    ("sqlite_sequence", "seq"): "the same",
}
# What is written where the usual change of a value would be one that no reader takes.
SPECIAL = {
    ("batches", "state"): "running",
    ("batches", "targets"): None,
    ("batches", "hold"): None,
    ("intents", "headers"): '[["Idempotency-Key","another"]]',
    ("workers", "actor"): '{"user":"nobody"}',
}
TABLES = [
    "meta",
    "head",
    "nodes",
    "events",
    "payloads",
    "batches",
    "tallies",
    "items",
    "item_ids",
    "intents",
    "workers",
    "outputs",
    "findings",
    "states",
    "settlements",
    "sqlite_sequence",
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with some of everything."""
    folder = tmp_path_factory.mktemp("sound")
    world = World(SqliteFactory(folder))
    fill(world)
    world.close()
    return folder / "payonce.db"


@pytest.fixture
def sqlite_shelf(sound: Path, tmp_path: Path) -> Iterator[SqliteShelf]:
    """A copy of it."""
    shutil.copyfile(sound, tmp_path / "payonce.db")
    shelf = SqliteShelf(tmp_path / "payonce.db")
    yield shelf
    shelf.close()


@pytest.fixture(scope="module")
def postgres_shelf(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresShelf]:
    """The same on a server."""
    from payonce.ledger.connect import connect

    schema = new_schema()
    url, marks = postgres.url(schema), tmp_path_factory.mktemp("marks")

    class Factory:
        def open(self, **more: object) -> object:
            return connect(url, create=True, marks=marks, **more)  # type: ignore[arg-type]

    world = World(Factory())  # type: ignore[arg-type]
    fill(world)
    world.close()
    shelf = PostgresShelf(postgres.dsn, schema, url)
    yield shelf
    shelf.close()


def some(table: str, rows: list[Row], *, at_most: int) -> list[Row]:
    """Rows of every kind, but not every row: of items and intents those that differ in more than names, amounts and times;
    of others from both ends and between."""
    if table in ("items", "intents"):
        kinds = {}
        for row in rows:
            kind = [row[name] is None or row[name] for name in ("state", "flags", "settlement", "step") if name in row]
            kind += [row["place"] >> 32, *(row.get(name) is None for name in ("code", "carry", "minor", "fields"))]
            kinds[tuple(kind)] = row
        rows = list(kinds.values())
    return rows if len(rows) <= at_most else [rows[at * (len(rows) - 1) // (at_most - 1)] for at in range(at_most)]


def is_empty(table: str, row: Row) -> bool:
    """Whether a row says nothing: a count of nothing, or where an erased output was."""
    if table == "outputs":
        return row["output"] is None and row["kept"] is None
    return table == "tallies" and not row["items"] and not row["minor"]


def unseen(shelf: Shelf, table: str, *, at_most: int = 16) -> Iterator[str]:
    """Changes of one value that the check does not find, for all that are not excused, in words."""
    for row in some(table, shelf.rows(table), at_most=at_most):
        if is_empty(table, row):
            continue
        for column, kind in shelf.tables()[table].columns.items():
            if (table, column) in EXCUSED and row.get("name") != "id":
                continue
            special = SPECIAL.get((table, column), "")
            values = other_values(row[column], kind) if special == "" else [special or 1 - row[column]]
            for value in values:
                with changed(shelf, table, row, column, value) as landed:
                    if landed and shelf.is_sound():
                        yield f"{column} = {value!r} in {dict(row)}"


def unseen_rows(shelf: Shelf, table: str) -> Iterator[str]:
    """The same of rows that are removed, or that come besides."""
    rows = [row for row in shelf.rows(table) if not is_empty(table, row)]
    for row in some(table, rows, at_most=6):
        with removed(shelf, table, row):
            if shelf.is_sound():
                yield f"without {dict(row)}"
        with added(shelf, table, row) as landed:
            if landed and shelf.is_sound():
                yield f"beside {dict(row)}"


def has_facts(table: str) -> bool:
    """Whether not all columns of a table are excused."""
    return table not in ("states", "settlements", "meta", "sqlite_sequence")


@pytest.mark.parametrize("table", TABLES)
def test_no_value_in_sqlite_can_be_changed_unseen(sqlite_shelf: SqliteShelf, table: str) -> None:
    """Each column of each table, in rows of every kind; and rows that go or come."""
    assert set(sqlite_shelf.tables()) == set(TABLES)
    assert sqlite_shelf.is_sound()
    assert list(unseen(sqlite_shelf, table)) == []
    if has_facts(table):
        assert list(unseen_rows(sqlite_shelf, table)) == []
    assert sqlite_shelf.is_sound()


@pytest.mark.parametrize("table", sorted(set(TABLES) - {"states", "settlements", "sqlite_sequence", "item_ids"}))
def test_no_value_in_postgres_can_be_changed_unseen(postgres_shelf: PostgresShelf, table: str) -> None:
    """As above."""
    assert set(postgres_shelf.tables()) == set(TABLES) - {"states", "settlements", "sqlite_sequence", "item_ids"}
    assert postgres_shelf.is_sound()
    assert list(unseen(postgres_shelf, table, at_most=3)) == []
    assert postgres_shelf.is_sound()


def test_no_excuse_is_out_of_date(sqlite_shelf: SqliteShelf, postgres_shelf: PostgresShelf) -> None:
    """What is excused is really not seen, and is a column that there is."""
    known = {
        (name, column) for s in (sqlite_shelf, postgres_shelf) for name, t in s.tables().items() for column in t.columns
    }
    assert set(EXCUSED) <= known
    for (table, column), reason in EXCUSED.items():
        shelf: Shelf = sqlite_shelf if (table, column) != ("head", "turn") else postgres_shelf
        seen = []
        for row in shelf.rows(table):
            (value, *_) = other_values(row[column], shelf.tables()[table].columns[column])
            with changed(shelf, table, row, column, value) as landed:
                seen.append(not landed or not shelf.is_sound())
            if not all(seen):
                break
        assert reason and not all(seen), (table, column)
        assert f"`{table}.{column}`" in SAFETY.read_text("utf-8"), (table, column)


# Rows of the stores that keep them in memory, by the table that holds the same elsewhere.
IN_MEMORY = {
    BatchRow: "batches",
    ItemRow: "items",
    OpenRow: "intents",
    Request: "intents",
    WorkerRow: "workers",
    Finding: "findings",
    OutputRow: "outputs",
    PayloadRow: "payloads",
}


@pytest.fixture(scope="module", params=["memory", "jsonl"])
def rows_trail(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RowsTrail]:
    """A ledger with some of everything in memory, and one that was read from its file."""
    if request.param == "memory":
        world = World(MemoryFactory())
        fill(world)
        yield cast(RowsTrail, trail_of(world))
        return
    factory = JsonlFactory(tmp_path_factory.mktemp("jsonl"))
    world = World(factory)
    fill(world)
    world.close()
    reads = JsonlTrail(factory.path)
    yield reads
    reads.close()


def rows_of(reads: RowsTrail) -> Iterator[Any]:
    """Every row."""
    rows = reads.rows
    yield from rows.worker_rows()
    yield from rows.payload_rows()
    yield from rows._requests.values()
    for batch in rows._batches.values():
        yield batch
        yield from rows.item_rows(batch.number)
        yield from rows._opens[batch.number].values()
        yield from rows.findings(batch.number)
        yield from (row for row in rows.output_rows(batch.number).values() if row.output or row.kept)


@pytest.mark.parametrize("kind", IN_MEMORY, ids=lambda kind: kind.__name__)
def test_no_field_in_memory_can_be_changed_unseen(rows_trail: RowsTrail, kind: type) -> None:
    """What a JSON Lines ledger says of a row, in whatever line: each field of rows of every kind."""
    assert verify(rows_trail).ok
    found = [row for row in rows_of(rows_trail) if type(row) is kind]
    for row in found[:3] + found[-40::4]:
        for name in (field.name for field in fields(kind)):
            old = getattr(row, name)
            new: Any = 1 if old is None else not old if isinstance(old, bool) else other_value(old)
            if (IN_MEMORY[kind], name) in EXCUSED or new is old or (kind is OpenRow and name == "request"):
                continue  # requests are kept beside their rows
            object.__setattr__(row, name, new)
            seen = not verify(rows_trail).ok
            object.__setattr__(row, name, old)
            assert seen, f"{name} = {new!r} in {row}"
    assert verify(rows_trail).ok


def other_value(value: Any) -> Any:
    """Something else than a value, of the same kind; the value itself where nothing else can be there."""
    match value:
        case Enum():
            return next(other for other in type(value) if other is not value)
        case int():
            return value + 1
        case str():
            return '{"x":1}' if value.endswith("}") else value + "x"
        case bytes():
            return value + b"x"
        case Actor():
            return replace(value, user="nobody")
        case dict():
            return {**value, "x": 1}
        case tuple():
            return (("Idempotency-Key", "another"),)
        case _:
            return value
