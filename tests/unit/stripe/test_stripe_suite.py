"""Stripe passes the suite of adapters, with the answers that its documentation lists."""

from __future__ import annotations

import pytest

from payonce.core.money import Money
from payonce.core.outcome import AlreadyDone, Executed, NotExecuted, Refused, Stop, Unresolved
from payonce.core.states import Settlement
from payonce.providers.stripe.codes import ALREADY_DONE, REFUSED, STOP
from payonce.testing.provider_rig import Case, Rig, answer
from payonce.testing.provider_suite import ProviderSuite
from tests.unit.stripe import stripekit as kit

REPLAYED = {"Idempotent_Replayed": "true"}
COMMON = (
    *(Case(f"stop {code}", kit.error(400, code), Stop, {"code": code, "executed": False}) for code in STOP),
    *(Case(f"refused {code}", kit.error(400, code), Refused, {"code": code}) for code in REFUSED),
    *(Case(f"already {code}", kit.error(400, code), AlreadyDone, {"code": code}) for code in ALREADY_DONE),
    Case("409 in use", kit.error(409, "idempotency_key_in_use"), Unresolved, {"in_progress": True}),
    Case("mismatch", kit.error(400, type="idempotency_error"), Unresolved, {"final": True}),
    Case("other path", kit.error(404, type="idempotency_error"), Unresolved, {"final": True}),
    Case("lock", kit.error(429, "lock_timeout"), NotExecuted, {"load": True, "code": "lock_timeout"}),
    Case(
        "rate",
        kit.error(429, headers={"Stripe_Rate_Limited_Reason": "endpoint-rate"}),
        NotExecuted,
        {"load": True, "code": "endpoint-rate"},
    ),
    Case("old rate", kit.error(400, "rate_limit"), NotExecuted, {"load": True}),
    Case("500", kit.error(500, type="api_error"), Unresolved, {"burnt": False, "final": False}),
    Case("stored 500", kit.error(500, type="api_error", headers=REPLAYED), Unresolved, {"burnt": True}),
    Case("stored no", kit.error(402, "card_declined", headers=REPLAYED), Refused, {"code": "card_declined"}),
    Case("stored unknown", kit.error(400, "new_code", headers=REPLAYED), Unresolved, {"burnt": True}),
    Case("revoked key", kit.error(401), Stop, {"code": "bad_credentials"}),
    Case("restricted key", kit.error(403), Stop, {"code": "not_permitted"}),
    Case(
        "other mode",
        kit.error(
            400,
            "resource_missing",
            message="No such charge: 'ch_1'; a similar object exists in live mode, but a test mode key was used.",
        ),
        Stop,
        {"code": "wrong_mode"},
    ),
    Case(
        "declined",
        kit.error(402, "card_declined", decline_code="lost_card"),
        Refused,
        {"code": "card_declined:lost_card"},
    ),
    Case("a 402 nobody lists", kit.error(402, "processing_error"), Unresolved),
)


def refunds() -> tuple[Case, ...]:
    """What a refund may be answered."""
    statuses = {"pending": "PENDING", "requires_action": "PENDING", "succeeded": "SUCCEEDED", "a_new_word": "PENDING"}
    done = tuple(
        Case(
            word,
            answer(200, kit.refund(status=word)),
            Executed,
            {"settlement": Settlement[settled], "billed": kit.MONEY},
        )
        for word, settled in statuses.items()
    )
    return (
        *done,
        Case("failed at once", answer(200, kit.refund(status="failed", failure_reason="declined")), Refused),
        Case("canceled", answer(200, kit.refund(status="canceled")), Refused),
        Case(
            "other charge",
            answer(200, kit.refund(charge="ch_2")),
            Unresolved,
            {"final": True, "hint_reference": "re_1"},
        ),
        Case("other item", answer(200, kit.refund(metadata={"payonce_item": "r2"})), Unresolved, {"final": True}),
        Case(
            "other batch",
            answer(200, kit.refund(metadata={**kit.OURS, "payonce_batch": "c"})),
            Unresolved,
            {"final": True},
        ),
        Case("other object", answer(200, kit.refund(object="charge")), Unresolved, {"final": True}),
        Case("other amount", answer(200, kit.refund(amount=5000)), Executed, {"billed": Money("50.00", "USD")}),
        Case("other currency", answer(200, kit.refund(currency="jpy")), Executed, {"billed": Money("1250", "JPY")}),
        Case("no amount", answer(200, kit.refund(amount=None)), Unresolved, {"final": False}),
        Case("an amount as text", answer(200, kit.refund(amount="1250")), Unresolved),
        Case("a fraction", answer(200, kit.refund(amount=1250.5)), Unresolved),
        Case("no id", answer(200, kit.refund(id=None)), Unresolved),
        Case("expanded charge", answer(200, kit.refund(charge={"id": "ch_1"})), Executed, {"reference": "re_1"}),
        Case("no balance", kit.error(400, "insufficient_funds"), Stop),
        Case(
            "over-refund, which has no code",
            kit.error(400, message="Refund amount ($50.00) is greater than unrefunded amount on charge ($12.50)"),
            AlreadyDone,
            {"code": "over_refund"},
        ),
    )


PAYOUTS = (
    Case("pending", answer(200, kit.payout()), Executed, {"settlement": Settlement.PENDING}),
    Case("in transit", answer(200, kit.payout(status="in_transit")), Executed, {"settlement": Settlement.PENDING}),
    Case("paid", answer(200, kit.payout(status="paid")), Executed, {"settlement": Settlement.SUCCEEDED}),
    Case("failed", answer(200, kit.payout(status="failed", failure_code="account_closed")), Refused),
    Case("other bank", answer(200, kit.payout(destination="ba_2")), Unresolved, {"final": True}),
)
TRANSFERS = (
    Case("done", answer(200, kit.transfer()), Executed, {"settlement": Settlement.SUCCEEDED}),
    Case("other account", answer(200, kit.transfer(destination="acct_1")), Unresolved, {"final": True}),
)
INVOICES = (
    Case("created", answer(200, kit.invoice()), Executed, {"carry": {"invoice": "in_1"}, "billed": None}),
    Case("other customer", answer(200, kit.invoice(customer="cus_2")), Unresolved, {"final": True}),
    Case("line", answer(200, kit.line()), Executed, {"reference": "ii_1"}, step=1),
    Case("line on another", answer(200, kit.line(invoice="in_2")), Unresolved, {"final": True}, step=1),
    Case("line over another amount", answer(200, kit.line(amount=1)), Unresolved, {"final": True}, step=1),
    Case("finalised", answer(200, kit.invoice(status="open")), Executed, step=2),
    Case("a total with tax", answer(200, kit.invoice(status="open", total=1499)), Unresolved, {"final": True}, step=2),
    Case("paid", answer(200, kit.invoice(status="paid")), Executed, {"billed": kit.MONEY}, step=3),
    Case("processing", answer(200, kit.invoice(status="open")), Executed, {"settlement": Settlement.PENDING}, step=3),
    Case("void", answer(200, kit.invoice(status="void")), Refused, step=3),
    Case("the customer's balance", kit.error(402, "insufficient_funds"), Refused, step=3),
)


class TestRefunds(ProviderSuite):
    """Refunds."""

    @pytest.fixture
    def rig(self) -> Rig:
        return kit.rig("refund", COMMON + refunds())


class TestPayouts(ProviderSuite):
    """Payouts."""

    @pytest.fixture
    def rig(self) -> Rig:
        return kit.rig("payout", COMMON + PAYOUTS)


class TestTransfers(ProviderSuite):
    """Transfers."""

    @pytest.fixture
    def rig(self) -> Rig:
        return kit.rig("transfer", COMMON + TRANSFERS)


class TestInvoices(ProviderSuite):
    """Invoices."""

    @pytest.fixture
    def rig(self) -> Rig:
        return kit.rig("invoice", COMMON + INVOICES)
