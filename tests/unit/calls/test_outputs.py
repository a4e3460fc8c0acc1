"""What calls returned: durable with the commit, complete, in input order, large ones in files beside the ledger."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from payonce.core.commands import Change
from payonce.core.errors import LedgerError
from payonce.core.states import ItemEvent, ItemState
from payonce.ledger.outputs import OUTPUT, OutputFiles
from payonce.service.opening import opened
from payonce.service.resulting import Reader
from payonce.service.results_follow import follow
from tests.unit.calls.callkit import LOOKUP, Calls

LARGE = 400_000


def test_every_item_has_one_record_in_input_order_with_its_reason(calls: Calls) -> None:
    """Committed ones with their output, refused and unknown ones with code and message; nothing is left out."""
    calls.provider.configure(script={"r2": ["refuse:bad_prompt"], "r4": ["reset_after"]})
    calls.tables = '[[provider.answers]]\nstatus = 400\noutcome = "refused"\n'
    assert calls.run().code == 1
    found = calls.results()
    assert [(r["item"], r["state"]) for r in found] == [
        ("r1", "committed"), ("r2", "refused"), ("r3", "committed"), ("r4", "unknown"), ("r5", "committed"),
    ]  # fmt: skip
    assert found[0]["output"]["output"].startswith("answer ")
    assert (found[1]["output"], found[1]["code"]) == (None, "bad_prompt")
    assert (found[3]["output"], found[3]["code"]) == (None, "cut_short" if found[3]["code"] == "cut_short" else "reset")


def test_csv_and_parquet_hold_what_the_json_lines_hold(calls: Calls) -> None:
    """The three formats have the same items in the same order, amounts as exact text, outputs whole."""
    assert calls.run().code == 0
    for name in ("out.jsonl", "out.csv", "out.parquet"):
        assert calls("results", "batch.toml", "--out", name).code == 0
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    table = duckdb.sql("SELECT item, billed, attempts, output FROM 'out.parquet'").fetchall()
    assert (
        [r["item"] for r in lines]
        == [r["item"] for r in rows]
        == [r[0] for r in table]
        == ["r1", "r2", "r3", "r4", "r5"]
    )
    for line, row, (_, billed, attempts, output) in zip(lines, rows, table, strict=True):
        assert line["billed"] == row["billed"] == billed and attempts == line["attempts"] == 1
        assert line["output"] == json.loads(row["output"]) == json.loads(output)
    said = calls("results", "batch.toml", "--out", "out.csv", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "file_exists")


def test_a_part_of_each_output_is_selected(calls: Calls) -> None:
    """A JMESPath expression picks the part; one that is none is refused before anything is written."""
    assert calls.run().code == 0
    assert all(str(r["output"]).startswith("answer ") for r in calls.results("--select", "output"))
    assert [r["output"] for r in calls.results("--select", "model")] == ["m1", "m0", "m1", "m0", "m1"]
    said = calls("results", "batch.toml", "--out", "-", "--select", "a..b", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "bad_select")


def test_large_answers_are_files_whose_digest_is_in_the_trail(calls: Calls) -> None:
    """The answer is in a file named by its SHA-256, the ledger stays small, the commit lists the digest; a file that is
    gone is an error, never an empty output."""
    calls.body = '{model = "m", user = "{id}", size = ' + str(LARGE) + "}"
    calls.items = 2
    assert calls.run().code == 0
    first, second = calls.results()
    assert len(first["output"]["output"]) == len(second["output"]["output"]) == LARGE
    events = calls("show", "batch.toml", "r1", "--json").json["events"]
    (commit,) = [event for event in events if event["type"] == "commit"]
    assert commit["kept"][OUTPUT]["sha256"] == first["output_sha256"]
    files = sorted(path for path in Path("payonce.db.outputs").rglob("*") if path.is_file())
    assert sorted(path.name for path in files) == sorted([first["output_sha256"], second["output_sha256"]])
    assert Path("payonce.db").stat().st_size < LARGE
    assert calls("results", "batch.toml", "--out", "big.parquet").code == 0
    assert duckdb.sql("SELECT max(length(output)) FROM 'big.parquet'").fetchall()[0][0] > LARGE
    doctor = {check["name"]: check["ok"] for check in calls("doctor", "batch.toml", "--json").json["checks"]}
    assert doctor["outputs"] is True
    files[0].write_bytes(b"{}")
    doctor = {check["name"]: check["ok"] for check in calls("doctor", "batch.toml", "--json").json["checks"]}
    assert doctor["outputs"] is False
    said = calls("results", "batch.toml", "--out", "-", "--json")
    assert said.code == 3 and said.lines[-1]["error"]["code"] == "output_missing"


def test_erasing_an_item_takes_its_file_away(calls: Calls) -> None:
    """An output that nobody else has goes with its item."""
    calls.body = '{model = "m", user = "{id}", size = ' + str(LARGE) + "}"
    calls.items = 2
    assert calls.run().code == 0
    first = calls.results()[0]["output_sha256"]
    assert calls("trail", "erase", "batch.toml", "r1", "--reason", "request 7", "--yes").code == 0
    left = [path.name for path in Path("payonce.db.outputs").rglob("*") if path.is_file()]
    assert len(left) == 1 and first not in left


def test_an_output_that_cannot_be_made_durable_is_not_committed(tmp_path: Path) -> None:
    """The folder of outputs is a file: LedgerError, so that the engine spools the answer and halts."""
    (tmp_path / "outputs").write_text("in the way")
    files = OutputFiles(tmp_path / "outputs", inline_bytes=10)
    change = Change(1, ItemEvent.COMMIT, reference="x", output=b"0123456789ab")
    assert files.takes(change)
    with pytest.raises(LedgerError) as fault:
        files.set_aside(change)
    assert fault.value.code == "output_unwritable"


def test_following_shows_each_item_once_it_is_decided(calls: Calls) -> None:
    """All of a finished batch, in the order of the decisions; from a seq on, only what came after."""
    assert calls.run().code == 0
    said = calls("results", "batch.toml", "--follow")
    assert said.code == 0 and {r["item"] for r in said.lines} == {"r1", "r2", "r3", "r4", "r5"}
    seqs = [r["seq"] for r in said.lines]
    assert seqs == sorted(seqs)
    later = calls("results", "batch.toml", "--follow", "--after", str(seqs[2])).lines
    assert [r["seq"] for r in later] == seqs[3:]


def test_following_a_batch_that_runs(calls: Calls) -> None:
    """Records come while the batch is on its way, each of them committed before it is shown; then it ends by itself."""
    calls.items = 30
    calls.provider.configure(latency="40ms")
    calls.limits = 'rate = "20/s"\n'
    calls.write()
    assert calls("plan", "batch.toml").code == 0
    run = subprocess.Popen(
        [sys.executable, "-m", "payonce", "run", "batch.toml", "--no-reconcile"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    early = 0
    seen: dict[str, str] = {}
    with opened("sqlite:payonce.db", read_only=True) as ledger:
        for record in follow(ledger, "calls", Reader("sqlite:payonce.db")):
            assert ledger.item("calls", record["item"]).state is ItemState.COMMITTED  # type: ignore[union-attr]
            seen[record["item"]] = record["output"]
            early += run.poll() is None
    assert run.wait(30) == 0 and len(seen) == 30 and early > 0


def test_a_crash_between_the_file_and_its_commit(calls: Calls) -> None:
    """The file is there and nothing refers to it: the next run finds the call in the usage log and commits the same file."""
    calls.body = '{model = "m", user = "{id}", size = ' + str(LARGE) + "}"
    calls.items, calls.tables = 1, LOOKUP
    calls.write()
    env = {**os.environ, "PAYONCE_CRASH_AT": "after_output"}
    run = subprocess.run(
        [sys.executable, "-m", "payonce", "run", "batch.toml"], env=env, capture_output=True, check=False, timeout=60
    )
    assert run.returncode == -signal.SIGKILL
    (file,) = [path for path in Path("payonce.db.outputs").rglob("*") if path.is_file()]
    said = calls("run", "batch.toml", "--json")
    assert said.code == 0 and calls.provider.executed() == {"r1": 1}
    assert calls.results()[0]["output_sha256"] == file.name
    assert [path for path in Path("payonce.db.outputs").rglob("*") if path.is_file()] == [file]
