"""The read of a target before anything is sent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from payonce.core.errors import ConfigError
from payonce.core.money import Money
from payonce.providers import registry
from payonce.providers.protocol import Preflight
from payonce.providers.transport import Answer, Fault
from tests.unit.providers.httpkit import REFUND, TOKEN, USUAL, Bench, answer, item

TABLE: dict[str, Any] = {
    **REFUND,
    "preflight": {
        "path": "/v1/charges/{charge_id}",
        "currency": "currency",
        "amount": "amount",
        "used": "refunded",
        "refused_when": "disputed",
    },
}
CHARGE: dict[str, Any] = {"amount": 2000, "refunded": 750, "currency": "usd", "disputed": False}


def check(reply: Answer | Fault, money: Money | None = USUAL) -> Preflight | None:
    bench = Bench(TABLE, reply)
    found = asyncio.run(bench.provider.preflight(item(money), timeout_us=1_000_000))
    assert bench.transport.asked[0].path == "/v1/charges/ch_1"
    assert bench.transport.asked[0].method == "GET"
    return found


def fits(left: str | None, taken: str | None = "7.50") -> Preflight:
    """A target that fits, of which something was taken."""
    used = None if taken is None else Money(taken, "USD")
    return Preflight(True, data={} if left is None else {"left": left}, touched=used is not None, taken=used)


def charge(**changes: Any) -> Answer:
    return answer(200, json.dumps({**CHARGE, **changes}))


def test_a_target_that_fits() -> None:
    """Exactly what is left is enough."""
    assert check(charge()) == fits("12.50 USD")
    assert check(charge(amount=None)) == fits(None)
    assert check(charge(), money=None) == Preflight(True)
    assert check(charge(refunded=None, currency=None)) == fits("20.00 USD", None)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (charge(refunded=751), "over_limit"),
        (charge(currency="eur"), "currency_mismatch"),
        (charge(disputed=True), "target_refused"),
        (charge(amount="2,000"), "check_failed"),
        (answer(404), "no_such_target"),
        (answer(500), "check_failed"),
        (answer(401), "check_failed"),
        (answer(200, b"<html>"), "check_failed"),
        (Answer(200, (), b"{}", truncated=True), "check_failed"),
        (Fault("timeout", f"late {TOKEN}"), "check_failed"),
    ],
)
def test_what_does_not_fit_or_cannot_be_read_is_a_finding(reply: Answer | Fault, code: str) -> None:
    """With its code; what could not be checked is not called checked."""
    found = check(reply)
    assert found is not None
    assert (found.ok, found.code) == (False, code)
    assert (found.unread is not None) is (code == "check_failed")
    assert found.already is (code == "over_limit")
    assert TOKEN not in repr(found)


def test_none_where_nothing_is_described() -> None:
    """No read is made."""
    bench = Bench(REFUND)
    assert asyncio.run(bench.provider.preflight(item(), timeout_us=1)) is None
    assert bench.transport.asked == []


def test_settings_are_checked() -> None:
    """As everywhere."""
    for change in ({"used": "x", "path": "/x"}, {"path": "x"}, {"path": "/${API_TOKEN}"}, {"path": "/{"}):
        with pytest.raises(ConfigError):
            Bench({**REFUND, "preflight": change})
    with pytest.raises(ConfigError, match="nope"):
        Bench({**REFUND, "preflight": {"path": "/{nope}"}}).provider.check_columns(["charge_id"])


def test_the_simulators_charges_are_read(tmp_path: Path) -> None:
    """Refunds look at their charge."""
    table = {
        "kind": "simulator",
        "state": "sim.jsonl",
        "charges": {"ch_1": {"amount": 1000, "currency": "usd"}, "ch_2": {"amount": 5000, "disputed": True}},
    }
    provider = registry.build("simulator", table, operation="refund", batch="b", environ={}, base=str(tmp_path))

    async def main() -> None:
        await provider.open()
        found = await provider.preflight(item(), timeout_us=1_000_000)
        assert found is not None
        assert (found.ok, found.code) == (False, "over_limit")
        await provider.close()

    asyncio.run(main())
