"""Each adapter's requests against Prism, which serves the provider's own OpenAPI file: none is refused by its schema.

The files are not part of the project: PAYONCE_SPECS names their folder (``make contract SPECS=...``). Prism answers
from examples, so what it answers is not looked at beyond its status.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from payonce.core.keys import KeyMaker
from payonce.core.model import Item, Request
from payonce.core.outcome import Reply
from payonce.providers.protocol import Gate, Provider
from payonce.providers.registry_http import make_transport
from payonce.providers.stripe import StripeProvider
from payonce.providers.transport import Answer, Fault, Transport, TransportSettings
from tests.thirdparty import parts
from tests.thirdparty.servers import prism
from tests.thirdparty.slicing import cut, has
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


def spec_with(name: str, member: str, paths: Sequence[str], folder: Path) -> Path:
    """A file that describes these paths: the folder's own, else cut out of the bundle of official files."""
    given = Path(os.environ.get("PAYONCE_SPECS") or pytest.skip("NOT RUN: see make contract")) / name
    if has(given, paths):
        return given
    return cut(parts.openapi_file(member), folder / name, paths)


async def call(provider: Provider, item: Item) -> tuple[Request, Reply]:
    """One real call."""
    declared = provider.declaration
    assert declared.key is not None
    maker = KeyMaker(declared.key.format, namespace="payonce", batch="b", operation=declared.operation)
    key = maker.key(item.id, step="call", generation=0)
    await provider.open()
    try:
        request = provider.prepare(item, key=key, step=item.step)
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


STRIPE_PATHS = (
    "/v1/account", "/v1/balance_transactions", "/v1/charges/{charge}", "/v1/invoiceitems", "/v1/invoices",
    "/v1/invoices/{invoice}", "/v1/invoices/{invoice}/finalize", "/v1/invoices/{invoice}/pay",
    "/v1/payment_intents/{intent}", "/v1/payouts", "/v1/refunds", "/v1/transfers",
)  # fmt: skip


@pytest.fixture(scope="module")
def all_of_stripe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of everything the adapter uses."""
    folder = tmp_path_factory.mktemp("stripe")
    with prism(spec_with("stripe.json", "stripe.com.json", STRIPE_PATHS, folder)) as url:
        yield url


def test_stripes_other_operations(all_of_stripe: str) -> None:
    """Payouts with and without a destination, transfers, and the four calls of an invoice."""
    for operation, items in {
        "payout": [stripekit.item("payout"), stripekit.item("payout", target="r1")],
        "transfer": [stripekit.item("transfer")],
        "invoice": [stripekit.item("invoice", step) for step in range(4)],
    }.items():
        provider = stripekit.build(operation, base_url=all_of_stripe, account="acct_1")
        for item in items:
            accepted(provider, item, status=200)


def test_stripes_reads(all_of_stripe: str) -> None:
    """Every read beside the calls: account, targets, look-ups, statements."""

    async def read(operation: str, ask: Callable[[StripeProvider], Request]) -> None:
        provider = stripekit.build(operation, base_url=all_of_stripe, account="acct_1")
        await provider.open()
        try:
            await provider.read(ask(provider), timeout_us=20_000_000)
        finally:
            await provider.close()

    def asked(path: Callable[[Any], object], provider: StripeProvider) -> Request:
        return provider.lists.calls.read(path)

    reads: list[tuple[str, Callable[[Any], object]]] = [
        ("refund", lambda v1: v1.accounts.retrieve_current()),
        ("refund", lambda v1: v1.charges.retrieve("ch_1")),
        ("refund", lambda v1: v1.payment_intents.retrieve("pi_1", {"expand": ["latest_charge"]})),
        ("refund", lambda v1: v1.balance_transactions.list({"limit": 100, "expand": ["data.source"]})),
        ("refund", lambda v1: v1.refunds.list({"charge": "ch_1", "limit": 100, "created": {"gte": 1, "lt": 9}})),
        ("payout", lambda v1: v1.payouts.list({"destination": "ba_1", "limit": 100, "starting_after": "po_1"})),
        ("transfer", lambda v1: v1.transfers.list({"transfer_group": "payonce_1", "limit": 100})),
        ("invoice", lambda v1: v1.invoices.list({"customer": "cus_1", "limit": 100})),
        ("invoice", lambda v1: v1.invoice_items.list({"invoice": "in_1", "limit": 100})),
        ("invoice", lambda v1: v1.invoices.retrieve("in_1")),
    ]
    for operation, path in reads:
        asyncio.run(read(operation, partial(asked, path)))


def test_adyen_payouts(tmp_path: Path) -> None:
    """A transfer to a transfer instrument."""
    with prism(
        spec_with("adyen-transfers.json", "adyen.com/TransferService-v4.json", ("/transfers",), tmp_path)
    ) as url:
        provider = adyenkit.build("payout", base_url=url)
        request, reply = asyncio.run(call(provider, adyenkit.item("payout")))
        assert reply.status in (200, 202), (request, reply)


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
