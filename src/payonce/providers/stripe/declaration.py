"""What Stripe promises, as data: one declaration an operation, each line with its public source."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from payonce.core.keys import KeyFormat
from payonce.core.model import SECOND_US, Declaration, KeyDeclaration, LookupDeclaration

HOUR_US: Final = 3600 * SECOND_US

KEY: Final = KeyDeclaration(
    carrier="header Idempotency-Key",
    # Up to 255 characters are taken; a whole digest has 64.
    format=KeyFormat("hex", 64),
    retention_us=24 * HOUR_US,
    stores_errors=True,
)
# Lists are the authoritative read, search is not used. The lag is a margin for the two clocks, not Stripe's.
_LAG_US: Final = 2 * SECOND_US
# Stripe's own client gives a request up after 80 s; no public page states a longer execution.
_MAX_EXECUTION_US: Final = 80 * SECOND_US

_SOURCES: Final = (
    "https://docs.stripe.com/api/idempotent_requests (keys, 24 h, stored answers including 500)",
    "https://docs.stripe.com/error-low-level (replays, 429 and 401 before the key, 500 is indeterminate)",
    "https://docs.stripe.com/error-codes (codes)",
    "https://docs.stripe.com/rate-limits (25/s an endpoint, 100/s an account, reasons of a 429)",
)

_REFUND: Final = Declaration(
    kind="stripe",
    operation="refund",
    key=KEY,
    lookup=LookupDeclaration(
        by="GET /v1/refunds of the charge or payment intent, all pages", lag_us=_LAG_US, own_reference=True
    ),
    max_execution_us=_MAX_EXECUTION_US,
    timeout_us=10 * SECOND_US,
    statement=("balance_change_from_activity.itemized", "payout_reconciliation.itemized", "balance transactions (API)"),
    settles_later=True,
    reverse="no: a refund cannot be undone",
    rate="25/s for one endpoint, 100/s live and 25/s in a sandbox for the account",
    identity="GET /v1/account for the account, the key's prefix (sk_live_, sk_test_) for the mode",
    preflight="GET /v1/charges/{id} or /v1/payment_intents/{id}: currency, what is left, disputed, mode, both names",
    notes=(
        "metadata carries payonce_item and payonce_batch; a look-up counts only refunds that show both",
        "a replayed 500 burns the key: only a look-up that shows no refund allows another",
        "a refund may fail weeks after it succeeded: payonce settle records it, nothing is sent again",
    ),
    sources=(*_SOURCES, "https://docs.stripe.com/api/refunds (parameters, statuses, list filters)"),
)

DECLARATIONS: Final = {
    "refund": _REFUND,
    "payout": replace(
        _REFUND,
        operation="payout",
        preflight="",
        lookup=LookupDeclaration(by="GET /v1/payouts, all pages", lag_us=_LAG_US, own_reference=True),
        statement=("payouts.itemized", "balance transactions (API)"),
        reverse="while pending: POST /v1/payouts/{id}/cancel",
        rate="15/s and 30 at once for payouts",
        notes=(
            "metadata carries payonce_item and payonce_batch",
            "a payout without a destination of its own (ba_..., card_...) goes to the account's default",
            "a payout may show paid and fail within five business days: payonce settle records it",
        ),
        sources=(*_SOURCES, "https://docs.stripe.com/api/payouts (statuses, failures after paid)"),
    ),
    "transfer": replace(
        _REFUND,
        operation="transfer",
        preflight="",
        lookup=LookupDeclaration(by="GET /v1/transfers of the transfer group", lag_us=_LAG_US, own_reference=True),
        statement=("balance transactions (API)",),
        settles_later=False,
        reverse="POST /v1/transfers/{id}/reversals",
        notes=(
            "metadata carries payonce_item and payonce_batch; transfer_group is a digest of both and finds the transfer",
        ),
        sources=(*_SOURCES, "https://docs.stripe.com/api/transfers (transfer_group, reversals)"),
    ),
    "invoice": replace(
        _REFUND,
        operation="invoice",
        preflight="",
        steps=("create", "add", "finalise", "pay"),
        lookup=LookupDeclaration(
            by="GET /v1/invoices of the customer, then the invoice itself", lag_us=_LAG_US, own_reference=True
        ),
        statement=("balance transactions (API)",),
        reverse="a credit note or a refund",
        notes=(
            "four calls, a key each: create the draft, add its one line, finalise, pay",
            "auto_advance is off, so that Stripe does nothing by itself between two steps",
            "other pending invoice items of the customer are left out",
        ),
        sources=(*_SOURCES, "https://docs.stripe.com/api/invoices (create, finalize, pay)"),
    ),
}
