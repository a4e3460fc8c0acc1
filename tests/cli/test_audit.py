"""``payonce audit``, ``reverse`` and ``adopt``: a script that restarted from zero, found out, undone and taken over."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Desk

ITEMS = "charge_id,amount,currency\n" + "".join(f"ch_{n},10.00,USD\n" for n in range(1, 7))
HEADER = "refund_id,charge_id,amount,currency,created\n"
# The script died after ch_3 and began again from the start: ch_1 to ch_3 were refunded twice. ch_6 never was, ch_5 was
# refunded with another amount, and there was an earlier, legitimate partial refund of ch_4.
ROWS = [
    "re_0,ch_4,2.00,USD,2025-08-01T10:00:00Z",
    *[f"re_{n},ch_{n},10.00,USD,2025-09-04T10:00:0{n}Z" for n in (1, 2, 3)],
    *[f"re_{n}b,ch_{n},10.00,USD,2025-09-04T11:00:0{n}Z" for n in (1, 2, 3, 4)],
    "re_5,ch_5,11.00,USD,2025-09-04T11:00:05Z",
]
MAP = """
[statement]
reference = "refund_id"
target = "charge_id"
amount = "amount"
currency = "currency"
time = "created"
"""


@pytest.fixture
def script(desk: Desk) -> Desk:
    """The files of a run without a ledger."""
    (desk.folder / "items.csv").write_text(ITEMS)
    (desk.folder / "statement.csv").write_text(HEADER + "\n".join(ROWS) + "\n")
    (desk.folder / "map.toml").write_text(MAP)
    return desk


def audit(desk: Desk, *more: str) -> list[str]:
    """The arguments of the audit."""
    return ["audit", "--items", "items.csv", "--statement", "statement.csv", "--map", "map.toml", "--json", *more]


def test_every_item_is_sorted_and_the_earliest_execution_stays(script: Desk) -> None:
    """Three too often, one never, one with a wrong amount; the earlier partial refund is other business."""
    said = script(*audit(script, "--since", "2025-09-01"))
    assert said.code == 1, said.err
    assert said.json["items"] == {"exactly_one": 1, "none": 1, "more_than_one": 3, "wrong_amount": 1}
    assert [(e["item"], e["reference"], e["kept"]) for e in said.json["extras"]] == [
        (f"ch_{n}", f"re_{n}b", f"re_{n}") for n in (1, 2, 3)
    ]
    assert said.json["none"] == ["ch_6"] and said.json["outside_the_window"] == 1
    assert said.json["wrong_amount"][0]["amount"] == "11.00"


def test_many_debits_under_one_reference_are_one_finding(script: Desk) -> None:
    """What only the provider's side names is listed, together with its number."""
    more = [f"re_s,ch_stranger,3.00,USD,2025-09-04T12:00:{n:02}Z" for n in range(21)]
    (script.folder / "statement.csv").write_text(HEADER + "\n".join([*ROWS, *more]) + "\n")
    said = script(*audit(script, "--since", "2025-09-01"))
    (stranger,) = said.json["unexplained"]
    assert (stranger["name"], stranger["count"], stranger["amount"]) == ("re_s", 21, "63.00")


def test_reversing_twice_reverses_once_and_then_the_audit_is_clean(script: Desk) -> None:
    """The reversal is a batch under the same contract, named after what it undoes."""
    assert script(*audit(script, "--since", "2025-09-01", "--out", "audit.json")).code == 1
    how = script.folder / "how.toml"
    how.write_text('[provider]\nkind = "simulator"\nstate = "provider.jsonl"\n')
    how.write_text(how.read_text() + "# undoing is a call of this API\n")
    said = script("reverse", "audit.json", "--out", "reversal.csv", "--provider", "how.toml", "--json")
    assert said.code == 0, said.err
    assert said.json["items"] == 3 and said.json["totals"] == {"USD": "30.00"}
    rows = list(csv.DictReader((script.folder / "reversal.csv").open(newline="")))
    assert [row["reference"] for row in rows] == ["re_1b", "re_2b", "re_3b"]
    again = script("reverse", "audit.json", "--out", "reversal.csv", "--provider", "how.toml", "--json")
    assert again.json["batch_file"] == said.json["batch_file"]
    undone = [f"re_{n}b,ch_{n},-10.00,USD,2025-09-05T10:00:0{n}Z" for n in (1, 2, 3)]
    (script.folder / "statement.csv").write_text(HEADER + "\n".join([*ROWS, *undone]) + "\n")
    after = script(*audit(script, "--since", "2025-09-01"))
    assert after.json["items"]["more_than_one"] == 0 and after.json["items"]["exactly_one"] == 4
    assert after.json["extras"] == [] and after.json["undone"] == 3


def test_without_a_way_to_undo_there_is_a_work_list(script: Desk) -> None:
    """Amounts, references and customers for people; no batch file that would only fail."""
    script(*audit(script, "--since", "2025-09-01", "--out", "audit.json"))
    said = script("reverse", "audit.json", "--out", "list.csv", "--json")
    assert said.code == 0 and said.json["batch_file"] is None
    assert len(list(csv.DictReader((script.folder / "list.csv").open(newline="")))) == 3


def log(desk: Desk, entries: list[dict[str, str] | str]) -> None:
    """An old script's log; a text stands as it is."""
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    (desk.folder / "old.jsonl").write_text("\n".join(lines))


def test_what_an_old_log_proves_is_adopted_and_the_rest_runs(desk: Desk) -> None:
    """Executed items are committed with evidence, started ones unknown, the others planned; the run sends those only."""
    desk.write(items=6)
    log(desk, [
        {"item": "R1", "refund_id": "re_old1", "at": "2025-09-04T10:00:00Z"}, {"item": "R2", "status": "sending"},
        {"item": "R2", "refund_id": "re_old2"}, {"item": "R3", "status": "sending"}, '{"item": "R4", "sta',
    ])  # fmt: skip
    said = desk("adopt", "batch.toml", "--from", "old.jsonl", "--json")
    assert said.code == 1, said.err
    assert said.json["adopted"] == ["R1", "R2"] and said.json["unknown"] == ["R3"] and said.json["torn_line"] == 5
    assert said.json["items"]["planned"] == 3
    rows = [said.json[name] for name in ("rows", "rows_used", "rows_ignored", "ignored")]
    assert rows == [5, 4, 1, [{"row": 5, "why": "cut off"}]]
    shown = desk("show", "refunds", "R1", "--json").json
    assert shown["item"]["state"] == "committed" and shown["item"]["reference"] == "re_old1"
    assert shown["events"][-1]["data"]["file"] == "old.jsonl"
    assert desk("adopt", "batch.toml", "--from", "old.jsonl", "--json").json["items"]["already"] == 3
    assert desk("run", "batch.toml", "--yes", "--quiet").code == 1
    assert desk.effects() == 3
    assert desk("show", "refunds", "R3", "--json").json["item"]["state"] == "unknown"


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"item": "R1", "refund_id": "re_1", "amount": "9.00", "currency": "USD"}, "other_amount"),
        ({"item": "R1", "refund_id": "re_1", "amount": "10.00", "currency": "EUR"}, "other_amount"),
        ({"item": "R99", "refund_id": "re_99"}, "not_in_batch"),
    ],
)
def test_a_log_that_contradicts_the_batch_is_refused_whole(desk: Desk, entry: dict[str, str], code: str) -> None:
    """Exit 2, the contradiction named, nothing written."""
    desk.write(items=3)
    log(desk, [{"item": "R2", "refund_id": "re_2"}, entry])
    said = desk("adopt", "batch.toml", "--from", "old.jsonl", "--json")
    assert said.code == 2
    assert said.json["error"]["problems"][0]["code"] == code
    assert desk("status", "refunds", "--json").json["items"]["committed"] == 0


def test_one_reference_for_two_items_refuses_the_file(desk: Desk) -> None:
    """Both lines are named; so is a reference that another item is committed with. No item is left planned unseen."""
    desk.write(items=3)
    log(desk, [{"item": "R1", "refund_id": "re_a"}, {"item": "R2", "refund_id": "re_a"}])
    said = desk("adopt", "batch.toml", "--from", "old.jsonl", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "reference_taken")
    assert "lines 1 and 2" in said.json["error"]["message"]
    log(desk, [{"item": "R1", "refund_id": "re_a"}])
    assert desk("adopt", "batch.toml", "--from", "old.jsonl", "--json").json["adopted"] == ["R1"]
    log(desk, [{"item": "R2", "refund_id": "re_a"}])
    said = desk("adopt", "batch.toml", "--from", "old.jsonl", "--json")
    assert said.code == 2 and said.json["error"]["problems"][0]["code"] == "reference_taken"


def test_one_reference_with_two_amounts_refuses_the_file(desk: Desk) -> None:
    """No line is dropped for another one that happens to fit the batch."""
    desk.write(items=1)
    entry = {"item": "R1", "refund_id": "re_1", "currency": "USD"}
    log(desk, [{**entry, "amount": "10.0"}, {**entry, "amount": "10.00"}, {**entry, "amount": "9.00"}])
    said = desk("adopt", "batch.toml", "--from", "old.jsonl", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "other_amount")
    assert "lines 1 and 3" in said.json["error"]["message"]


def test_a_line_that_is_no_success_proves_nothing(desk: Desk) -> None:
    """With a reference too: unknown, never committed and never planned, unless other lines prove it."""
    desk.write(items=6)
    log(desk, [
        {"item": "R1", "refund_id": "re_1", "status": "failed"}, {"item": "R2", "refund_id": "re_2", "status": "geplatzt"},
        {"item": "R3", "refund_id": "re_3", "status": "pending"}, {"item": "R3", "refund_id": "re_3", "status": "Succeeded"},
        {"item": "R4", "refund_id": "re_4", "status": "succeeded"}, {"item": "R4", "refund_id": "re_4", "status": "failed"},
        {"item": "R5", "refund_id": "re_5a", "status": "failed"}, {"item": "R5", "refund_id": "re_5b", "status": "succeeded"},
    ])  # fmt: skip
    said = desk("adopt", "batch.toml", "--from", "old.jsonl", "--json")
    assert said.json["unknown"] == ["R1", "R2", "R4"] and said.json["adopted"] == ["R3", "R5"]
    assert said.json["items"]["planned"] == 1 and said.json["duplicates"] == []


def test_a_batch_with_problems_is_not_adopted_and_leaves_no_ledger(desk: Desk) -> None:
    """The input is put right first; nothing is made for it."""
    desk.write(items=1)
    desk.rows(["R1,ch_1,1.005"])
    log(desk, [{"item": "R1", "refund_id": "re_1"}])
    said = desk("adopt", "batch.toml", "--from", "old.jsonl", "--json")
    assert said.code == 2 and said.json["error"]["problems"]
    assert not (desk.folder / "payonce.db").exists()


def test_every_row_of_a_log_is_used_or_ignored_with_the_reason(desk: Desk) -> None:
    """Lines that are blank, that say that nothing happened, and a table's title are named; in words and in JSON."""
    desk.write(items=3)
    log(
        desk,
        [
            {"item": "R1", "refund_id": "re_1"},
            "",
            {"item": "R2", "status": "skipped"},
            {"item": "R3", "status": "sent"},
        ],
    )
    said = desk("adopt", "batch.toml", "--from", "old.jsonl", "--json").json
    assert (said["rows"], said["rows_used"], said["rows_ignored"]) == (4, 2, 2)
    assert said["ignored"] == [{"row": 2, "why": "blank"}, {"row": 3, "why": "says that nothing happened"}]
    assert "4 rows read, 2 used, 2 ignored" in desk("adopt", "batch.toml", "--from", "old.jsonl").err
    (desk.folder / "old.csv").write_text("old run of May\n\nitem,refund_id\nR1,re_1\n")
    said = desk("adopt", "batch.toml", "--from", "old.csv", "--json").json
    assert said["rows"] == said["rows_used"] + said["rows_ignored"] and said["rows_used"] == 1


def test_executed_twice_according_to_the_log_is_one_commit_and_a_finding(desk: Desk) -> None:
    """The earliest is committed, the other becomes a duplicate that reverse can undo."""
    desk.write(items=2)
    log(desk, [{"item": "R1", "refund_id": "re_a"}, {"item": "R1", "refund_id": "re_b"}])
    said = desk("adopt", "batch.toml", "--from", "old.jsonl", "--json")
    assert said.code == 1 and said.json["duplicates"][0]["reference"] == "re_b"
    found = desk("findings", "refunds", "--json").json["findings"]
    assert [(f["class"], f["item"]) for f in found] == [("duplicate", "R1")]
    undo = desk("reverse", "refunds", "--out", "undo.csv", "--json")
    assert undo.json["items"] == 1 and Path(desk.folder / "undo.csv").exists()
