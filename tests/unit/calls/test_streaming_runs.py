"""Streamed and slow answers in a run: the id kept as it arrives, what is looked up after a cut or a crash, 402, errors in 200."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from tests.unit.calls.callkit import Calls

ROUTED = 'billed = "usage.cost"\nbilled_unit = "major"\nbilled_currency = "\'USDC\'"\nbilled_rounding = "half_even"\n'
STREAMED = 'stream = "openai"\nid_header = "X-Generation-Id"\noutput = "choices[0].message.content"\n' + ROUTED
GENERATION = """
[provider.lookup]
path = "/api/v1/generation?id={answer_id}"
found = "data"
reference = "id"
amount = "total_cost"
amount_unit = "major"
amount_rounding = "half_even"
currency = "'USDC'"
own_reference = "external_user"
answer_path = "/api/v1/chat/completions/{reference}"
"""
CHAT = '{model = "{model}", user = "{id}", stream = true, messages = [{role = "user", content = "{prompt}"}]}'


def streamed(calls: Calls, *, lookup: bool = True) -> Calls:
    """A batch of streamed chat completions."""
    calls.call, calls.body = STREAMED, CHAT
    calls.path = "/api/v1/chat/completions"
    calls.tables = GENERATION if lookup else ""
    return calls


def child(calls: Calls, **env: str) -> subprocess.Popen[str]:
    """The run as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "payonce", "run", "batch.toml", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env},
    )  # fmt: skip


def test_streams_are_committed_whole(calls: Calls) -> None:
    """Text, reference and cost, to the millionth; the same as the provider's books."""
    calls.provider.configure(token_price="0.0000004")
    said = streamed(calls).run()
    assert said.code == 0, said.err
    assert [r["output"][:7] for r in calls.results()] == ["answer "] * 5
    assert int(said.json["money"]["USDC"]["committed"].replace(".", "")) == calls.provider.spent()


def test_a_stream_that_breaks_off_is_looked_up_by_the_id_in_its_head(calls: Calls) -> None:
    """The call was paid for: it is found by the id that its headers brought, and not sent again."""
    calls.provider.configure(script={"r2": ["cut_after"], "r3": ["trickle:50ms"]})
    said = streamed(calls).run()
    assert said.code == 0, said.err
    assert set(calls.provider.executed().values()) == {1}
    assert all(r["output"].startswith("answer ") for r in calls.results())
    events = calls("show", "batch.toml", "r2", "--json").json["events"]
    seen = [e["data"]["answer_id"] for e in events if e.get("code") == "answer_begun"]
    assert [e["reference"] for e in events if e["type"] == "commit"] == seen


def test_without_an_id_there_is_nothing_to_look_up_by(calls: Calls) -> None:
    """The connection broke before any header came: unknown at once, with its own code."""
    calls.provider.configure(script={"r1": ["reset_after"]})
    said = streamed(calls).run()
    assert said.code == 1 and said.json["calls"]["lookups"] == 1
    assert [r["code"] for r in calls.results() if r["state"] == "unknown"] == ["no_answer_id"]


def test_a_crash_in_the_middle_of_an_answer_loses_nothing(calls: Calls) -> None:
    """Killed while the body is still on its way: the next run looks the call up by the id that was kept, and finds it."""
    calls.provider.configure(script={"r1": ["trickle:1500ms"]})
    calls.items = 1
    streamed(calls).write()
    assert child(calls, PAYONCE_CRASH_AT="after_answer_begun").wait(30) == -signal.SIGKILL
    said = calls("run", "batch.toml", "--json")
    assert (said.code, said.json["items"]["committed"]) == (0, 1), said.err
    assert calls.provider.executed() == {"r1": 1}
    assert calls.results()[0]["output"].startswith("answer ")


def test_the_lease_is_renewed_while_a_call_is_in_flight(calls: Calls) -> None:
    """A call that takes long keeps its worker alive for everybody else."""
    calls.provider.configure(script={"r1": ["trickle:2600ms"]})
    calls.items, calls.timeout = 1, "6s"
    streamed(calls).write()
    process = child(calls)
    leases: set[int] = set()
    pending = 0
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
        leases |= set(_leases())
        pending += 1
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert json.loads(out)["items"]["committed"] == 1
    assert len(leases) >= 2 and pending > 10


def _leases() -> list[int]:
    try:
        with sqlite3.connect("file:payonce.db?mode=ro", uri=True) as ledger:
            return [row[0] for row in ledger.execute("SELECT lease_until_us FROM workers")]
    except sqlite3.Error:
        return []


def test_minutes_of_patience_are_accepted(calls: Calls) -> None:
    """A timeout of ten minutes: the lease is as long as it takes, and the call goes out."""
    calls.items, calls.timeout = 1, "10m"
    calls.limits = 'lease = "30s"\n'
    said = streamed(calls).run()
    assert said.code == 0 and "limits.lease was raised" in said.err


@pytest.mark.parametrize(("rules", "state", "executed"), [("", "pending", True), ('[[provider.answers]]\nstatus = 402\noutcome = "stop"\n', "planned", False)])  # fmt: skip
def test_no_balance_stops_the_batch(calls: Calls, rules: str, state: str, executed: bool) -> None:
    """402 is no matter of one item: exit 4. Whether this item may have been executed, only the API's rule can say."""
    calls.provider.configure(faults=[{"kind": "refuse", "status": 402, "code": "insufficient_credits"}])
    calls.tables = rules
    said = calls.run()
    assert (said.code, said.json["reason_code"]) == (4, "insufficient_credits")
    assert said.json["items"][state] >= 1 and not calls.provider.executed()
    assert bool(said.json["items"]["pending"]) is executed


def test_an_error_inside_a_200_is_no_success(calls: Calls) -> None:
    """It may have been executed before it failed: unknown, unless the API's rules say better."""
    calls.provider.configure(script={"r1": ["error_in_200"]})
    said = calls.run()
    assert said.code == 1 and said.json["items"]["unknown"] == 1
    assert [r["code"] for r in calls.results() if r["state"] == "unknown"] == ["error_in_answer"]


def test_an_answer_of_many_megabytes_arrives_whole(calls: Calls) -> None:
    """Beyond what an answer about money may have, up to 64 MiB: its file is exactly what was sent."""
    calls.items, size = 1, 20_000_000
    calls.body = '{model = "m", user = "{id}", size = ' + str(size) + "}"
    calls.timeout = "30s"
    said = calls.run()
    assert said.code == 0, said.err
    (record,) = calls.results()
    assert len(record["output"]["output"]) == size
