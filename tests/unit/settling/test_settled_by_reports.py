"""Accepted is not done: Adyen's reports say what became of refunds, and the ledger takes it as settlement."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from payonce.core.model import Actor
from payonce.reconcile.report import Report, document
from payonce.service.reconciling import Asked, reconcile_files
from tests.unit.settling.settlekit import Desk, adyen_event

SETTLEMENT = (
    "Company Account,Merchant Account,Psp Reference,Merchant Reference,Payment Method,Creation Date,TimeZone,Type,"
    "Modification Reference,Gross Currency,Gross Debit (GC),Gross Credit (GC),Exchange Rate,Net Currency,Net Debit (NC),"
    "Net Credit (NC),Commission (NC),Markup (NC),Scheme Fees (NC),Interchange (NC),Payment Method Variant,"
    "Modification Merchant Reference,Batch Number\n"
)
ACCOUNTING = (
    "Company Account,Merchant Account,Psp Reference,Merchant Reference,Payment Method,Creation Date,TimeZone,Record Type,"
    "Modification Psp Reference,Main Currency,Main Amount,Modification Merchant Reference\n"
)


def now() -> str:
    """The time as the reports write it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())


def settlement_row(n: int, kind: str, *, credit: bool = False) -> str:
    """A row of the settlement detail report about item rN."""
    sides = ",12.50" if credit else "12.50,"
    return f"Co,Shop,target-{n},order,visa,{now()},UTC,{kind},ref-{n},USD,{sides},1,USD,{sides},0,0,0,0,visaclassic,r{n},3\n"


def accounting_row(n: int, kind: str) -> str:
    """A row of the payment accounting report about item rN."""
    return f"Co,Shop,target-{n},order,visa,{now()},UTC,{kind},ref-{n},USD,12.50,r{n}\n"


def reconciled(desk: Desk, text: str, *, apply: bool = True) -> Report:
    """The report of a statement file."""
    path = desk.folder / f"report{len(list(desk.folder.iterdir()))}.csv"
    path.write_text(text)
    return reconcile_files(desk.ledger, Asked("b", (path,), apply=apply), actor=Actor("ops"))


@pytest.mark.parametrize(
    "text",
    [
        SETTLEMENT + settlement_row(1, "Refunded"),
        ACCOUNTING + accounting_row(1, "SentForRefund") + accounting_row(1, "Refunded"),
    ],
)
def test_refunded_is_settled(tmp_path: Path, text: str) -> None:
    """Once, with the report and its row as evidence, and only where it was asked for."""
    desk = Desk.of(tmp_path, "adyen")
    seen = reconciled(desk, text, apply=False)
    assert document(seen)["arrived"] == {"items": 1, "recorded": 0}
    assert (desk.settlement("r1"), desk.events()) == ("pending", [])
    done = reconciled(desk, text)
    assert document(done)["arrived"] == {"items": 1, "recorded": 1}
    assert (desk.settlement("r1"), desk.settlement("r2")) == ("succeeded", "pending")
    (event,) = desk.events()
    assert event["data"]["statement"] == done.statement.sha256
    assert (event["data"]["proves"], event["settlement"]) == ("settled", "succeeded")
    assert document(reconciled(desk, text))["arrived"] == {"items": 0, "recorded": 0}
    assert len(desk.events()) == 1
    assert desk.ledger.check() == ()


def test_sent_for_refund_settles_nothing(tmp_path: Path) -> None:
    """It is on its way."""
    desk = Desk.of(tmp_path, "adyen")
    text = ACCOUNTING + accounting_row(1, "SentForRefund") + accounting_row(2, "Refunded")
    reconciled(desk, text)
    assert (desk.settlement("r1"), desk.settlement("r2")) == ("pending", "succeeded")


def test_a_refund_that_failed_after_it_was_refunded_came_back(tmp_path: Path) -> None:
    """Each report adds to what is known; a finding is opened, and nothing is planned again."""
    desk = Desk.of(tmp_path, "adyen")
    reconciled(desk, SETTLEMENT + settlement_row(1, "Refunded") + settlement_row(2, "Refunded"))
    reconciled(desk, SETTLEMENT + settlement_row(1, "RefundedReversed", credit=True) + settlement_row(2, "Refunded"))
    assert (desk.settlement("r1"), desk.settlement("r2")) == ("returned", "succeeded")
    assert "status_mismatch" in [finding.kind for finding in desk.ledger.findings("b")]
    assert [event["settlement"] for event in desk.events()] == ["succeeded", "succeeded", "returned"]
    item = desk.ledger.item("b", "r1")
    assert item is not None and item.state == "committed"


def test_a_refund_that_failed(tmp_path: Path) -> None:
    """It never arrived; a webhook that says so later adds nothing."""
    desk = Desk.of(tmp_path, "adyen")
    reconciled(desk, ACCOUNTING + accounting_row(1, "RefundFailed") + accounting_row(2, "Refunded"))
    assert (desk.settlement("r1"), desk.settlement("r2")) == ("failed", "succeeded")
    hook = desk.file("late.jsonl", adyen_event("REFUND", "false"))
    assert desk.settle(hook).changed == {}


def test_reports_and_webhooks_agree_whatever_comes_first(tmp_path: Path) -> None:
    """A webhook first, then the report: the report has nothing to add, and the other way round."""
    desk = Desk.of(tmp_path, "adyen")
    assert desk.settle(desk.file("ok.jsonl", adyen_event("REFUND", "true"))).changed == {"succeeded": 1}
    report = SETTLEMENT + settlement_row(1, "Refunded") + settlement_row(2, "Refunded")
    assert document(reconciled(desk, report))["arrived"] == {"items": 1, "recorded": 1}
    failed = desk.file(
        "failed.jsonl", adyen_event("REFUND_FAILED", "true", pspReference="ref-2", merchantReference="r2")
    )
    assert desk.settle(failed, unsigned=True).changed == {"returned": 1}
    assert (desk.settlement("r1"), desk.settlement("r2")) == ("succeeded", "returned")
    again = reconciled(desk, report)
    assert desk.settlement("r2") == "returned"
    assert document(again)["arrived"] == {"items": 0, "recorded": 0}
