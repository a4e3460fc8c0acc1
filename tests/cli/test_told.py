"""What a person is told: findings that wait, runs whose process is gone, one right next step, lines that fit."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import pytest

import payonce
from payonce.cli.common import Common
from payonce.cli.progress import Meter, Progress, line
from payonce.cli.screen import Screen, broken
from payonce.cli.summary import next_after, outcome_json, show_outcome
from payonce.core.model import Batch, BatchSpec, Status, Tally
from payonce.core.states import BatchState, ItemState
from payonce.engine.run import RunOutcome, outcome_of
from payonce.engine.stop import End, Ending
from payonce.service.report import shown_state
from tests.cli.conftest import Desk


def status(*, workers: int, provider: str = "http", trouble: str | None = None) -> Status:
    batch = Batch(BatchSpec("b", "refund", provider), 1, BatchState.RUNNING, "aa", 2)
    return Status(batch, (Tally(ItemState.PLANNED, "USD", 2, 2000),), live_workers=workers, trouble=trouble)


def test_open_findings_are_told_by_run_and_status(desk: Desk) -> None:
    """In words with the command that lists them, and as a number; acknowledged ones do not count."""
    desk.write(items=3, provider='script = {R2 = ["other_amount"]}')
    ran = desk("run", "batch.toml")
    assert "1 finding open: payonce findings batch.toml" in ran.out
    assert "1 finding open: payonce findings refunds" in desk("status", "refunds").out
    assert desk("status", "refunds", "--json").json["findings_open"] == 1
    assert desk("status", "--json").json["batches"][0]["findings_open"] == 1
    number = desk("findings", "refunds", "--json").json["findings"][0]["id"]
    assert desk("findings", "refunds", "--acknowledge", str(number), "--reason", "asked them").code == 0
    assert desk("status", "refunds", "--json").json["findings_open"] == 0
    assert "finding" not in desk("status", "refunds").out


def test_a_run_without_a_process_is_interrupted(desk: Desk) -> None:
    """As after ``kill -9``: no rate, no time left, and what to do; in words and in JSON."""
    desk.write()
    desk("plan", "batch.toml")
    with sqlite3.connect(desk.folder / "payonce.db") as books:
        books.execute("UPDATE batches SET state = 'running'")
    said = desk("status", "batch.toml", "--json").json
    assert (said["state"], said["rate"], said["eta_seconds"]) == ("interrupted", None, None)
    assert "no process is working on it; the same command goes on" in desk("status", "batch.toml").out


def test_running_is_told_only_where_a_process_works() -> None:
    """A batch whose process is gone is interrupted."""
    assert shown_state(status(workers=1)) == "running"
    assert shown_state(status(workers=0)) == "interrupted"


def test_a_batch_of_single_calls_is_open(desk: Desk) -> None:
    """It has no process of its own, so it is not interrupted; words say open, JSON has a field for it."""
    money = payonce.Money("12.50", "USD")
    with payonce.once("sqlite:payonce.db", batch="po", item="p-1", money=money, key=True, retention="24h") as call:
        call.executed("po-1")
    said = desk("status", "po", "--json").json
    assert (said["state"], said["open"]) == ("running", True)
    assert desk("status", "po").out.startswith("po: open\n")
    assert desk("status").out.splitlines()[1].split()[:2] == ["po", "open"], "the list and the batch say the same"
    (listed,) = desk("status", "--json").json["batches"]
    assert (listed["state"], listed["open"]) == (said["state"], said["open"])
    whole = payonce.operation(key=True, retention="24h")(lambda call: payonce.Executed("r-1", call.money))
    assert payonce.run("whole", [("w-1", money)], whole).exit_code == 0
    assert desk("status", "whole", "--json").json["open"] is False


def test_trouble_is_told_while_it_lasts() -> None:
    """The cause stands in the line; nothing of it once it is over."""
    told = line(status(workers=1, trouble="connect_refused: cannot connect to 127.0.0.1:8799"), Meter())
    why = "nothing accepts connections at its address (connect_refused, 127.0.0.1:8799)"
    assert told.endswith(f"cannot reach the provider, trying again: {why}")
    raw = line(status(workers=1, trouble="dns_failed: [Errno -2] Name or service not known"), Meter())
    assert raw.endswith("trying again: its name is not found (dns_failed)")
    assert "trying again" not in line(status(workers=1), Meter())


@pytest.mark.parametrize(
    ("code", "held", "first", "resumes"),
    [
        ("budget", False, "raise [limits] budget in b.toml, then", False),
        ("targets_held", False, "payonce resolve", False),
        ("stop_after_refusals", False, "payonce items", False),
        ("stop_after_consecutive", False, "payonce items", False),
        ("provider_unreachable", False, "when the cause is gone,", False),
        ("amount_mismatch", True, "look into the reason; then payonce resume", True),
    ],
)
def test_one_right_next_step(code: str, held: bool, first: str, resumes: bool) -> None:
    """By the reason code; only a stop that waits for a person needs ``resume``."""
    outcome = RunOutcome(4, BatchState.STOPPED, code=code, reason="why", status=None)
    step = next_after(outcome, batch="b", file="b.toml", held=held)
    assert step is not None
    assert step.startswith(first)
    assert step.endswith("payonce run b.toml")
    assert ("payonce resume" in step) is resumes


def test_counts_from_before_the_first_call_are_not_told_as_the_end() -> None:
    """The first reading is of before the run; a later one is the last known state."""
    progress = Progress(Common(quiet=True))
    progress(status(workers=1))
    assert progress.last is None
    later = replace(status(workers=1), calls_sent=2)
    progress(later)
    assert progress.last == later


@pytest.mark.parametrize(
    ("seen", "words"), [(True, "these counts were read while it ran"), (False, "no counts are known")]
)
def test_a_ledger_that_cannot_be_read_at_the_end(seen: bool, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said, in words and in JSON."""
    outcome = RunOutcome(3, BatchState.HALTED, code="ledger_io", reason="why", status=None)
    last = status(workers=1) if seen else None
    show_outcome(Screen(Common()), outcome, batch="b", file="b.toml", status=last, unknown=[])
    said = " ".join(capsys.readouterr().out.split())
    assert words in said and ("2 planned" in said) is seen
    assert outcome_json(outcome, batch="b", status=last, unknown=[])["last_seen"]


def test_what_a_cancel_left_pending_is_decided_by_the_same_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 75 says what is left, and the next step is the command itself."""
    left = replace(status(workers=0), tallies=(Tally(ItemState.PENDING, "USD", 3, 3000),))
    session = SimpleNamespace(
        worker=SimpleNamespace(others=0), trouble=None, spool_lost=[], spool=SimpleNamespace(written=0)
    )
    outcome = outcome_of(End(Ending.CANCELLED, "cancelled", "why"), left, session)  # type: ignore[arg-type]
    assert outcome.exit_code == 75
    show_outcome(Screen(Common()), outcome, batch="b", file="b.toml", status=left, unknown=[])
    said = "".join(capsys.readouterr())
    assert "3 items still pending; the same command decides" in said
    assert "payonce run b.toml" in said


def test_lines_are_broken_between_words() -> None:
    """No word is cut, later lines stand under the text after a label, and short lines stay as they are."""
    text = "guarantee  Keys and look-up: after a crash or a lost answer payonce looks the item up, and goes on"
    lines = broken(text, width=40).splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert all(line.startswith(" " * 11) for line in lines[1:])
    assert " ".join(line.strip() for line in lines) == text
    assert broken("  12  short", width=40) == "  12  short"


def test_the_guarantee_is_told_once(desk: Desk) -> None:
    """At the plan and the first run; not by a resume that has nothing to do."""
    desk.write(items=2)
    assert "guarantee  " in desk("run", "batch.toml").err
    again = desk("run", "batch.toml")
    assert "guarantee" not in again.err + again.out
    assert "already sealed, unchanged" in desk("plan", "batch.toml").out


def test_follow_up_commands_name_the_batch_as_it_was_typed() -> None:
    """By its file where a file was typed: its ledger need not be the one of the working directory."""
    common = Common(named=("refunds", "own/b.toml"))
    assert common.in_their_words("payonce items refunds --state refused") == "payonce items own/b.toml --state refused"
    assert common.in_their_words("then payonce resume refunds, and more") == "then payonce resume own/b.toml, and more"
    assert common.in_their_words("payonce run BATCH.toml") == "payonce run own/b.toml"
    assert common.in_their_words("payonce items refunds-2") == "payonce items refunds-2"


def test_hints_of_errors_do_so_too(desk: Desk) -> None:
    """An unknown item of a batch file; an unknown batch is told that a file's path would do."""
    desk.write()
    desk("plan", "batch.toml")
    assert "payonce items batch.toml" in desk("show", "batch.toml", "r1", "--json").json["error"]["hint"]
    assert "give the batch file's path" in desk("status", "other", "--json").json["error"]["hint"]
