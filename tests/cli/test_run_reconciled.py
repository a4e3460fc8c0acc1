"""The provider's own account is part of a run's final report, and what it decides can be applied."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payonce.core.commands import BatchCommand, Control, Landed
from payonce.ledger.actors import this_actor
from payonce.service import reconciling_run
from payonce.service.opening import opened
from tests.cli.conftest import Desk
from tests.unit.ledger.ledgers import intent


def events(desk: Desk) -> int:
    """How many reconciliations are in the trail."""
    with opened(f"sqlite:{desk.folder / 'payonce.db'}", read_only=True) as ledger:
        return sum(b'"reconciled"' in event.body for event in ledger.events("refunds"))


def change(lines: list[dict[str, Any]], minor: int) -> list[dict[str, Any]]:
    """The provider's books with another amount, or, where it is the same, with one execution more."""
    first = next(line for line in lines if "effect" in line)
    if first["effect"]["amount_minor"] != minor:
        first["effect"]["amount_minor"] = minor
        return lines
    return [*lines, {"effect": first["effect"] | {"id": "re_again", "key": None}}]


def executed_before(desk: Desk) -> None:
    """The provider's books as an old script left them: one refund, without any reference of ours."""
    effect = {"id": "re_old", "operation": "refund", "ref": None, "key": None, "target": "ch_1", "amount_minor": 1000,
              "currency": "usd", "executed_at": 1_790_000_000_000_000, "digest": "00", "account": "acct_sim",
              "detail": {"metadata": {}}}  # fmt: skip
    (desk.folder / "provider.jsonl").write_text(json.dumps({"effect": effect}) + "\n")


def test_a_run_ends_with_what_the_provider_shows(desk: Desk) -> None:
    """Everything matched, to the minor unit; a finished batch that is run again asks nobody unless told to."""
    desk.write(items=6)
    said = desk("run", "batch.toml", "--yes", "--json")
    assert said.code == 0, said.err
    proof = said.json["reconciliation"]
    assert proof["asked"] and not proof["found"] and proof["classes"]["matched"] == 6
    usd = proof["balance"]["USD"]
    assert usd["ledger"] == usd["statement"] == "60.00" and len(proof["statement"]) == 64
    assert events(desk) == 1
    assert desk("run", "batch.toml", "--yes", "--json").json["reconciliation"] is None
    assert events(desk) == 1
    assert desk("run", "batch.toml", "--yes", "--reconcile", "--json").json["reconciliation"]["classes"]["matched"] == 6
    assert "6 matched" in desk("run", "batch.toml", "--yes", "--reconcile").out


def test_it_can_be_left_out_and_is_not_made_unasked_where_it_costs_much(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many items: the report says what it would take. ``--no-reconcile``: nothing is asked."""
    desk.write(items=4)
    assert desk("run", "batch.toml", "--yes", "--no-reconcile", "--json").json["reconciliation"] is None
    desk.rows([f"S{n},ch_s{n},10.00" for n in range(4)])
    text = (desk.folder / "batch.toml").read_text().replace('id = "refunds"', 'id = "more"')
    (desk.folder / "batch.toml").write_text(text)
    monkeypatch.setattr(reconciling_run, "UNASKED_ITEMS", 3)
    proof = desk("run", "batch.toml", "--yes", "--json").json["reconciliation"]
    assert not proof["asked"] and "--reconcile" in proof["why"]


def test_a_provider_that_cannot_be_asked_is_said_and_fails_nothing(desk: Desk) -> None:
    """Without a look-up the run ends as it would, and the report says why."""
    desk.write(items=3, provider="lookup = false")
    said = desk("run", "batch.toml", "--yes", "--json")
    assert said.code == 0
    assert (said.json["reconciliation"]["asked"], said.json["reconciliation"]["code"]) == (False, "no_lookup")


def test_what_is_still_pending_is_no_finding(desk: Desk) -> None:
    """Cancelled while a call was in flight: the next run decides it, so nothing is compared yet."""
    desk.write(items=3)
    desk("plan", "batch.toml")
    url = f"sqlite:{desk.folder / 'payonce.db'}"
    with opened(url) as ledger:
        worker = ledger.join("refunds", actor=this_actor(), lease_us=60_000_000)
        ledger.control("refunds", Control(BatchCommand.START), actor=this_actor(), worker=worker)
        assert ledger.write(worker, [intent(1)]) == (Landed.LANDED,)
        ledger.leave(worker)
        ledger.control("refunds", Control(BatchCommand.CANCEL, reason="stop"), actor=this_actor())
    proof = reconciling_run.after_run(url, desk.folder / "batch.toml", batch="refunds", wished=True)
    assert not proof.document["asked"] and "pending" in proof.document["why"]
    assert events(desk) == 0


def test_a_provider_that_does_not_answer_holds_up_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unasked, the look-ups have a bound in time; the run ends as it would."""
    desk.write(items=3)
    monkeypatch.setattr(reconciling_run, "UNASKED_S", 0.0)
    said = desk("run", "batch.toml", "--yes", "--json")
    assert said.code == 0
    assert (said.json["reconciliation"]["asked"], said.json["reconciliation"]["code"]) == (False, "lookup_failed")


@pytest.mark.parametrize(("minor", "code"), [(1250, 4), (1000, 1)])
def test_what_the_provider_has_otherwise_is_a_finding_and_an_exit_code(desk: Desk, minor: int, code: int) -> None:
    """Another amount ends with 4, a second execution with 1; both are findings of the batch."""
    desk.write(items=3)
    assert desk("run", "batch.toml", "--yes", "--no-reconcile", "--quiet").code == 0
    path = desk.folder / "provider.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    changed = change(lines, minor)
    path.write_text("\n".join(json.dumps(line) for line in changed) + "\n")
    said = desk("run", "batch.toml", "--yes", "--reconcile", "--json")
    assert said.code == code, said.json["reconciliation"]
    kind = "amount_mismatch" if code == 4 else "duplicate"
    assert said.json["reconciliation"]["classes"][kind] == 1 and said.json["findings_open"] == 1
    assert [f["class"] for f in desk("findings", "refunds", "--json").json["findings"]] == [kind]


def test_an_adopted_item_that_was_only_started_is_decided_by_the_provider(desk: Desk) -> None:
    """Started and executed: committed. Started and not executed, at an unknown time: planned again and sent once."""
    desk.write(items=3)
    (desk.folder / "old.jsonl").write_text('{"item": "R1", "status": "sending"}\n{"item": "R2", "status": "sending"}\n')
    executed_before(desk)
    assert desk("adopt", "batch.toml", "--from", "old.jsonl", "--json").json["unknown"] == ["R1", "R2"]
    decided: dict[str, str] = {}
    for _ in range(100):
        # An unanswered call may still start for a while (max_execution): until then its absence proves nothing.
        said = desk("reconcile", "batch.toml", "--from-provider", "--apply", "--json")
        decided |= {change["item"]: change["proves"] for change in said.json["applied"]}
        if len(decided) == 2:
            break
    assert decided == {"R1": "executed", "R2": "not_executed"}
    shown = desk("show", "refunds", "R1", "--json").json["item"]
    assert (shown["state"], shown["reference"]) == ("committed", "re_old")
    assert desk("run", "batch.toml", "--yes", "--quiet").code == 0
    assert desk.effects() == 3


def test_a_batch_younger_than_the_look_ups_lag_is_not_covered(desk: Desk) -> None:
    """Nothing is shown yet: said in words, no finding and no refusal; what is older and missing is refused."""
    desk.write(items=3, provider='lookup_lag = "1h"')
    said = desk("run", "batch.toml", "--yes", "--json")
    assert said.code == 0, said.err
    proof = said.json["reconciliation"]
    assert proof["asked"] and not proof["found"] and proof["classes"]["not_covered"] == 3
    assert "too recent" in desk("run", "batch.toml", "--yes", "--reconcile").out
    desk.write(items=3)
    (desk.folder / "provider.jsonl").write_text("")
    text = (desk.folder / "batch.toml").read_text().replace('id = "refunds"', 'id = "gone"')
    (desk.folder / "batch.toml").write_text(text)
    desk.rows([f"S{n},ch_s{n},10.00" for n in range(3)])
    assert desk("run", "batch.toml", "--yes", "--no-reconcile", "--quiet").code == 0
    (desk.folder / "provider.jsonl").write_text("")
    gone = desk("run", "batch.toml", "--yes", "--reconcile", "--json").json["reconciliation"]
    assert (gone["asked"], gone["code"]) == (False, "nothing_matches") and "should show 3" in gone["why"]


def test_an_execution_of_an_item_that_was_not_sent_is_seen(desk: Desk) -> None:
    """Somebody else made it: the provider's account says so, as a file of the same books does."""
    desk.write(items=3)
    assert desk("run", "batch.toml", "--yes", "--quiet", "--no-reconcile").code == 0
    text = (desk.folder / "batch.toml").read_text().replace('id = "refunds"', 'id = "again"')
    (desk.folder / "batch.toml").write_text(text)
    desk.rows(["S2,ch_s2,10.00", "S3,ch_s3,10.00"])
    assert desk("plan", "batch.toml").code == 0 and desk("cancel", "again", "--yes").code == 0
    path = desk.folder / "provider.jsonl"
    lines = path.read_text().splitlines()
    other = json.loads(next(line for line in lines if '"R2"' in line and '"effect"' in line).replace("R2", "S2"))
    effect = other["effect"] | {"id": "re_by_hand", "key": None, "target": "ch_s2"}
    path.write_text("\n".join([*lines, json.dumps({"effect": effect})]) + "\n")
    said = desk("reconcile", "batch.toml", "--from-provider", "--json")
    assert said.json["classes"]["status_mismatch"] == 1 and said.json["discrepancies"][0]["item"] == "S2"
