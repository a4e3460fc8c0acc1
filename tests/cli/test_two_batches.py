"""Two batches of one ledger with the same item ids and targets: what one executed is no second execution of the other."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from payonce.core.commands import BatchCommand, Control
from payonce.core.model import Finding
from payonce.ledger.actors import this_actor
from payonce.providers.simulator import open_world, parse
from payonce.providers.simulator.statement import statement_csv
from payonce.reconcile import bulk
from payonce.service.opening import opened
from tests.cli.conftest import Desk

ITEMS = 3
OWN = '[statement]\nown_reference = "reference"\namount_minor = "amount"\ncurrency = "currency"\ntime = "created"\n'


@pytest.fixture
def months(desk: Desk) -> Desk:
    """October and November, the same three refunds in one ledger; November's run has compared both with the provider."""
    desk.write(items=ITEMS)
    text = (desk.folder / "batch.toml").read_text()
    for month in ("oct", "nov"):
        (desk.folder / f"{month}.toml").write_text(text.replace('id = "refunds"', f'id = "{month}"'))
    assert desk("run", "oct.toml", "--yes", "--quiet").code == 0
    return desk


def november(desk: Desk) -> dict[str, Any]:
    """November's run, as JSON."""
    said = desk("run", "nov.toml", "--yes", "--allow-overlap", "--reason", "monthly instalment", "--json")
    assert said.code == 0, said.out + said.err
    return said.json


def references(desk: Desk, batch: str) -> dict[str, str]:
    """What the items of a batch are committed with."""
    return {item["item"]: item["reference"] for item in desk("items", batch, "--json").lines}


def rows(desk: Desk) -> list[dict[str, str]]:
    """The provider's statement."""
    world = open_world(parse({"state": str(desk.folder / "provider.jsonl")}))
    text = statement_csv(world.store, config=world.config, account="acct_sim", asked={}, now=4 * 10**15)
    world.close()
    return list(csv.DictReader(io.StringIO(text)))


def save(desk: Desk, found: list[dict[str, str]]) -> str:
    """The statement as a file."""
    with (desk.folder / "statement.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    return "statement.csv"


def only_matched(document: dict[str, Any]) -> None:
    """Every item matched and nothing else; the other month's executions are listed apart."""
    assert {kind: count for kind, count in document["classes"].items() if count} == {"matched": ITEMS}
    usd = document["balance"]["USD"]
    assert usd["ledger"] == usd["statement"] == "30.00"


def test_the_end_of_the_second_run_finds_no_duplicates(months: Desk) -> None:
    """The provider shows both months on each target; a run ends with 0, and so does asking again for either month."""
    only_matched(november(months)["reconciliation"])
    for month, other in (("oct", "nov"), ("nov", "oct")):
        said = months("reconcile", f"{month}.toml", "--from-provider", "--json")
        assert said.code == 0, said.out
        only_matched(said.json)
        assert sorted(said.json["elsewhere"]) == sorted(references(months, other).values())


@pytest.mark.parametrize("large", [False, True])
def test_a_statement_of_both_months_is_compared_with_either(
    months: Desk, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """The usual way and the one for large files; a real second execution is still found, and it alone."""
    november(months)
    if large:
        monkeypatch.setattr(bulk, "LARGE", 0)
    found = rows(months)
    assert len(found) == 2 * ITEMS and len({row["reference"] for row in found}) == ITEMS
    for month in ("oct", "nov"):
        said = months("reconcile", month, "--statement", save(months, found), "--json")
        assert said.code == 0, said.out
        only_matched(said.json)
        assert len(said.json["elsewhere"]) == ITEMS
    again = {**found[0], "refund_id": "re_again", "idempotency_key": ""}
    said = months("reconcile", "nov", "--statement", save(months, [*found, again]), "--json")
    assert said.code == 1 and [d["reference"] for d in said.json["discrepancies"]] == ["re_again"]
    assert (
        "another batch of this ledger: 3 executions" in months("reconcile", "nov", "--statement", "statement.csv").err
    )


def test_a_statement_without_our_references_tells_the_months_by_key(months: Desk) -> None:
    """Keys are made from batch and item, so the other month's row is known by its key."""
    november(months)
    (months.folder / "map.toml").write_text(OWN + 'key = "idempotency_key"\n')
    name = save(months, rows(months))
    for month in ("oct", "nov"):
        said = months("reconcile", month, "--statement", name, "--map", "map.toml", "--json")
        assert said.code == 0, said.out
        only_matched(said.json)


def test_an_open_item_is_never_decided_by_the_other_months_execution(months: Desk) -> None:
    """November's item is unknown and was not executed: October's row of the same own reference proves nothing for it."""
    text = (months.folder / "nov.toml").read_text()
    faults = text.replace('state = "provider.jsonl"', 'state = "provider.jsonl"\nlookup = false\nkeys = false')
    (months.folder / "nov.toml").write_text(faults)
    assert months("plan", "nov.toml", "--allow-overlap", "--reason", "monthly").code == 0
    (months.folder / "log.jsonl").write_text('{"item": "R1", "status": "sending"}\n')
    assert months("adopt", "nov.toml", "--from", "log.jsonl", "--json").json["unknown"] == ["R1"]
    name = save(months, rows(months))
    said = months("reconcile", "nov", "--statement", name, "--apply", "--json")
    assert said.json["applied"] == [] and said.json["proofs"] == [], said.out
    assert sorted(said.json["elsewhere"]) == sorted(references(months, "oct").values())


def test_reverse_never_lists_what_an_item_of_the_ledger_is_committed_with(months: Desk) -> None:
    """Findings that an earlier version opened for October's executions: left out, said, and then resolved by a statement."""
    november(months)
    october, own = references(months, "oct"), references(months, "nov")
    with opened(f"sqlite:{months.folder / 'payonce.db'}") as ledger:
        facts = {"statement_amount": "10.00", "currency": "USD"}
        opening = [Finding("duplicate", item, {**facts, "fingerprint": f"f{reference}", "reference": reference}) for item, reference
                   in [*october.items(), ("R2", own["R2"]), ("R1", "re_again")]]  # fmt: skip
        note = Control(BatchCommand.NOTE, code="findings", findings=tuple(opening[:-1]))
        ledger.control("nov", note, actor=this_actor())
    assert months("reverse", "nov", "--out", "u.csv").out.strip() == "nothing to reverse"
    assert not (months.folder / "u.csv").exists()
    with opened(f"sqlite:{months.folder / 'payonce.db'}") as ledger:
        ledger.control("nov", Control(BatchCommand.NOTE, code="findings", findings=(opening[-1],)), actor=this_actor())
    (months.folder / "how.toml").write_text('[provider]\nkind = "simulator"\n')
    made = months("reverse", "nov", "--out", "u.csv", "--provider", "how.toml", "--json").json
    assert made["kept"] == sorted([*october.values(), own["R2"]])
    listed = list(csv.DictReader((months.folder / "u.csv").open(newline="")))
    assert [(row["reference"], row["kept"]) for row in listed] == [("re_again", own["R1"])]
    assert "1 execution to undo" in months("reverse", "nov", "--out", "u.csv", "--provider", "how.toml").out
    months("reconcile", "nov", "--statement", save(months, rows(months)), "--json")
    states = {f["reference"]: f["state"] for f in months("findings", "nov", "--json").json["findings"]}
    assert all(states[reference] == "resolved" for reference in october.values()) and states["re_again"] == "open"


def test_an_audit_of_the_same_executions_is_not_undone_either(months: Desk) -> None:
    """An audit counts by item id alone and calls one month's execution an extra; the ledger beside it knows better."""
    november(months)
    october, own = references(months, "oct"), references(months, "nov")
    extras = [
        {"item": item, "reference": own[item], "amount": "10.00", "currency": "USD", "kept": october[item]}
        for item in own
    ]
    (months.folder / "audit.json").write_text(json.dumps({"operation": "refund", "extras": extras}))
    made = months("reverse", "audit.json", "--out", "u.csv", "--json").json
    assert made["items"] == 0 and made["kept"] == sorted(own.values())


def test_of_an_item_without_a_reference_the_earliest_execution_stays(months: Desk) -> None:
    """A planned item was executed three times by hand, and the provider lists the latest first."""
    months.rows([f"R{n},ch_{n},10.00" for n in range(1, ITEMS + 1)] + ["S1,ch_s,10.00"])
    text = (months.folder / "oct.toml").read_text().replace('id = "oct"', 'id = "more"')
    (months.folder / "more.toml").write_text(text)
    assert months("plan", "more.toml", "--allow-overlap", "--reason", "monthly").code == 0
    sample = rows(months)[0] | {"reference": "S1", "charge": "ch_s", "idempotency_key": ""}
    hand = [sample | {"refund_id": f"re_{day}", "created": f"2026-11-{day}T00:00:00.000000Z"} for day in (30, 29, 28)]
    said = months("reconcile", "more", "--statement", save(months, hand), "--json")
    kinds = {d["reference"]: d["class"] for d in said.json["discrepancies"]}
    assert kinds == {"re_28": "status_mismatch", "re_29": "duplicate", "re_30": "duplicate"}, said.out
    months("reverse", "more", "--out", "u.csv")
    listed = list(csv.DictReader((months.folder / "u.csv").open(newline="")))
    assert [(row["reference"], row["kept"]) for row in listed] == [("re_29", "re_28"), ("re_30", "re_28")]
