"""Steering and deciding: every change needs what it needs, takes effect, and is in the trail."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Desk


@pytest.fixture
def doubtful(desk: Desk) -> Desk:
    """Three items of a provider with neither keys nor look-up; the answer for R2 was lost."""
    desk.write(items=3, provider='keys = false\nlookup = false\nscript = {R2 = ["reset_after"]}')
    assert desk("run", "batch.toml", "--json").code == 1
    return desk


def state(desk: Desk, item: str) -> str:
    return str(desk("show", "refunds", item, "--json").json["item"]["state"])


def test_a_paused_batch_sends_nothing_until_resumed(desk: Desk) -> None:
    """``run`` of a paused batch ends with 4 and says what to do; after ``resume`` it goes on."""
    desk.write()
    desk("plan", "batch.toml")
    assert desk("pause", "refunds", "--reason", "wait", "--json").json["state"] == "paused"
    held = desk("run", "batch.toml", "--json")
    assert held.code == 4
    assert held.json["calls"]["sent"] == 0
    assert desk("resume", "refunds").code == 0
    assert desk("run", "batch.toml", "--json").code == 0


def test_a_cancelled_batch_is_over(desk: Desk) -> None:
    """What was planned is skipped for good, with its code; a run sends nothing."""
    desk.write()
    desk("plan", "batch.toml")
    assert desk("cancel", "refunds", "--reason", "wrong file", "--json").json["items"]["skipped"] == 5
    assert desk("items", "refunds", "--state", "skipped", "--limit", "1", "--json").lines[0]["code"] == "cancelled"
    assert desk("run", "batch.toml", "--json").json["calls"]["sent"] == 0
    assert desk("resume", "refunds", "--json").code == 2
    assert desk("retry", "refunds", "R1", "--reason", "x", "--json").code == 2


def test_a_refused_item_is_retried_under_a_new_key(desk: Desk) -> None:
    """``retry`` gives a new generation; the next run sends it."""
    desk.write(items=2, provider='script = {R1 = ["refuse:card_declined"]}')
    assert desk("run", "batch.toml", "--json").code == 1
    said = desk("retry", "refunds", "--reason", "the customer called", "--json")
    assert [(item["item"], item["state"], item["generation"]) for item in said.json["retried"]] == [
        ("R1", "planned", 1)
    ]
    assert desk("run", "batch.toml", "--json").code == 0
    assert desk.effects() == 2


def test_only_refused_and_skipped_items_are_retried(doubtful: Desk) -> None:
    """An unknown item is resolved, never retried; nothing changes for the others named."""
    said = doubtful("retry", "refunds", "R2", "--reason", "x", "--json")
    assert said.code == 2
    assert "payonce resolve" in said.json["error"]["hint"]
    assert state(doubtful, "R2") == "unknown"


def test_an_unknown_item_is_committed_on_a_persons_word(doubtful: Desk) -> None:
    """With reference and amount; the reason and the person are in the trail, and the batch ends with 0."""
    said = doubtful(
        "resolve", "refunds", "R2", "--as", "committed", "--reference", "re_x", "--amount", "10.00", "--reason", "seen",
        "--json",
    )  # fmt: skip
    assert said.json["item"]["state"] == "committed"
    assert said.json["item"]["billed"] == "10.00"
    last = doubtful("show", "refunds", "R2", "--json").json["events"][-1]
    assert (last["type"], last["reason"]) == ("commit", "seen")
    assert doubtful("run", "batch.toml", "--json").code == 0


def test_one_execution_settles_one_item(doubtful: Desk) -> None:
    """The reference of a committed item is refused for another one; nothing changes."""
    listed = doubtful("items", "refunds", "--state", "committed", "--json").out.splitlines()
    taken = json.loads(listed[0])["reference"]
    words = ("resolve", "refunds", "R2", "--as", "committed", "--amount", "10.00", "--reason", "seen", "--json")
    said = doubtful(*words, "--reference", taken)
    assert (said.code, said.json["error"]["code"]) == (2, "reference_taken")
    assert state(doubtful, "R2") == "unknown"


def test_another_billed_amount_is_kept_and_said(doubtful: Desk) -> None:
    """Refused without a word of its own; with it the item is committed with what was billed, and the difference stays."""
    words = ("resolve", "refunds", "R2", "--as", "committed", "--reference", "r", "--reason", "seen")
    for wrong in (("--amount", "1000.00"), ("--amount", "10.00", "--currency", "EUR")):
        refused = doubtful(*words, *wrong, "--json")
        assert (refused.code, refused.json["error"]["code"]) == (2, "amount_differs")
        assert state(doubtful, "R2") == "unknown"
    said = doubtful(*words, "--amount", "10.01", "--other-amount")
    assert said.code == 0
    found = doubtful("findings", "refunds", "--json").json["findings"]
    assert [(f["class"], f["item"]) for f in found] == [("amount_mismatch", "R2")]
    assert "amount_mismatch" in said.err
    assert doubtful("show", "refunds", "R2", "--json").json["item"]["billed"] == "10.01"


def test_an_unknown_item_is_planned_again_with_a_new_key(doubtful: Desk) -> None:
    """The next run sends it; the finished batch is open again."""
    said = doubtful("resolve", "refunds", "R2", "--as", "planned", "--reason", "not there", "--json")
    assert (said.json["item"]["state"], said.json["item"]["generation"]) == ("planned", 1)
    assert doubtful("run", "batch.toml", "--json").code == 0


def test_resolving_needs_what_it_needs(doubtful: Desk) -> None:
    """Committed needs reference and amount; the others take none; a reason is never empty."""
    assert doubtful("resolve", "refunds", "R2", "--as", "committed", "--reason", "x", "--json").code == 2
    missing = doubtful("resolve", "refunds", "R2", "--as", "committed", "--reference", "r", "--reason", "x", "--json")
    assert missing.json["error"]["code"] == "amount_needed"
    assert missing.json["error"]["hint"].endswith(" was asked for")
    extra = doubtful("resolve", "refunds", "R2", "--as", "refused", "--reference", "r", "--reason", "x", "--json")
    assert extra.code == 2
    assert doubtful("resolve", "refunds", "R2", "--as", "refused", "--reason", " ", "--json").code == 2
    assert doubtful("resolve", "refunds", "R1", "--as", "refused", "--reason", "x", "--json").code == 2
    assert state(doubtful, "R2") == "unknown"
