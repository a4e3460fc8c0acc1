"""Every ready batch file runs as it is written against the simulated API that it is for; only its address is changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from payonce.service import ready
from tests.unit.calls.callkit import Calls

KEYS = {
    "openrouter": "OPENROUTER_API_KEY",
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "metered": "API_TOKEN",
    "aggregator": "AGGREGATOR_TOKEN",
}
# What the simulated provider takes for a token and for one of the answer, as the template's table has it.
PRICES = {
    "openrouter": {"token_price": "0.00000015", "completion_price": "0.0000006"},
    "openai": {"token_price": "0.00000015", "completion_price": "0.0000006"},
    "anthropic": {"token_price": "0.0000008", "completion_price": "0.000004"},
    "metered": {},
    "aggregator": {"multiplier": "0.8"},
}
RECORDS = 8


def ready_batch(calls: Calls, name: str, monkeypatch: pytest.MonkeyPatch, *, records: int = RECORDS) -> None:
    """The template in the folder, its address that of the simulator, its patience that of a test."""
    assert calls("init", "--template", name).code == 0
    monkeypatch.setenv(KEYS[name], "sk-test-123456")
    file = Path("batch.toml")
    text = file.read_text()
    for stated in ("https://openrouter.ai/api/v1", "https://api.openai.com/v1", "https://api.anthropic.com/v1"):
        text = text.replace(stated, calls.provider.url + ("/api/v1" if "openrouter" in stated else "/v1"))
    text = text.replace("http://127.0.0.1:8765", calls.provider.url)
    for setting, short in (("lag", "100ms"), ("max_execution", "200ms"), ("timeout", "2s")):
        text = re.sub(rf'^{setting} = "[^"]+"', f'{setting} = "{short}"', text, flags=re.MULTILINE)
    text = re.sub(r"^rate = .*\n", "", text, flags=re.MULTILINE)
    file.write_text(text)
    model = json.loads(Path("prompts.jsonl").read_text().splitlines()[0])["model"]
    Path("prompts.jsonl").write_text(ready.sample(model, records))
    calls.provider.configure(**PRICES[name])


@pytest.mark.parametrize("name", ready.NAMES)
def test_it_runs_and_its_total_is_the_providers(calls: Calls, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Answers are the text itself; the ledger's total is what was billed, to the millionth; the key is nowhere kept."""
    ready_batch(calls, name, monkeypatch)
    said = calls("run", "batch.toml", "--json")
    assert said.code == 0, said.out + said.err
    assert int(said.json["money"]["USDC"]["committed"].replace(".", "")) == calls.provider.spent() > 0
    found = calls.results()
    assert [r["item"] for r in found] == [f"record-{n:04}" for n in range(1, RECORDS + 1)]
    assert all(r["output"].startswith("answer ") and r["kept"]["model"] for r in found)
    assert b"sk-test-123456" not in b"".join(
        p.read_bytes() for p in Path().iterdir() if p.is_file() and p.name != "batch.toml"
    )
    assert set(calls.provider.executed()) == {r["item"] for r in found}


@pytest.mark.parametrize("name", ["openrouter", "metered", "aggregator"])
def test_lost_answers_are_found_and_the_statement_agrees(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Through the usage log, or by the id of the answer; nothing is paid twice, and the provider's export balances."""
    ready_batch(calls, name, monkeypatch)
    lost = "cut_after" if name == "openrouter" else "reset_after"
    calls.provider.configure(script={"record-0002": [lost], "record-0005": [lost]}, lookup_lag="50ms")
    said = calls("run", "batch.toml", "--json")
    assert (said.code, said.json["items"]["committed"]) == (0, RECORDS), said.out + said.err
    assert set(calls.provider.executed().values()) == {1}
    outputs = [r["output"] for r in calls.results()]
    # OpenRouter's look-up does not show the text again.
    assert outputs.count(None) == (2 if name == "openrouter" else 0)
    path = "/v1/activity.csv" if name == "openrouter" else "/v1/statement.csv"
    Path("statement.csv").write_bytes(calls.provider.get(path))
    said = calls("reconcile", "batch.toml", "--statement", "statement.csv", "--json")
    assert said.code == 0, said.out + said.err
    assert said.json["classes"]["matched"] == RECORDS
    assert said.json["balance"]["USDC"]["ledger"] == said.json["balance"]["USDC"]["statement"]


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_without_a_look_up_a_lost_answer_is_unknown(calls: Calls, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """It is never sent again by itself; what it may cost stays reserved."""
    ready_batch(calls, name, monkeypatch)
    calls.provider.configure(script={"record-0003": ["reset_after"]})
    said = calls("run", "batch.toml", "--json")
    assert (said.code, said.json["items"]["unknown"]) == (1, 1)
    assert said.json["cost"]["USDC"]["reserved"] != "0.000000"
    assert set(calls.provider.executed().values()) == {1}


@pytest.mark.parametrize("name", ready.NAMES)
def test_an_empty_account_stops_the_batch(calls: Calls, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Every one of them knows how its API says that there is no money left: nothing was executed, and it can go on later."""
    ready_batch(calls, name, monkeypatch, records=2)
    status, code = (429, "insufficient_quota") if name == "openai" else (402, "insufficient_credits")
    fault: dict[str, Any] = {"kind": "refuse", "status": status, "code": code}
    if name == "anthropic":
        fault |= {"status": 400, "message": "Your credit balance is too low to access the API."}
    calls.provider.configure(faults=[fault])
    said = calls("run", "batch.toml", "--json")
    assert (said.code, said.json["reason_code"]) == (4, code)
    assert not calls.provider.executed()
    calls.provider.configure(faults=[])
    again = calls("run", "batch.toml", "--json")
    assert (again.code, again.json["items"]["committed"]) == (0, 2)


def test_a_key_that_is_not_set_is_named(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is sealed or sent; and an unknown template names those there are."""
    ready_batch(calls, "openai", monkeypatch)
    monkeypatch.delenv("OPENAI_API_KEY")
    said = calls("run", "batch.toml", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "missing_variable") and "OPENAI_API_KEY" in said.json[
        "error"
    ]["message"]
    said = calls("init", "--template", "opanai", "elsewhere", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "unknown_template")


def test_a_wrong_credit_is_found(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """The aggregator credits its contributor too much for one call: official price times multiplier says how much."""
    ready_batch(calls, "aggregator", monkeypatch)
    calls.provider.configure(script={"record-0003": ["wrong_credit:5"]})
    assert calls("run", "batch.toml", "--json").code == 0
    Path("statement.csv").write_bytes(calls.provider.get("/v1/statement.csv"))
    said = calls("reconcile", "batch.toml", "--statement", "statement.csv", "--json")
    assert said.code == 1 and said.json["classes"]["credit_mismatch"] == 1
    assert [d["item"] for d in said.json["discrepancies"]] == ["record-0003"]


def test_an_export_settles_what_was_unknown(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """By our own reference: committed with what it cost; its answer stays lost, and its record says so."""
    ready_batch(calls, "openai", monkeypatch)
    calls.provider.configure(script={"record-0003": ["reset_after"]})
    assert calls("run", "batch.toml", "--json").code == 1
    Path("activity.csv").write_bytes(calls.provider.get("/v1/activity.csv"))
    Path("map.toml").write_text('[statement]\nrounding = "half_even"\n')
    said = calls("reconcile", "batch.toml", "--statement", "activity.csv", "--map", "map.toml", "--apply", "--json")
    assert [change["item"] for change in said.json["applied"]] == ["record-0003"]
    record = calls.results()[2]
    assert (record["state"], record["code"], record["output"]) == ("committed", "no_output", None)
    assert calls("status", "batch.toml", "--json").json["cost"]["USDC"]["reserved"] == "0.000000"
