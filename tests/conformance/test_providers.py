"""The adapter for any HTTP API against the suite of adapters; the official ones are in their own folders."""

from __future__ import annotations

from typing import Any

import pytest

from payonce.core.model import Item
from payonce.core.money import Money
from payonce.core.outcome import AlreadyDone, Executed, Refused, Unresolved
from payonce.providers.http import HttpProvider
from payonce.providers.http_config import configure
from payonce.testing.provider_rig import Case, MakeTransport, Rig, answer
from payonce.testing.provider_suite import ProviderSuite

SECRET = "token_marked_secret"
TABLE: dict[str, Any] = {
    "kind": "http",
    "base_url": "https://api.example.com",
    "headers": {"Authorization": "Bearer ${API_TOKEN}"},
    "call": {
        "path": "/v1/refunds",
        "json": {"charge": "{target}", "amount": "{amount_minor}", "currency": "{currency}", "ref": "{id}"},
        "reference": "id",
        "billed": "amount",
        "billed_currency": "currency",
        "echo": {"target": "charge", "own_reference": "ref"},
    },
    "key": {
        "header": "Idempotency-Key",
        "retention": "24h",
        "stores_errors": True,
        "replay_header": "Idempotent-Replayed",
    },
    "answers": [
        {"status": 400, "when": "error.code == 'already_refunded'", "outcome": "already_done"},
        {"status": 402, "when": "error.code == 'declined'", "outcome": "refused"},
    ],
}
REFUND = {"id": "re_1", "charge": "ch_1", "amount": 1250, "currency": "usd", "ref": "r1"}
CASES = (
    Case("executed", answer(200, REFUND), Executed, {"reference": "re_1", "billed": Money("12.50", "USD")}),
    Case("another charge", answer(200, {**REFUND, "charge": "ch_2"}), Unresolved, {"final": True}),
    Case("another item", answer(200, {**REFUND, "ref": "r2"}), Unresolved, {"final": True}),
    Case("a rule's", answer(400, {"error": {"code": "already_refunded"}}), AlreadyDone),
    Case("a rule's no", answer(402, {"error": {"code": "declined"}}), Refused, {"code": "declined"}),
    Case("stored", answer(500, {}, Idempotent_Replayed="true"), Unresolved, {"burnt": True}),
)


def build(make: MakeTransport) -> HttpProvider:
    """The adapter of TABLE."""
    config = configure(TABLE, operation="refund", batch="b", environ={"API_TOKEN": SECRET}, mapped={}, concurrency=4)
    return HttpProvider(config, make_transport=make)


class TestHttp(ProviderSuite):
    """Described in a batch file."""

    @pytest.fixture
    def rig(self) -> Rig:
        return Rig(
            build=build,
            item=lambda _: Item(1, "r1", "ch_1", Money("12.50", "USD"), {}),
            executed=lambda _: answer(200, REFUND),
            cases=CASES,
            secrets=(SECRET,),
        )
