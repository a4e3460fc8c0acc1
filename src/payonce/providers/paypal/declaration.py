"""What PayPal promises, as data: one declaration an operation, each line with its public source."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from payonce.core.keys import KeyFormat
from payonce.core.model import SECOND_US, Declaration, KeyDeclaration

DAY_US: Final = 86_400 * SECOND_US

_SOURCES: Final = (
    "https://developer.paypal.com/reference/guidelines/idempotency (a repeat returns the latest status)",
    "https://developer.paypal.com/api/rate-limiting (429, no numbers)",
)

_REFUND: Final = Declaration(
    kind="paypal",
    operation="refund",
    key=KeyDeclaration(
        carrier="header PayPal-Request-Id",
        format=KeyFormat("hex", 64),
        retention_us=45 * DAY_US,
        # Not said anywhere: taken as remembered, which only makes us ask less.
        stores_errors=True,
    ),
    lookup=None,
    max_execution_us=60 * SECOND_US,
    timeout_us=10 * SECOND_US,
    statement=("settlement report (STL)", "transaction detail report (TRR)", "activity download"),
    settles_later=True,
    reverse="no: a refund cannot be undone",
    rate="not published: 429 and Retry-After are obeyed",
    identity="account of the batch file, else a digest of the client id; the token proves the credentials",
    preflight="GET /v2/payments/captures/{id}: currency, total, status; not how much was refunded",
    notes=(
        "a second guard outlives the key: invoice_id is unique for each item, and PayPal refuses it a second time",
        "201 is no success by itself: its status may be FAILED or CANCELLED",
        "there is no list of refunds: within the key's window the same key and bytes are sent again, after it a report "
        "or a person decides",
    ),
    sources=(
        *_SOURCES,
        "https://github.com/paypal/paypal-rest-api-specifications payments_payment_v2.json (45 days, statuses, issues)",
    ),
)

DECLARATIONS: Final = {
    "refund": _REFUND,
    "payout": replace(
        _REFUND,
        operation="payout",
        preflight="",
        key=KeyDeclaration(
            carrier="body sender_batch_header.sender_batch_id",
            format=KeyFormat("hex", 64),
            retention_us=30 * DAY_US,
            stores_errors=False,
        ),
        reverse="while unclaimed: POST /v1/payments/payouts-item/{id}/cancel",
        notes=(
            "one payout a batch of PayPal's, since only sender_batch_id is deduplicated, never sender_item_id",
            "a repeated sender_batch_id is answered with an error that links to the first: payonce reads it and commits "
            "it if it is this item's",
            "an accepted payout settles later, and may come back: payonce settle, payonce reconcile",
        ),
        sources=(
            *_SOURCES,
            "https://github.com/paypal/paypal-rest-api-specifications payments_payouts_batch_v1.json (30 days, link)",
        ),
    ),
}
