"""What ``plan`` says of a sealed batch whose [provider] has changed: what ``run`` would say, and nothing is sent."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Desk

BATCH = """\
[batch]
id = "refunds"
operation = "refund"
input = "refunds.csv"
[item]
id = "request"
target = "charge"
amount = "amount"
currency = {value = "USD"}
[ledger]
url = "sqlite:payonce.db"
[provider]
kind = "http"
base_url = "http://127.0.0.1:9"
account = "acme"
headers = {Authorization = "Bearer ${PLAN_TOKEN}"}
[provider.call]
path = "/v1/refunds"
json = {charge = "{charge}"}
reference = "id"
billed = "amount"
billed_unit = "minor"
[provider.key]
header = "Idempotency-Key"
retention = "24h"
"""


@pytest.fixture
def sealed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A sealed batch against an address where nobody listens."""
    monkeypatch.setenv("PLAN_TOKEN", "tok-1234567890")
    (desk.folder / "refunds.csv").write_text("request,charge,amount\nR1,ch_1,5.00\n")
    (desk.folder / "batch.toml").write_text(BATCH)
    assert desk("plan", "batch.toml").code == 0
    return desk


@pytest.mark.parametrize(
    ("old", "new", "code", "named"),
    [
        ('"http://127.0.0.1:9"', '"https://api.example.com"', "other_provider", ": base_url"),
        ('"/v1/refunds"', '"/v2/refunds"', "other_provider", ": call.path"),
        ('"Idempotency-Key"', '"X-Key"', "other_provider", ": key.header"),
        ('{charge = "{charge}"}', '{charge = "{charge}", a = 1}', "other_provider", ": call.json"),
        ('account = "acme"', 'account = "other"', "other_account", "'other'"),
        ('retention = "24h"', 'retention = "1 day"', "bad_setting", "retention"),
        ('billed_unit = "minor"', 'billed_unit = "cents"', "bad_setting", '"major", "minor"'),
    ],
)
def test_plan_refuses_what_run_refuses(sealed: Desk, old: str, new: str, code: str, named: str) -> None:
    """Another address, path, key, body or account than was sealed, or a setting that cannot be used: the same exit code,
    error and words from both, with the setting named; put back, the plan holds again."""
    (sealed.folder / "batch.toml").write_text(BATCH.replace(old, new))
    planned, run = sealed("plan", "batch.toml", "--json"), sealed("run", "batch.toml", "--json")
    assert planned.code == run.code == 2
    assert planned.json["error"] == run.json["error"]
    assert planned.json["error"]["code"] == code
    assert named in planned.json["error"]["message"] + planned.json["error"]["hint"]
    (sealed.folder / "batch.toml").write_text(BATCH)
    assert sealed("plan", "batch.toml").code == 0


def test_what_may_be_corrected_is_no_difference(sealed: Desk) -> None:
    """How answers are read and how long a call takes may change between runs."""
    text = BATCH.replace('reference = "id"', 'reference = "refund.id"').replace(
        "account =", 'timeout = "3s"\naccount ='
    )
    (sealed.folder / "batch.toml").write_text(text)
    assert sealed("plan", "batch.toml").code == 0


def test_without_credentials_the_plan_says_what_it_did_not_compare(
    sealed: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sealed batch is still shown where the credentials are not at hand, with a warning."""
    monkeypatch.delenv("PLAN_TOKEN")
    said = sealed("plan", "batch.toml")
    assert said.code == 0
    assert "[provider] was not compared" in said.err and "PLAN_TOKEN" in said.err


def test_work_names_the_setting_too(sealed: Desk) -> None:
    """``work`` does not plan, and refuses in the same words."""
    (sealed.folder / "batch.toml").write_text(BATCH.replace('"/v1/refunds"', '"/v2/refunds"'))
    said = sealed("work", "batch.toml", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "other_provider")
    assert said.json["error"]["message"].endswith(": call.path")
