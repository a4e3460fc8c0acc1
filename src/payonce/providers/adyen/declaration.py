"""What Adyen promises, as data: one declaration an operation, each line with its public source."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from payonce.core.keys import KeyFormat
from payonce.core.model import SECOND_US, Declaration, KeyDeclaration

DAY_US: Final = 86_400 * SECOND_US

_SOURCES: Final = (
    "https://docs.adyen.com/development-resources/api-idempotency (header, 64 characters, 7 days, per company account "
    "and regional address, 703, 704, transient-error)",
)

_REFUND: Final = Declaration(
    kind="adyen",
    operation="refund",
    key=KeyDeclaration(
        carrier="header Idempotency-Key",
        format=KeyFormat("uuid", 64),
        retention_us=7 * DAY_US,
        # Not said for errors other than the transient ones: taken as remembered, which only makes us ask less.
        stores_errors=True,
    ),
    lookup=None,
    max_execution_us=60 * SECOND_US,
    timeout_us=10 * SECOND_US,
    statement=("settlement detail report", "payment accounting report"),
    settles_later=True,
    reverse="no: a refund cannot be undone",
    rate="not published: 429 is obeyed",
    identity="merchant_account and environment of the batch file; POST /paymentMethods proves the key",
    notes=(
        "201 means received, not refunded: the result comes by webhook or report (payonce settle, payonce reconcile)",
        "an over-refund or a missing balance is no HTTP error: it arrives as a failed settlement",
        "there is no read for refunds: within the key's window the same key and bytes are sent again, after it a report "
        "or a person decides",
        "a key holds for one regional address: the address is part of what the batch is bound to",
    ),
    sources=(
        *_SOURCES,
        "https://docs.adyen.com/online-payments/refund (received, webhooks, up to 40 business days)",
        "https://github.com/Adyen/adyen-openapi CheckoutService-v71.json (fields; no GET below /payments)",
    ),
)

DECLARATIONS: Final = {
    "refund": _REFUND,
    "payout": replace(
        _REFUND,
        operation="payout",
        statement=("balance platform accounting report",),
        reverse="POST /transfers/{id}/returns, where the receiver allows it",
        identity="balance_account and environment of the batch file",
        notes=(
            "a transfer (Transfers API v4) from balance_account to the transfer instrument that the item names",
            "an accepted transfer settles later: payonce settle, payonce reconcile",
            "GET /transfers has no documented lag, so it proves no absence: only keys are relied on",
        ),
        sources=(*_SOURCES, "https://github.com/Adyen/adyen-openapi TransferService-v4.json (fields, statuses)"),
    ),
}
