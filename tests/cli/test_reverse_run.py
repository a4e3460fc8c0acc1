"""Undoing what a run without a ledger did too often, end to end: audit, reversal batch, run, audit again."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Desk
from tests.cli.fakestripe import FakeStripe, serving

SEEN = 1_796_000_000
BATCH = """
[batch]
id = "refunds"
operation = "refund"
input = "refunds.csv"
[item]
id = "request"
target = "charge"
amount = "amount"
currency = {value = "USD"}
[provider]
kind = "stripe"
base_url = "URL"
timeout = "2s"
max_execution = "100ms"
"""
TRANSFERS = """
[item]
id = "invoice"
amount = "amount"
currency = "currency"
[statement]
reference = "id"
own_reference = "invoice"
amount_minor = "amount"
currency = "currency"
time = "created"
type = "type"
types = {transfer = "execution", transfer_reversal = "reversal"}
parent = "parent"
"""


@pytest.fixture
def stripe(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStripe]:
    """The provider, with a test key."""
    monkeypatch.setenv("STRIPE_API_KEY", "sk_test_marked_reversal")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as server:
        yield server


def transfers(desk: Desk, stripe: FakeStripe) -> None:
    """The provider's statement of its transfers and of what was reversed."""
    rows = []
    for n, one in enumerate(stripe.transfers.values()):
        invoice = f"inv-{n % 3}"
        rows.append([one["id"], invoice, "transfer", one["amount"], "usd", one["created"], ""])
        rows += [
            [r["id"], "", "transfer_reversal", -r["amount"], "usd", r["created"], one["id"]] for r in one["reversals"]
        ]
    with (desk.folder / "statement.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "invoice", "type", "amount", "currency", "created", "parent"], *rows])


def audited(desk: Desk) -> dict:
    return desk(
        "audit", "--items", "items.csv", "--statement", "statement.csv", "--map", "map.toml", "--operation", "transfer",
        "--out", "audit.json", "--json",
    ).json  # fmt: skip


def point_at(desk: Desk, stripe: FakeStripe) -> None:
    """The written batch file, with this provider's address and a patience that suits it."""
    file = desk.folder / "undo.toml"
    text = file.read_text().replace("https://api.stripe.com", stripe.url).replace('lag = "2s"', 'lag = "50ms"')
    if "max_execution" not in text:
        text = text.replace('kind = "http"\n', 'kind = "http"\ntimeout = "2s"\nmax_execution = "100ms"\n')
    file.write_text(text)


@pytest.mark.parametrize("lost", [0, 2])
def test_transfers_are_reversed_once_whatever_happens(desk: Desk, stripe: FakeStripe, lost: int) -> None:
    """Two of three were made twice; answers get lost; run and reverse are repeated; then exactly one is left for each."""
    for n in range(5):
        stripe.transfer(1000 + n % 3, created=SEEN + n)
    (desk.folder / "items.csv").write_text(
        "invoice,amount,currency\n" + "".join(f"inv-{n},10.0{n},USD\n" for n in range(3))
    )
    (desk.folder / "map.toml").write_text(TRANSFERS)
    transfers(desk, stripe)
    assert audited(desk)["items"]["more_than_one"] == 2
    words = ("reverse", "audit.json", "--out", "undo.csv", "--kind", "stripe", "--json")
    made = desk(*words).json
    assert (made["items"], made["by_call"], made["totals"]) == (2, 2, {"USD": "20.01"})
    point_at(desk, stripe)
    stripe.lose = lost
    said = desk("run", "undo.toml", "--yes", "--json")
    assert said.code == 0, said.err
    assert said.json["items"]["committed"] == 2
    for _ in range(2):
        assert desk("run", "undo.toml", "--yes", "--quiet").code == 0
        assert desk(*words).json["items"] == 0, "the ledger has them in a reversal already"
    assert sorted(stripe.writes) == ["/v1/transfers/tr_3/reversals", "/v1/transfers/tr_4/reversals"]
    transfers(desk, stripe)
    after = audited(desk)
    assert after["items"] == {"exactly_one": 3, "none": 0, "more_than_one": 0, "wrong_amount": 0}
    assert after["extras"] == after["unexplained"] == []


def test_a_pending_refund_is_cancelled_and_a_final_one_is_left_to_people(desk: Desk, stripe: FakeStripe) -> None:
    """The batch's own provider, address and credential; what Stripe will not cancel is on the list only."""
    (desk.folder / "refunds.csv").write_text("request,charge,amount\nR1,ch_1,10.00\nR2,ch_2,10.00\nR3,ch_3,10.00\n")
    (desk.folder / "batch.toml").write_text(BATCH.replace("URL", stripe.url))
    for charge in ("ch_1", "ch_2", "ch_3"):
        stripe.refund(charge, 1000, created=SEEN, status="succeeded")
    stripe.refund("ch_1", 1000, created=SEEN + 5)
    stripe.refund("ch_2", 1000, created=SEEN + 5, status="succeeded")
    words = ("audit", "--items", "batch.toml", "--from-provider", "batch.toml", "--out", "audit.json", "--json")
    found = desk(*words).json
    assert found["items"]["more_than_one"] == 2
    assert {e["reference"]: e["pending"] for e in found["extras"]} == {"re_3": True, "re_4": False}
    made = desk("reverse", "audit.json", "--out", "undo.csv", "--kind", "stripe", "--json").json
    assert (made["items"], made["by_call"]) == (2, 1)
    assert [row["reference"] for row in csv.DictReader((desk.folder / "undo.csv").open(newline=""))] == ["re_3", "re_4"]
    point_at(desk, stripe)
    for _ in range(2):
        assert desk("run", "undo.toml", "--yes", "--quiet").code == 0
    assert stripe.writes == ["/v1/refunds/re_3/cancel"]
    after = desk(*words).json
    assert after["items"]["exactly_one"] == 2 and [e["reference"] for e in after["extras"]] == ["re_4"]


def test_duplicates_of_a_batch_are_undone_with_its_own_settings(desk: Desk, stripe: FakeStripe) -> None:
    """Somebody refunded once more beside the ledger; the reversal takes address and credential from the sealed batch."""
    (desk.folder / "refunds.csv").write_text("request,charge,amount\nR1,ch_1,10.00\nR2,ch_2,10.00\n")
    (desk.folder / "batch.toml").write_text(BATCH.replace("URL", stripe.url))
    assert desk("run", "batch.toml", "--yes", "--quiet").code == 0
    mine = stripe.refunds["re_0"]
    stripe.refund("ch_1", 1000, created=mine["created"] + 1, metadata=mine["metadata"])
    assert desk("reconcile", "batch.toml", "--from-provider", "--json").json["classes"]["duplicate"] == 1
    assert desk("reverse", "refunds", "--out", "undo.csv", "--json").json["by_call"] == 1
    point_at(desk, stripe)
    text = (desk.folder / "undo.toml").read_text()
    assert stripe.url in text and "${STRIPE_API_KEY}" in text and "sk_test" not in text
    stripe.lose = 1
    said = desk("run", "undo.toml", "--yes", "--json")
    assert said.code == 0, said.err
    assert [one["status"] for one in stripe.refunds.values()] == ["pending", "pending", "canceled"]
    assert desk("audit", "--items", "batch.toml", "--from-provider", "batch.toml", "--json").json["extras"] == []
    assert desk("reverse", "refunds", "--out", "undo2.csv", "--json").json["already"] == ["re_2"]
    # The cancellation is committed under the id of what it cancelled; a report that does not show that it came back still says
    # that it was executed once too often.
    (desk.folder / "map.toml").write_text(TRANSFERS.partition("type =")[0])
    rows = [["id", "invoice", "amount", "currency", "created"]]
    rows += [
        [name, f"R{one['charge'][-1]}", one["amount"], "usd", one["created"]] for name, one in stripe.refunds.items()
    ]
    with (desk.folder / "statement.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    said = desk("reconcile", "refunds", "--statement", "statement.csv", "--map", "map.toml", "--json")
    assert [(d["class"], d["reference"]) for d in said.json["discrepancies"]] == [("duplicate", "re_2")]
    assert (
        said.json["elsewhere"] == [] and desk("reverse", "refunds", "--out", "undo3.csv", "--json").json["items"] == 0
    )


def test_the_provider_s_listing_is_adopted(desk: Desk, stripe: FakeStripe) -> None:
    """What an old script refunded becomes committed with the listing as evidence; only the remainder is sent."""
    (desk.folder / "refunds.csv").write_text("request,charge,amount\nR1,ch_1,10.00\nR2,ch_2,10.00\nR3,ch_3,10.00\n")
    (desk.folder / "batch.toml").write_text(BATCH.replace("URL", stripe.url))
    stripe.refund("ch_1", 1000, created=SEEN - 10**6, status="succeeded")
    stripe.refund("ch_1", 1000, created=SEEN, status="succeeded")
    stripe.refund("ch_2", 1000, created=SEEN, status="pending")
    said = desk("adopt", "batch.toml", "--from", "batch.toml", "--since", "2026-11-29", "--json")
    assert said.code == 0, said.err
    assert said.json["adopted"] == ["R1", "R2"] and said.json["items"]["planned"] == 1
    shown = desk("show", "refunds", "R1", "--json").json
    assert (shown["item"]["state"], shown["item"]["reference"]) == ("committed", "re_1")
    evidence = shown["events"][-1]["data"]
    assert evidence["by"] == "adopt" and evidence["file"] == "stripe look-up" and len(evidence["sha256"]) == 64
    assert desk("show", "refunds", "R2", "--json").json["item"]["settlement"] == "pending"
    again = desk("adopt", "batch.toml", "--from", "batch.toml", "--since", "2026-11-29", "--json")
    assert again.json["items"]["already"] == 2, json.dumps(again.json)
    assert desk("run", "batch.toml", "--yes", "--quiet").code in (0, 1)
    assert stripe.writes == ["/v1/refunds"] and stripe.refunds["re_3"]["charge"] == "ch_3"
