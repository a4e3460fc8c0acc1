"""Paid calls without keys, killed again and again: nothing is paid for twice, no answer is missing, the books agree.

`PAYONCE_TORTURE=1` runs it at full size: 20,000 records, five kills, 5 % of the answers lost (`make torture-calls`).
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections import Counter
from decimal import Decimal
from pathlib import Path

from tests.crash.harness import Job, Provider, kill_at

FULL = bool(os.environ.get("PAYONCE_TORTURE"))
RECORDS = 20_000 if FULL else 300
KILLS = 5 if FULL else 2
PRICE = "0.00000037"
BATCH = """
[batch]
id = "calls"
operation = "call"
input = "prompts.jsonl"
[item]
id = "record"
[limits]
concurrency = 64
attempts = 10
lease = "5s"
budget = {{USDC = "1000.00"}}
[ledger]
url = "sqlite:payonce.db"
[provider]
kind = "http"
base_url = "{url}"
account = "acct_sim"
headers = {{Authorization = "Bearer ${{SIM_TOKEN}}"}}
timeout = "1s"
max_execution = "300ms"
[provider.call]
path = "/v1/calls"
json = {{model = "{{model}}", user = "{{id}}", input = "{{prompt}}"}}
reference = "id"
keep = {{model = "model"}}
[provider.price]
currency = "USDC"
per_unit = {{"usage.tokens" = "{price}"}}
at_most = {{"usage.tokens" = "bytes"}}
[provider.lookup]
path = "/v1/usage?user={{id}}"
found = "data"
reference = "id"
currency = "currency"
time = "created"
own_reference = "user"
answer_path = "/v1/calls/{{reference}}"
lag = "500ms"
"""


class Calls(Job):
    """A batch of calls and its processes."""

    def write(self) -> Path:
        """Writes input and batch file; returns the latter."""
        rows = [
            {"record": f"r{n}", "model": f"m{n % 3}", "prompt": f"question {n} " * (n % 7 + 1)}
            for n in range(self.items)
        ]
        (self.folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        path = self.folder / "batch.toml"
        path.write_text(BATCH.format(url=self.url, price=PRICE))
        return path


def get(provider: Provider, path: str) -> bytes:
    """A read of the provider's own account."""
    request = urllib.request.Request(provider.url + path, headers={"Authorization": "Bearer sim_secret_token"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


def test_a_batch_of_calls_killed_again_and_again(tmp_path: Path) -> None:
    """0 records paid twice, every output present, the ledger's total is the statement's to the millionth."""
    provider = Provider.start(
        tmp_path, keys="ignored", latency="5ms", lookup_lag="300ms", token_price=PRICE,
        probability={"reset_after": 0.03, "cut_after": 0.02},
    )  # fmt: skip
    try:
        job = Calls(tmp_path, provider.url, RECORDS)
        job.write()
        kills = sum(kill_at(job.start(), provider, RECORDS * (k + 1) // (KILLS + 1)) for k in range(KILLS))
        code, last, err = job.run("--no-reconcile", timeout=1200)
        assert code == 0, err
        assert kills == KILLS and last["items"]["committed"] == RECORDS
        executed = provider.executed()
        assert len(executed) == RECORDS and set(executed.values()) == {1}
        _check_outputs(job, provider)
        lost = last["calls"]["lookups"]
        assert lost >= RECORDS // 50, "hardly an answer was lost: the test shows nothing"
        _check_books(job, provider, last["money"]["USDC"]["committed"])
        if FULL:
            print(f"{RECORDS} records, {kills} kills, {lost} look-ups, {last['calls']['sent']} calls sent, "
                  f"{last['money']['USDC']['committed']} USDC")  # fmt: skip
    finally:
        provider.close()


def _check_outputs(job: Calls, provider: Provider) -> None:
    """The records are all there, in input order, each with the very answer of its execution."""
    code, _, err = job.command("results", str(job.folder / "batch.toml"), "--out", str(job.folder / "out.jsonl"))
    assert code == 0, err
    answers = {effect["ref"]: effect["detail"]["output"] for effect in provider.get("/_sim/effects")}
    records = [json.loads(line) for line in (job.folder / "out.jsonl").read_text().splitlines()]
    assert [record["item"] for record in records] == [f"r{n}" for n in range(RECORDS)]
    assert all(record["output"]["output"] == answers[record["item"]] for record in records)


def _check_books(job: Calls, provider: Provider, committed: str) -> None:
    """Ledger and statement agree entry by entry, and the exact costs with the provider's own totals by model."""
    (job.folder / "statement.csv").write_bytes(get(provider, "/v1/statement.csv"))
    code, found, err = job.command("reconcile", str(job.folder / "batch.toml"), "--statement", "statement.csv")
    assert code == 0, err
    assert found["classes"]["matched"] == RECORDS
    balance = found["balance"]["USDC"]
    assert balance["ledger"] == balance["statement"] == committed and balance["difference"] == "0.000000"
    code, costs, err = job.command("costs", str(job.folder / "batch.toml"), "--by", "model")
    assert code == 0, err
    exact: Counter[str] = Counter()
    for effect in provider.get("/_sim/effects"):
        exact[effect["target"]] += Decimal(effect["detail"]["exact_cost"])
    assert {group["value"]: Decimal(group["exact"]) for group in costs["groups"]} == dict(exact)


def test_paying_again_stays_within_its_limit_over_processes_and_kills(tmp_path: Path) -> None:
    """Neither keys nor look-up, answers lost, several processes, one of them killed: what is paid twice is counted, and bounded."""
    provider = Provider.start(
        tmp_path, keys="ignored", lookup=False, latency="20ms", token_price=PRICE, probability={"reset_after": 0.1}
    )
    records, limit = (2000, 60) if FULL else (90, 5)
    try:
        job = Calls(tmp_path, provider.url, records)
        file = job.write()
        text = file.read_text()
        text = text[: text.index("[provider.price]")]
        text = text.replace(
            'reference = "id"', 'reference = "id"\nbilled = "cost"\nbilled_unit = "major"\nbilled_currency = "currency"'
        )
        text = text.replace("concurrency = 64", 'concurrency = 8\nreserve = {USDC = "0.001000"}')
        text = text.replace(
            'timeout = "1s"', f'timeout = "1s"\non_unknown = "pay_again"\npay_again_limit = {{USDC = "0.{limit:03}"}}'
        )
        file.write_text(text)
        code, _, err = job.command("plan", str(file))
        assert code == 0, err
        first, *others = [job.start("--no-reconcile") for _ in range(3 if FULL else 2)]
        assert kill_at(first, provider, records // 3)
        for process in others:
            process.communicate(timeout=600)
        code, last, err = job.run("--no-reconcile", timeout=600)
        items, cost = last["items"], last["cost"]["USDC"]
        assert code == (1 if items["unknown"] else 0), err
        assert items["committed"] + items["unknown"] == records
        assert 0 < cost["paid_again"] <= limit and cost["paid_again_amount"] == f"0.{cost['paid_again']:03}000"
        executed = provider.executed()
        again = Counter(
            f["item"] for f in job.command("findings", str(file))[1]["findings"] if f["class"] == "paid_again"
        )
        assert sum(again.values()) == cost["paid_again"]
        assert all(count <= 1 + again[item] for item, count in executed.items())
        # Everything was executed but what a killed process had only intended.
        assert len(executed) >= records - 8
    finally:
        provider.close()
