"""Each adapter's requests against Prism, which serves the provider's own OpenAPI file: none is refused by its schema.

The files are not part of the project: PAYONCE_SPECS names their folder (``make contract SPECS=...``). Prism answers
from examples, so what it answers is not looked at beyond its status.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from payonce.core.keys import KeyMaker
from payonce.core.model import Item, Request
from payonce.core.outcome import Reply
from payonce.providers.protocol import Gate, Provider
from payonce.providers.registry_http import make_transport
from payonce.providers.transport import Answer, Fault, Transport, TransportSettings
from tests.thirdparty.servers import prism
from tests.unit.adyen import adyenkit
from tests.unit.paypal import paypalkit
from tests.unit.stripe import stripekit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def spec(name: str) -> Path:
    """One of the files. Skips where there is none."""
    folder = os.environ.get("PAYONCE_SPECS")
    if not folder:
        pytest.skip(
            "NOT RUN: PAYONCE_SPECS names no folder with the providers' OpenAPI files (make contract SPECS=...)"
        )
    path = Path(folder) / name
    if not path.is_file():
        pytest.skip(f"NOT RUN: there is no {path}")
    return path


async def call(provider: Provider, item: Item) -> tuple[Request, Reply]:
    """One real call."""
    declared = provider.declaration
    assert declared.key is not None
    maker = KeyMaker(declared.key.format, namespace="payonce", batch="b", operation=declared.operation)
    key = maker.key(item.id, step="call", generation=0)
    await provider.open()
    try:
        request = provider.prepare(item, key=key, step=0)
        return request, await provider.send(request, item, key=key, timeout_us=20_000_000, gate=lambda: True)
    finally:
        await provider.close()


def accepted(provider: Provider, item: Item, *, status: int) -> None:
    """The server's schema takes the request."""
    request, reply = asyncio.run(call(provider, item))
    assert reply.status == status, (request, reply)


def test_stripe_refunds() -> None:
    """By charge and by payment intent, with a reason and further metadata."""
    with prism(spec("stripe.json")) as url:
        params = {"reason": "requested_by_customer", "metadata": {"ticket": "T-1"}}
        provider = stripekit.build("refund", base_url=url, account="acct_1", params=params)
        accepted(provider, stripekit.item("refund"), status=200)
        accepted(provider, stripekit.item("refund", target="pi_1"), status=200)


def test_adyen_refunds() -> None:
    """With a reason."""
    with prism(spec("adyen-checkout.json")) as url:
        provider = adyenkit.build("refund", base_url=url, params={"merchantRefundReason": "CUSTOMER REQUEST"})
        accepted(provider, adyenkit.item("refund"), status=201)


class WithToken:
    """Grants PayPal's tokens, which these files do not describe; everything else goes over the network."""

    def __init__(self, settings: TransportSettings) -> None:
        self._inner: Transport = make_transport(settings)

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    async def send(self, request: Request, *, timeout_us: int, gate: Gate) -> Answer | Fault:
        granted = paypalkit.doorway(request)
        return granted or await self._inner.send(request, timeout_us=timeout_us, gate=gate)


def test_paypal_refunds() -> None:
    """With a note."""
    with prism(spec("paypal-payments.json")) as url:
        provider = paypalkit.build("refund", WithToken, base_url=url, params={"note_to_payer": "Sorry"})
        accepted(provider, paypalkit.item("refund"), status=201)


def test_paypal_payouts() -> None:
    """By e-mail, with a note and a subject."""
    with prism(spec("paypal-payouts-v1.json")) as url:
        provider = paypalkit.build("payout", WithToken, base_url=url, params={"note": "Hi", "email_subject": "Money"})
        accepted(provider, paypalkit.item("payout"), status=201)


class Spoilt(WithToken):
    """Sends another body than the adapter made."""

    async def send(self, request: Request, *, timeout_us: int, gate: Gate) -> Answer | Fault:
        body = request.body.replace(b"10.99", b"ten") if request.path != "/v1/oauth2/token" else request.body
        return await super().send(replace(request, body=body), timeout_us=timeout_us, gate=gate)


def test_a_wrong_request_would_be_refused() -> None:
    """The check can fail: an amount that is no number does not pass."""
    with prism(spec("paypal-payments.json")) as url:
        with pytest.raises(AssertionError, match="422"):
            accepted(paypalkit.build("refund", Spoilt, base_url=url), paypalkit.item("refund"), status=201)
