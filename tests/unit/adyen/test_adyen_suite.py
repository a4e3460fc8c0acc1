"""Adyen passes the suite of adapters, with the answers that its documentation lists."""

from __future__ import annotations

import pytest

from payonce.core.money import Money
from payonce.core.outcome import Executed, Refused, Stop, Unresolved
from payonce.core.states import Settlement
from payonce.providers.adyen.answers import REFUSED
from payonce.testing.provider_rig import Case, Rig, answer
from payonce.testing.provider_suite import ProviderSuite
from tests.unit.adyen import adyenkit as kit

COMMON = (
    *(Case(f"refused {code}", kit.error(422, code), Refused, {"code": code}) for code in REFUSED),
    Case("704 as 422", kit.error(422, "704"), Unresolved, {"in_progress": True, "code": "704"}),
    Case("704 as 409", kit.error(409, "704"), Unresolved, {"in_progress": True}),
    Case("703", kit.error(503, "703", transient_error="true"), Unresolved, {"final": False, "code": "703"}),
    Case("a listed code that says try again", kit.error(422, "137", transient_error="true"), Unresolved),
    Case("transient", kit.error(500, "905", transient_error="true"), Unresolved, {"final": False}),
    Case("said not to be", kit.error(500, "905", transient_error="false"), Unresolved, {"final": True}),
    Case("not said", kit.error(500, "905", "configuration"), Unresolved, {"final": False}),
    Case("revoked key", kit.error(401, "000", "security"), Stop, {"executed": False}),
    Case("wrong merchant", kit.error(403, "901", "security"), Stop, {"code": "901"}),
)
REFUNDS = (
    Case(
        "received is not refunded",
        answer(201, kit.received()),
        Executed,
        {"settlement": Settlement.PENDING, "reference": "8836183819713023", "billed": kit.MONEY},
    ),
    Case("repeated", answer(200, kit.received()), Executed),
    Case("other payment", answer(201, kit.received(paymentPspReference="X" * 16)), Unresolved, {"final": True}),
    Case("other reference", answer(201, kit.received(reference="r2")), Unresolved, {"final": True}),
    Case("other merchant", answer(201, kit.received(merchantAccount="Other")), Unresolved, {"final": True}),
    Case("a status of next year", answer(201, kit.received(status="queued")), Unresolved),
    Case("no amount", answer(201, kit.received(amount=None)), Unresolved),
    Case(
        "other amount",
        answer(201, kit.received(amount={"currency": "EUR", "value": 1})),
        Executed,
        {"billed": Money("0.01", "EUR")},
    ),
)
PAYOUTS = (
    Case("authorised", answer(202, kit.transfer()), Executed, {"settlement": Settlement.PENDING}),
    Case("booked", answer(200, kit.transfer(status="booked")), Executed, {"settlement": Settlement.SUCCEEDED}),
    Case("refused", answer(200, kit.transfer(status="refused")), Refused, {"code": "transfer_refused"}),
    Case("other receiver", answer(200, kit.transfer(counterparty={"transferInstrumentId": "SE9"})), Unresolved),
)


class TestRefunds(ProviderSuite):
    """Refunds of payments."""

    @pytest.fixture
    def rig(self) -> Rig:
        return kit.rig("refund", COMMON + REFUNDS)


class TestPayouts(ProviderSuite):
    """Payouts by transfer."""

    @pytest.fixture
    def rig(self) -> Rig:
        return kit.rig("payout", COMMON + PAYOUTS)
