"""Stripe's look-up: all pages or none, only what is ours, and what is failed told apart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from payonce.core.money import Money
from payonce.core.outcome import Found, LookupFailed
from payonce.core.states import Settlement
from payonce.providers.transport import Answer, Fault
from payonce.testing.provider_rig import Bench, answer
from tests.unit.stripe import stripekit as kit


def look(operation: str, *answers: Answer | Fault, step: int = 0) -> tuple[Any, list[str]]:
    """The reply to a look-up, and the paths that were read."""
    bench = Bench.of(kit.rig(operation, ()))
    reply = asyncio.run(bench.look(kit.item(operation, step), *answers, key="k" * 64))
    return reply, [request.path for request in bench.transport.sent]


def test_refunds_are_listed_by_their_charge_over_all_pages() -> None:
    """The cursor is the last entry's id; the result is oldest first."""
    first = kit.listed(kit.refund(id="re_3", created=30), kit.refund(id="re_2", created=20), more=True)
    reply, paths = look("refund", first, kit.listed(kit.refund(id="re_1", created=10)))
    assert isinstance(reply, Found)
    assert [one.reference for one in reply.executions] == ["re_1", "re_2", "re_3"]
    assert paths[0] == "/v1/refunds?limit=100&charge=ch_1"
    assert "starting_after=re_2" in paths[1]


def test_only_our_own_reference_of_this_batch_is_ours() -> None:
    """The same item id in another batch, or no metadata at all, is someone else's."""
    other = {**kit.OURS, "payonce_batch": "another"}
    reply, _ = look("refund", kit.listed(kit.refund(id="re_2", metadata=other), kit.refund(id="re_1", metadata={})))
    assert [one.own_reference for one in reply.executions] == [None, None]
    ours, _ = look("refund", kit.listed(kit.refund()))
    (one,) = ours.executions
    assert (one.own_reference, one.money, one.at_us) == ("r1", kit.MONEY, 1_800_000_000_000_000)


@pytest.mark.parametrize(("status", "failed"), [("failed", True), ("canceled", True), ("pending", False)])
def test_a_failed_refund_is_no_execution(status: str, failed: bool) -> None:
    """It is shown as failed, so that it is neither committed nor taken for absent."""
    reply, _ = look("refund", kit.listed(kit.refund(status=status)))
    assert reply.executions[0].failed is failed


@pytest.mark.parametrize(
    "bad",
    [
        answer(200, {"object": "list"}),
        answer(200, b"<html>"),
        answer(200, {"data": [{"object": "refund"}], "has_more": False}),
        answer(200, {"data": [], "has_more": True}),
        answer(404),
        answer(500),
        Fault("timeout", "gone"),
        kit.listed(kit.refund(amount=1.5)),
    ],
)
def test_a_list_that_is_not_whole_proves_nothing(bad: Answer | Fault) -> None:
    """Anything but well-formed pages up to the last one is a failed look-up."""
    reply, _ = look("refund", kit.listed(kit.refund(id="re_9"), more=True), bad)
    assert isinstance(reply, LookupFailed)


def test_a_moving_list_proves_nothing() -> None:
    """An entry on two pages means that another may be on none."""
    page = kit.listed(kit.refund(), more=True)
    reply, _ = look("refund", page, page)
    assert isinstance(reply, LookupFailed) and reply.code == "list_moved"


def test_load_and_credentials_are_told() -> None:
    """429 is load, with its wait; 401 stops."""
    limited, _ = look("refund", answer(429, None, Retry_After="3"))
    assert limited == LookupFailed(
        "rate_limited", "a read at the provider was answered with 429", load=True, retry_after_us=3_000_000
    )
    stopped, _ = look("refund", answer(401))
    assert stopped.stop


def test_each_operation_has_its_own_list() -> None:
    """Payouts by destination, transfers by the group that only this item has."""
    _, payouts = look("payout", kit.listed(kit.payout()))
    assert payouts == ["/v1/payouts?limit=100&destination=ba_1"]
    reply, transfers = look("transfer", kit.listed(kit.transfer(reversed=True)))
    assert transfers[0].startswith("/v1/transfers?limit=100&transfer_group=payonce_")
    assert reply.executions[0].settlement is Settlement.RETURNED


def test_an_invoice_is_looked_up_step_by_step() -> None:
    """The draft by customer and metadata, its line on the invoice, then the invoice's own status."""
    created, paths = look("invoice", kit.listed(kit.invoice(total=0)))
    assert paths == ["/v1/invoices?limit=100&customer=cus_1"]
    assert created.executions[0].carry == {"invoice": "in_1"} and created.executions[0].money is None
    line, paths = look("invoice", kit.listed(kit.line()), step=1)
    assert paths == ["/v1/invoiceitems?limit=100&invoice=in_1"] and line.executions[0].money == kit.MONEY
    for step, status, found in ((2, "draft", 0), (2, "open", 1), (3, "open", 0), (3, "paid", 1)):
        reply, paths = look("invoice", answer(200, kit.invoice(status=status)), step=step)
        assert paths == ["/v1/invoices/in_1"]
        assert len(reply.executions) == found, (step, status)


def test_a_void_invoice_was_not_paid() -> None:
    """It shows as failed."""
    reply, _ = look("invoice", answer(200, kit.invoice(status="void")), step=3)
    assert reply.executions[0].failed
    assert reply.executions[0].money == Money("12.50", "USD")
