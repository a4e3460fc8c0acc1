"""Ids and targets are the same text everywhere: input file, ledger, JSON output, and the request as the provider reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from payonce.core.model import Actor, BatchSpec, PlainItems
from payonce.core.seal import Seal
from payonce.intake import InputSettings, Query, read
from payonce.ledger.connect import connect
from payonce.ledger.memory import MemoryLedger
from payonce.ledger.protocol import Ledger
from payonce.providers.simulator import open_world, parse
from tests.properties import test_intake_roundtrip as formats
from tests.properties.test_plan_fuzz import folder, said

Row = formats.Row
WRITERS: dict[str, Callable[[Path, Sequence[Row]], str | Query]] = {
    "csv": formats.write_csv,
    "tsv": formats.write_tsv,
    "jsonl": formats.write_jsonl,
    "xlsx": formats.write_xlsx,
    "parquet": formats.write_parquet,
    "sqlite": formats.write_sqlite,
}
NASTY = ["0012", "a/b?c=d&e#f", "%2F%", "{id}", "${HOME}", "..", "a\\b", '"', "'; --", "東京🎌", "e\u0301", "\u200dx\u200d", "x" * 512, "é" * 512]  # fmt: skip
BATCH = """
[batch]
id = "ids"
operation = "payout"
input = {source}
[item]
id = "ref"
target = "charge"
amount = "amount"
currency = "currency"
[provider]
kind = "simulator"
{provider}
"""


def toml(source: str | Query) -> str:
    """An input as a batch file names it."""
    if isinstance(source, Query):
        return f'{{url = "{source.url}", query = "{source.query}"}}'
    return f'"{source}"'


def sound(texts: list[str]) -> list[str]:
    """Those that an input may hold."""
    return [text for text in texts if formats.fault_of(text) is None]


def nasty() -> list[Row]:
    """One row for each difficult id, which is also the target of the one before it."""
    ids = sound(NASTY)
    return [(name, ids[place - 1], 100 + place, "USD", "x") for place, name in enumerate(ids)]


tables = st.lists(
    st.tuples(formats.ids, formats.ids, st.integers(1, 10**9), st.just("USD"), formats.text),
    min_size=1,
    max_size=6,
    unique_by=(lambda row: row[0], lambda row: row[1]),
)
some = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@some
@given(tables, st.sampled_from(sorted(WRITERS)))
@example(nasty(), "csv")
@example(nasty(), "xlsx")
@example(nasty(), "parquet")
def test_from_the_file_to_the_providers_books(table: list[Row], form: str) -> None:
    """Each id and target: in the ledger, in ``items --json`` and ``show --json``, and in what the provider executed."""
    with folder() as here:
        source = WRITERS[form](here, table)
        text = BATCH.format(source=toml(source), provider='state = "provider.jsonl"')
        (here / "batch.toml").write_text(text, encoding="utf-8")
        code, out, err = said("run", "batch.toml", "--json")
        assert code == 0, (out, err)
        check_output(table)
        effects = open_world(parse({"state": str(here / "provider.jsonl")})).effects
        assert {(effect.ref, effect.target) for effect in effects} == {(row[0], row[1]) for row in table}


def check_output(table: Sequence[Row]) -> None:
    """What the commands show of the batch, in input order."""
    lines = [json.loads(line) for line in said("items", "ids", "--json")[1].split("\n") if line]
    assert [(line["item"], line["target"]) for line in lines] == [(row[0], row[1]) for row in table]
    shown = json.loads(said("show", "ids", "--json", "--", table[-1][0])[1])
    assert (shown["item"]["item"], shown["item"]["target"]) == (table[-1][0], table[-1][1])


@some
@given(tables)
@example(nasty())
def test_every_ledger_gives_them_back(table: list[Row]) -> None:
    """Memory and SQLite, sealed in blocks and one by one, by id, by page and as an overlap."""
    with folder() as here:
        source = formats.write_jsonl(here, table)
        wanted = [(row[0], row[1]) for row in table]
        with read(InputSettings(source=source, item=formats.COLUMNS), base_dir=here, operation="payout") as intake:
            seal = Seal()
            for item in intake.items():
                seal.add(item)
            sqlite = connect("sqlite:ids.db", create=True, marks=here)
            for ledger in (MemoryLedger(), sqlite):
                spec = BatchSpec("plain", "payout", "simulator", targets=True)
                ledger.seal(spec, PlainItems(intake.rows()), seal=intake.seal, actor=Actor())
                one_by_one = BatchSpec("one by one", "payout", "simulator", targets=True)
                ledger.seal(one_by_one, intake.items(), seal=seal.hexdigest(), actor=Actor())
                for batch in ledger.batches():
                    check_ledger(ledger, batch.spec.id, batch.number, wanted)
            sqlite.close()


def check_ledger(ledger: Ledger, batch: str, number: int, wanted: list[tuple[str, str]]) -> None:
    """All ways to an id or a target."""
    assert [(item.id, item.target) for item in ledger.items(batch).items] == wanted
    assert all(ledger.item(batch, item) is not None for item, _ in wanted)
    assert [target for block in ledger.acted_targets(number) for target in block] == [t for _, t in wanted]
    found = ledger.acting_on(number, [target for _, target in wanted])
    assert [(acting.item, acting.target) for acting in found] == wanted


@pytest.fixture
def server() -> Iterator[str]:
    """A simulated provider in a process of its own; its address."""
    command = [sys.executable, "-m", "payonce", "simulate", "--port", "0", "--json", "--parent-pid", str(os.getpid())]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert served.stdout is not None
        yield str(json.loads(served.stdout.readline())["url"])
    finally:
        served.terminate()
        served.wait(10)


def test_over_http(server: str) -> None:
    """Difficult ids through a real socket, and look-ups by them: the provider's list shows each as it was given."""
    with folder() as here:
        table = nasty()
        source = formats.write_csv(here, table)
        text = BATCH.format(source=toml(source), provider=f'url = "{server}"')
        (here / "batch.toml").write_text(text, encoding="utf-8")
        code, out, err = said("run", "batch.toml", "--json")
        assert code == 0, (out, err)
        check_output(table)
        with urllib.request.urlopen(f"{server}/_sim/effects") as answer:
            effects = json.load(answer)
        assert sorted((e["ref"], e["target"]) for e in effects) == sorted((row[0], row[1]) for row in table)
