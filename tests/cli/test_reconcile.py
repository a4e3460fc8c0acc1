"""``payonce reconcile``: a real run on the built-in provider against its own statement, honest and with faults put in."""

from __future__ import annotations

import csv
import io
import json
import time
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from payonce.providers.simulator import open_world, parse
from payonce.providers.simulator.statement import statement_csv
from tests.cli.conftest import Desk

LATER_US = 10**15


@pytest.fixture
def ran(desk: Desk) -> Desk:
    """A finished batch of eight refunds of 10.00."""
    desk.write(items=8)
    assert desk("run", "batch.toml", "--yes", "--quiet").code == 0
    return desk


def rows(desk: Desk) -> list[dict[str, str]]:
    """The provider's statement of the run."""
    world = open_world(parse({"state": str(desk.folder / "provider.jsonl")}))
    account = world.store.effects[0].account
    text = statement_csv(world.store, config=world.config, account=account, asked={}, now=4 * LATER_US)
    world.close()
    return list(csv.DictReader(io.StringIO(text)))


def save(desk: Desk, found: list[dict[str, str]], name: str = "statement.csv") -> str:
    """Writes a statement."""
    with (desk.folder / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    return name


def balances(report: dict[str, Any]) -> None:
    """Ledger + findings = statement, recomputed from the document alone."""
    for currency, sums in report["balance"].items():
        deltas = Decimal(0)
        for found in report["discrepancies"]:
            if found["ledger_amount"] is None:
                continue
            if found["currency"] == currency:
                deltas -= Decimal(found["ledger_amount"])
            if found["statement_currency"] == currency:
                deltas += Decimal(found["statement_amount"])
        assert Decimal(sums["ledger"]) + deltas == Decimal(sums["statement"])
        assert Decimal(sums["explained"]) == deltas == Decimal(sums["difference"])


def test_an_honest_statement_finds_nothing(ran: Desk) -> None:
    """Every item matched, both sums equal, exit 0, and the reconciliation is in the trail."""
    said = ran("reconcile", "refunds", "--statement", save(ran, rows(ran)), "--json")
    assert said.code == 0, said.err
    assert said.json["classes"] == {**dict.fromkeys(said.json["classes"], 0), "matched": 8}
    usd = said.json["balance"]["USD"]
    assert (usd["ledger"], usd["statement"], usd["difference"]) == ("80.00", "80.00", "0.00")
    assert said.json["statement"]["rows"] == 8 and len(said.json["statement"]["sha256"]) == 64
    balances(said.json)


def test_each_fault_is_one_finding_of_its_class(ran: Desk) -> None:
    """A wrong amount, another currency, a row gone, a stranger, a second execution and a return, all at once."""
    found = rows(ran)
    found[1]["amount"] = "1250"
    found[2]["currency"] = "eur"
    del found[3]
    stranger = {**found[0], "refund_id": "re_stranger", "charge": "ch_other", "idempotency_key": "", "reference": ""}
    twice = {**found[0], "refund_id": "re_again"}
    back = {**found[5], "type": "refund_failure", "amount": "-1000"}
    said = ran("reconcile", "refunds", "--statement", save(ran, [*found, stranger, twice, back]), "--json",
               "--from", "2000-01-01", "--to", "2100-01-01")  # fmt: skip
    assert said.code == 1, said.err
    classes = {kind: count for kind, count in said.json["classes"].items() if count}
    assert classes == {"matched": 4, "amount_mismatch": 1, "currency_mismatch": 1, "missing_at_provider": 1,
                       "missing_in_ledger": 1, "duplicate": 1, "status_mismatch": 1}  # fmt: skip
    balances(said.json)
    by_class = {found["class"]: found for found in said.json["discrepancies"]}
    assert by_class["amount_mismatch"]["ledger_amount"] == "10.00"
    assert by_class["amount_mismatch"]["statement_amount"] == "12.50"
    assert by_class["duplicate"]["reference"] == "re_again" and by_class["duplicate"]["item"]


def test_a_finding_has_a_life(ran: Desk) -> None:
    """It is opened once, resolved with a reason, and the same statement does not open it again."""
    found = rows(ran)
    found[1]["amount"] = "1250"
    name = save(ran, found)
    first = ran("reconcile", "refunds", "--statement", name, "--json").json
    again = ran("reconcile", "refunds", "--statement", name, "--json").json
    assert first["discrepancies"][0]["finding"] == again["discrepancies"][0]["finding"]
    number = str(first["discrepancies"][0]["finding"])
    assert ran("findings", "refunds").code == 1
    assert ran("findings", "refunds", "--resolve", number).code == 2
    assert ran("findings", "refunds", "--acknowledge", number, "--reason", "asked support").code == 0
    assert ran("findings", "refunds", "--resolve", number, "--reason", "credited by support").code == 0
    assert ran("reconcile", "refunds", "--statement", name, "--json").code == 0
    shown = ran("findings", "refunds", "--json").json["findings"]
    assert [step["state"] for step in shown[0]["steps"]] == ["acknowledged", "resolved"]
    found[1]["amount"] = "1300"
    assert ran("reconcile", "refunds", "--statement", save(ran, found), "--json").code == 1


def test_money_that_comes_back_is_settled_with_apply_and_never_sent_again(ran: Desk) -> None:
    """``--apply`` records the return; the next reconciliation with the same statement finds nothing."""
    found = rows(ran)
    back = {**found[5], "type": "refund_failure", "amount": "-1000"}
    name = save(ran, [*found, back])
    said = ran("reconcile", "refunds", "--statement", name, "--apply", "--json")
    assert said.code == 1, said.err
    assert [change["proves"] for change in said.json["applied"]] == ["returned"]
    item = said.json["applied"][0]["item"]
    shown = ran("show", "refunds", item, "--json").json
    assert (shown["item"]["state"], shown["item"]["settlement"]) == ("committed", "returned")
    assert shown["events"][-1]["data"]["rows"] == [7, 10]
    again = ran("reconcile", "refunds", "--statement", name, "--json")
    assert again.code == 0 and again.json["classes"]["matched"] == 8
    balances(again.json)


@pytest.mark.parametrize("change", ["other ids", "other currency", "other time"])
def test_a_statement_that_is_not_the_batchs_is_refused(ran: Desk, change: str) -> None:
    """Never matched at zero: exit 2 with the reason, and nothing is written."""
    found = rows(ran)
    for number, row in enumerate(found):
        if change != "other time":
            row |= {"refund_id": f"re_x{number}", "idempotency_key": "", "reference": "", "charge": "elsewhere"}
        if change == "other currency":
            row["currency"] = "eur"
        if change == "other time":
            row |= {
                "created": "2001-01-01T00:00:00Z",
                "refund_id": f"re_x{number}",
                "idempotency_key": "",
                "reference": "",
            }
    events = len(ran("show", "refunds", "R1", "--json").json["events"])
    # A period of its own: that of rows in whole seconds may end before the last answer came.
    period = () if change == "other time" else ("--from", "2001-01-01", "--to", "2100-01-01")
    said = ran("reconcile", "refunds", "--statement", save(ran, found), *period, "--json")
    assert said.code == 2
    codes = {"other ids": "nothing_matches", "other currency": "wrong_currency", "other time": "wrong_period"}
    assert said.json["error"]["code"] == codes[change]
    assert len(ran("show", "refunds", "R1", "--json").json["events"]) == events
    assert ran("findings", "refunds", "--json").json["findings"] == []


def test_a_period_in_whole_seconds_covers_its_last_second(ran: Desk) -> None:
    """``--to`` a second means all of it, as a row time in whole seconds does; the same where the file declares it."""
    found = rows(ran)
    last = max(row["created"] for row in found)[:19]
    for row in found:
        row["created"] = row["created"][:19] + "Z"
    name = save(ran, found)
    said = ran(
        "reconcile", "refunds", "--statement", name, "--from", "2000-01-01T00:00:00Z", "--to", f"{last}Z", "--json"
    )
    assert said.json["classes"]["matched"] == 8 and said.json["classes"]["not_covered"] == 0, said.json
    assert (
        said.json["statement"]["to"]
        == ran("reconcile", "refunds", "--statement", name, "--json").json["statement"]["to"]
    )
    declared = {"from": "2000-01-01T00:00:00Z", "to": f"{last}Z", "data": found}
    (ran.folder / "statement.json").write_text(json.dumps(declared))
    shown = ran("reconcile", "refunds", "--statement", "statement.json", "--json").json
    assert shown["statement"]["to"] == said.json["statement"]["to"] and shown["classes"]["matched"] == 8


def test_the_reports_are_safe_to_open(ran: Desk) -> None:
    """CSV cells cannot be formulas, the page stands alone and escapes what it shows."""
    found = rows(ran)
    evil = {
        **found[0],
        "refund_id": '=HYPERLINK("http://x","<script>")',
        "idempotency_key": "",
        "reference": "",
        "charge": "",
    }
    said = ran("reconcile", "refunds", "--statement", save(ran, [*found, evil]), "--csv", "out", "--html", "page.html")
    assert said.code in (1, 2)
    evil["refund_id"] = "@SUM(A1)<script>"
    said = ran("reconcile", "refunds", "--statement", save(ran, [*found, evil]), "--csv", "out", "--html", "page.html")
    assert said.code == 1, said.err
    (row,) = csv.DictReader((ran.folder / "out" / "missing_in_ledger.csv").open(newline=""))
    assert row["reference"].startswith("'@") and row["statement_amount"] == "10.00"
    page = (ran.folder / "page.html").read_text()
    assert "<script>" not in page and "http" not in page.replace("http-equiv", "")
    assert "80.00" in page and "90.00" in page


def test_the_terminal_shows_the_equation(ran: Desk) -> None:
    """For people: both sums, what explains the difference, the classes."""
    found = rows(ran)
    found[1]["amount"] = "1250"
    said = ran("reconcile", "refunds", "--statement", save(ran, found))
    assert said.code == 1
    for text in ("80.00", "2.50", "82.50", "amount_mismatch", "R"):
        assert text in said.out


def test_the_provider_itself_can_be_asked(ran: Desk) -> None:
    """Its look-up for each item is a statement: everything matched."""
    said = ran("reconcile", "batch.toml", "--from-provider", "--json")
    assert said.code == 0, said.err
    assert said.json["classes"]["matched"] == 8 and said.json["statement"]["period"] == "asked"
    assert ran("reconcile", "refunds", "--from-provider").code == 2
    audited = ran("audit", "--items", "batch.toml", "--from-provider", "batch.toml", "--json")
    assert audited.code == 0, audited.err
    assert audited.json["items"]["exactly_one"] == 8


def test_a_mapping_whose_reference_is_our_own_still_matches(ran: Desk) -> None:
    """The batch file that `init` writes maps the provider's `reference` column, which repeats our id."""
    (ran.folder / "map.toml").write_text(
        '[statement]\nreference = "reference"\nkey = "idempotency_key"\namount_minor = "amount"\ncurrency = "currency"\n'
        'time = "created"\n'
    )
    said = ran("reconcile", "refunds", "--statement", save(ran, rows(ran)), "--map", "map.toml", "--json")
    assert said.code == 0, said.json["discrepancies"] if said.out else said.err
    assert said.json["classes"]["matched"] == 8


def test_a_statement_decides_unknown_items(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executed and the answer lost: committed with the row as evidence. Never executed: planned again, under a new key."""
    script = 'script = {R2 = ["reset_after"], R3 = ["reset_before"]}'
    desk.write(items=4, provider=f"keys = false\nlookup = false\n{script}")
    assert desk("run", "batch.toml", "--yes", "--json").json["items"]["unknown"] == 2
    period = ("--from", "2000-01-01", "--to", "2100-01-01")
    name = save(desk, rows(desk))
    undecided = desk("reconcile", "refunds", "--statement", name, "--json").json
    assert undecided["undecided"] == ["R3"], "the period ends with the last row: absence proves nothing yet"
    said = desk("reconcile", "refunds", "--statement", name, "--apply", "--json", *period)
    assert [change["item"] for change in said.json["applied"]] == ["R2"], "no statement covers the future"
    later = time.time_ns() + 3600 * 10**9
    monkeypatch.setattr("payonce.service.reconciling.time", SimpleNamespace(time_ns=lambda: later))
    said = desk("reconcile", "refunds", "--statement", name, "--apply", "--json", *period)
    assert [(change["item"], change["proves"]) for change in said.json["applied"]] == [("R3", "not_executed")]
    balances(said.json)
    shown = desk("show", "refunds", "R2", "--json").json
    assert shown["item"]["state"] == "committed" and shown["events"][-1]["data"]["by"] == "statement"
    found = desk("findings", "refunds", "--json").json["findings"]
    assert [(f["class"], f["item"], f["state"]) for f in found] == [("status_mismatch", "R2", "resolved")]
    third = desk("show", "refunds", "R3", "--json").json["item"]
    assert third["state"] == "planned" and third["generation"] == 1
    assert desk("run", "batch.toml", "--yes", "--quiet").code == 0
    assert len(rows(desk)) == 4
    assert desk("reconcile", "refunds", "--statement", save(desk, rows(desk)), "--json").code == 0


def test_a_statement_that_is_not_there_names_the_option(ran: Desk) -> None:
    """The word a person typed is the one to check, not a setting of the batch's input."""
    said = ran("reconcile", "refunds", "--statement", "nofile.csv")
    assert said.code == 2 and "nofile.csv does not exist; check --statement" in said.err
    said = ran("adopt", "batch.toml", "--from", "nofile.csv", "--statement")
    assert said.code == 2 and "nofile.csv does not exist; check --from" in said.err


def test_what_the_provider_was_asked_has_no_file_and_no_start(ran: Desk) -> None:
    """The look-up's name ends the line, and the period goes up to the moment it was asked for."""
    said = ran("reconcile", "batch.toml", "--from-provider")
    first, second = said.out.splitlines()[:2]
    assert first == "refunds against simulator look-up"
    assert second.startswith("8 rows read, 8 used, 0 ignored; period up to 20")
    ran("reconcile", "batch.toml", "--from-provider", "--html", "page.html")
    page = (ran.folder / "page.html").read_text()
    assert "1970" not in page and "look-up:" not in page and "up to 20" in page


def test_the_sample_reads_the_built_in_provider_s_statement(desk: Desk) -> None:
    """The [statement] that ``init`` writes fits the statement that the provider it is written for gives."""
    from payonce.reconcile.mapping import read_mapping
    from payonce.reconcile.statement import Wanted, read_statement
    from payonce.service.tomltext import read_toml

    desk.write(items=3)
    assert desk("run", "batch.toml", "--yes", "--quiet").code == 0
    assert desk("init", "sample").code == 0
    table = read_toml(desk.folder / "sample" / "batch.toml", what="batch file")[0]["statement"]
    path = desk.folder / save(desk, rows(desk))
    read = read_statement([path], Wanted("refund", read_mapping(table)))
    assert sorted(entry.owns for entry in read.entries) == [("R1",), ("R2",), ("R3",)]
    assert all(entry.reference and entry.reference.startswith("re_") and entry.keys for entry in read.entries)
    assert read.coverage.from_us is not None
