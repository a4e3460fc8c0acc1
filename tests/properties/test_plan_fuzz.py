"""No input file, however broken, ends ``payonce plan`` in anything but a seal or a report: never in a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payonce.cli.main import invoke
from tests.properties.test_intake_fuzz import broken

BATCH = """
[batch]
id = "fuzz"
operation = "refund"
input = "in{ending}"
on_duplicate = "{on_duplicate}"
[item]
id = "ref"
amount = "amount"
currency = "currency"
[provider]
kind = "simulator"
state = "provider.jsonl"
"""
_SHM = Path("/dev/shm")


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder of its own as the working directory, in memory where possible; nothing of the environment reaches it."""
    before, kept = Path.cwd(), {name: os.environ.get(name) for name in ("XDG_STATE_HOME", "PAYONCE_LEDGER")}
    with tempfile.TemporaryDirectory(dir=_SHM if _SHM.is_dir() else None) as name:
        os.environ["XDG_STATE_HOME"] = name
        os.environ.pop("PAYONCE_LEDGER", None)
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)
            for key, value in kept.items():
                os.environ.pop(key, None) if value is None else os.environ.__setitem__(key, value)


def said(*args: str) -> tuple[int, str, str]:
    """A command's exit code, output and errors, as bytes that UTF-8 can hold."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = invoke(list(args))
    out.flush(), err.flush()
    return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()  # type: ignore[attr-defined]


def judge(data: bytes, ending: str, *, skip: bool, on_duplicate: str) -> None:
    """Plans a file twice, for programs and for people, and looks at what was said."""
    options = ["--skip-bad-rows"] if skip else []
    with folder() as here:
        (here / f"in{ending}").write_bytes(data)
        (here / "batch.toml").write_text(BATCH.format(ending=ending, on_duplicate=on_duplicate))
        code, out, err = said("plan", "batch.toml", "--json", "--problems", "problems.jsonl", *options)
        document = json.loads(out)
        assert code in (0, 2), out
        assert "Traceback" not in err
        if "error" in document:
            assert document["error"]["code"] != "internal_error", out
        else:
            assert document["sealed"] is (code == 0)
            listed = [json.loads(line) for line in (here / "problems.jsonl").read_text("utf-8").splitlines()]
            assert len(listed) == document["problem_count"] == sum(document["problem_codes"].values())
            assert code == 0 or listed
        again, shown, errors = said("plan", "batch.toml", "--no-color", *options)
        assert again == code
        assert "internal error" not in shown + errors
        assert "Traceback" not in shown + errors


some = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
few = settings(some, max_examples=12)


@some
@given(broken(".csv"), st.booleans(), st.sampled_from(["error", "skip"]))
def test_broken_delimited_files(data: bytes, skip: bool, on_duplicate: str) -> None:
    """Any damage to a CSV file."""
    judge(data, ".csv", skip=skip, on_duplicate=on_duplicate)


@some
@given(broken(".jsonl"), st.booleans())
def test_broken_json_lines(data: bytes, skip: bool) -> None:
    """Any damage to JSON Lines."""
    judge(data, ".jsonl", skip=skip, on_duplicate="error")


@few
@given(st.sampled_from([".xlsx", ".parquet"]).flatmap(lambda ending: st.tuples(broken(ending), st.just(ending))))
def test_broken_workbooks_and_parquet_files(made: tuple[bytes, str]) -> None:
    """Any damage to files with a structure of their own."""
    judge(*made, skip=True, on_duplicate="skip")


@some
@given(st.binary(max_size=300), st.sampled_from([".csv", ".tsv", ".jsonl", ".xlsx", ".parquet", ".txt", ""]))
def test_any_bytes(data: bytes, ending: str) -> None:
    """Bytes of no kind, under any name."""
    judge(data, ending, skip=True, on_duplicate="skip")
