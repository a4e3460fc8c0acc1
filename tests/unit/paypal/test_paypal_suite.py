"""PayPal passes the suite of adapters, with the answers that its documentation lists."""

from __future__ import annotations

import pytest

from payonce.core.money import Money
from payonce.core.outcome import AlreadyDone, Executed, Refused, Stop, Unresolved
from payonce.core.states import Settlement
from payonce.providers.paypal.codes import ALREADY_DONE, KEY_TAKEN, REFUSED, STOP
from payonce.testing.provider_rig import Case, Rig, answer
from payonce.testing.provider_suite import ProviderSuite
from tests.unit.paypal import paypalkit as kit

UNPROCESSABLE = "UNPROCESSABLE_ENTITY"
COMMON = (
    *(Case(f"refused {code}", kit.error(422, UNPROCESSABLE, code), Refused, {"code": code}) for code in REFUSED),
    *(Case(f"stop {code}", kit.error(422, UNPROCESSABLE, code), Stop, {"code": code}) for code in STOP),
    *(
        Case(f"already {code}", kit.error(422, UNPROCESSABLE, code), AlreadyDone, {"code": code})
        for code in ALREADY_DONE
    ),
    *(Case(f"taken {code}", kit.error(422, UNPROCESSABLE, code), Unresolved, {"final": True}) for code in KEY_TAKEN),
    Case(
        "in progress",
        kit.error(409, "RESOURCE_CONFLICT", "PREVIOUS_REQUEST_IN_PROGRESS"),
        Unresolved,
        {"in_progress": True},
    ),
    Case("no such thing", kit.error(404, "RESOURCE_NOT_FOUND", "INVALID_RESOURCE_ID"), Refused),
    Case("404 of somebody else", answer(404, b"not found"), Unresolved),
    Case("500", kit.error(500, "INTERNAL_SERVER_ERROR"), Unresolved),
    Case("credentials", kit.error(401, "AUTHENTICATION_FAILURE"), Stop, {"code": "bad_credentials"}),
    Case("permission", kit.error(403, "NOT_AUTHORIZED", "PERMISSION_DENIED"), Stop, {"code": "PERMISSION_DENIED"}),
)
REFUNDS = (
    Case("completed", answer(201, kit.refund()), Executed, {"settlement": Settlement.SUCCEEDED, "billed": kit.MONEY}),
    Case("pending", answer(201, kit.refund(status="PENDING")), Executed, {"settlement": Settlement.PENDING}),
    Case("a word of next year", answer(201, kit.refund(status="QUEUED")), Executed, {"settlement": Settlement.PENDING}),
    Case("201 with FAILED inside", answer(201, kit.refund(status="FAILED")), Refused, {"code": "refund_failed"}),
    Case("201 with CANCELLED inside", answer(201, kit.refund(status="CANCELLED")), Refused),
    Case("no status", answer(201, kit.refund(status=None)), Unresolved),
    Case("minimal", answer(200, {"id": "1JU", "status": "COMPLETED"}), Executed, {"billed": None}),
    Case(
        "other capture", answer(201, kit.refund(links=[{"rel": "up", "href": "/v2/payments/captures/X"}])), Unresolved
    ),
    Case("other custom_id", answer(201, kit.refund(custom_id="r2")), Unresolved, {"final": True}),
    Case("other invoice_id", answer(201, kit.refund(invoice_id="payonce-0")), Unresolved, {"final": True}),
    Case(
        "other amount",
        answer(201, kit.refund(amount={"value": "99.00", "currency_code": "USD"})),
        Executed,
        {"billed": Money("99.00", "USD")},
    ),
    Case("an amount as a number", answer(201, kit.refund(amount={"value": 10.99, "currency_code": "USD"})), Unresolved),
)
PAYOUTS = (
    Case(
        "accepted",
        answer(201, kit.created()),
        Executed,
        {"settlement": Settlement.PENDING, "reference": "5UXD2E8A7EBQJ"},
    ),
    Case("denied", answer(201, kit.created(batch_status="DENIED")), Refused),
    Case("another batch's", answer(201, kit.created(key="other")), Unresolved, {"final": True}),
    Case(
        "repeated, and it is ours", kit.duplicate(), Executed, {"billed": kit.MONEY}, then=(answer(200, kit.details()),)
    ),
    Case(
        "repeated, unclaimed",
        kit.duplicate(),
        Executed,
        {"settlement": Settlement.PENDING},
        then=(answer(200, kit.details(status="UNCLAIMED")),),
    ),
    Case(
        "repeated, returned",
        kit.duplicate(),
        Executed,
        {"settlement": Settlement.RETURNED},
        then=(answer(200, kit.details(status="RETURNED")),),
    ),
    Case(
        "repeated, and it is not ours",
        kit.duplicate(),
        Unresolved,
        {"final": True},
        then=(answer(200, kit.details(sender="r2")),),
    ),
    Case(
        "repeated to another receiver",
        kit.duplicate(),
        Unresolved,
        {"final": True},
        then=(answer(200, kit.details(receiver="x@example.com")),),
    ),
    Case(
        "repeated, the read finds nothing",
        kit.duplicate(),
        Unresolved,
        {"code": "duplicate_unread"},
        then=(answer(404),),
    ),
    Case("repeated, no link", kit.error(400, "USER_BUSINESS_ERROR"), Unresolved, {"code": "USER_BUSINESS_ERROR"}),
)


class TestRefunds(ProviderSuite):
    """Refunds of captures."""

    @pytest.fixture
    def rig(self) -> Rig:
        return kit.rig("refund", COMMON + REFUNDS)


class TestPayouts(ProviderSuite):
    """Payouts."""

    @pytest.fixture
    def rig(self) -> Rig:
        return kit.rig("payout", COMMON + PAYOUTS)
