"""Items beside what is known of their targets: the published cases, and the same faults on other values."""

from __future__ import annotations

import csv
from typing import Any

from payonce.core.model import NewItem
from payonce.core.money import Money, parse_minor
from payonce.intake.plan_checks import TargetState, against_snapshot, overlaps
from tests.unit.intake.intakekit import CASES, case

BY_KEY: dict[str, Any] = {"id": "op_key", "target": "charge_id", "amount": "amount", "currency": "currency"}


def snapshot(name: str) -> dict[str, TargetState]:
    """The charges of one of the cases' files."""
    with (CASES / name).open(encoding="utf-8", newline="") as file:
        return {
            row["charge_id"]: TargetState(
                row["currency"],
                parse_minor(row["captured"], row["currency"]),
                parse_minor(row.get("already_refunded", "0"), row["currency"]),
                row.get("disputed") == "yes",
            )
            for row in csv.DictReader(file)
        }


def held(name: str, against: str, **mapping: Any) -> dict[str, str]:
    """Code by id of what is held of a case's items."""
    with case(name, **mapping) as intake:
        return {entry.item: entry.code for entry in against_snapshot(intake.items(), snapshot(against))}


def test_partial_refunds_that_exceed_their_charge_are_held_together() -> None:
    """5.00 and 7.50 of 10.00: neither is sent; of the whole file three operations are left."""
    found = held("duplicates_input.csv", "charges_snapshot.csv", **BY_KEY)
    assert found == {"order-3-a": "over_remaining", "order-3-b": "over_remaining"}
    with case("duplicates_input.csv", **BY_KEY) as intake:
        assert [item.id for item in intake.items() if item.id not in found] == [
            "order-1",
            "order-2-line-1",
            "order-2-line-2",
        ]


def test_an_amount_in_another_currency_than_its_charge_is_held() -> None:
    """GBP on an INR charge and EUR on a HUF charge; ``inr`` is INR."""
    assert held("currency_mismatch.csv", "charges_snapshot.csv", **BY_KEY) == {
        "fx-1": "other_currency",
        "fx-2": "other_currency",
    }


def test_mangled_ids_match_nothing_by_likeness() -> None:
    """What survived reading is sent only where the provider has exactly it."""
    mapping = {"id": "op_ref", "target": "charge_id", "amount": "amount", "currency": "currency"}
    with case("excel_mangled_ids.csv", **mapping) as intake:
        entries = against_snapshot(intake.items(), snapshot("excel_mangled_ids_snapshot.csv"))
        assert {entry.item: entry.code for entry in entries} == {"2": "no_such_target", "7": "no_such_target"}
        assert "'00123456' differs only" in entries[1].message
        sent = [item.id for item in intake.items() if item.id not in {entry.item for entry in entries}]
        assert sent == ["4", "5", "6"]


def test_ids_that_differ_in_case_are_reported_and_not_matched() -> None:
    """CH_9XYZ is neither of the two charges it looks like."""
    charges = {"ch_9XyZ": TargetState("USD", 1000), "ch_9xYz": TargetState("USD", 2500)}
    mapping = {"id": "op_key", "target": "charge_id", "amount": "amount", "currency": "currency"}
    with case("statement_ids_case_ops.csv", **mapping) as intake:
        (entry,) = against_snapshot(intake.items(), charges)
        assert (entry.item, entry.code) == ("k3", "no_such_target")
        assert "differs only in case" in entry.message


def test_disputed_used_up_and_unpriced_targets() -> None:
    """A disputed charge is left alone; nothing is taken from where nothing is left; a call without money fits."""
    charges = snapshot("charges_snapshot.csv")
    items = [
        NewItem("a", Money("1.00", "USD"), "ch_7"),
        NewItem("b", Money("20.00", "USD"), "ch_8"),
        NewItem("c", Money("1.00", "USD"), "ch_9"),
        NewItem("d", None, "ch_1"),
    ]
    assert [(entry.item, entry.code) for entry in against_snapshot(items, charges)] == [
        ("a", "over_remaining"),
        ("c", "disputed"),
    ]
    assert "0.00 USD is left on ch_7" in against_snapshot(items, charges)[0].message


def test_one_payment_under_two_ids_is_an_overlap() -> None:
    """The charge of the first batch is the intent of the second, which the map of ids tells."""
    with (CASES / "charge_map.csv").open(encoding="utf-8", newline="") as file:
        canonical = {row["payment_intent"]: row["charge_id"] for row in csv.DictReader(file)}
    with case("batch_a_by_charge.csv", id="charge_id", amount="amount", currency="currency") as first:
        acted_on = {item.id: "batch-a" for item in first.items()}
    with case("batch_b_by_payment_intent.csv", id="payment_intent", amount="amount", currency="currency") as second:
        found = list(overlaps(second.items(), acted_on, canonical=canonical))
        assert [(entry.item, entry.batch) for entry in found] == [("pi_3FakeP1", "batch-a")]
        assert list(overlaps(second.items(), acted_on)) == []
