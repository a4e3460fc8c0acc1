"""Stripe's reports: itemised balance and payouts as CSV, and the API's lists of refunds and balance transactions.

Column names as in Stripe's public documentation (docs/reference/statements.md names the sources).
"""

from __future__ import annotations

from typing import Final

from payonce.core import decimals
from payonce.reconcile.layout import Amount, Layout, Role, role_table, status_table

_HOUR_US: Final = 3_600_000_000

_STRIPE_REFUND = role_table(
    executions="refund,payment_refund,partial_refund",
    reversals="refund_failure,payment_failure_refund,refund_reversal",
    fees="fee,stripe_fee,network_cost",
)
_STRIPE_PAYOUT = role_table(
    executions="payout,transfer,payout_minimum_balance_hold",
    reversals="payout_failure,payout_cancel,payout_reversal,transfer_reversal,transfer_refund,transfer_failure,transfer_cancel",
    fees="fee,stripe_fee",
)
_STRIPE_INVOICE = role_table(executions="charge,payment", reversals="charge_failure,payment_failure,payment_reversal", fees="fee,stripe_fee")  # fmt: skip
_STRIPE_TRANSFER = role_table(executions="transfer", reversals="transfer_reversal,transfer_refund,transfer_failure,transfer_cancel", fees="fee,stripe_fee")  # fmt: skip
_STRIPE_TYPES = {
    "refund": _STRIPE_REFUND,
    "payout": _STRIPE_PAYOUT,
    "transfer": _STRIPE_TRANSFER,
    "invoice": _STRIPE_INVOICE,
}
_STRIPE_STATUS = status_table(done="succeeded,paid,available", failed="failed,canceled,cancelled", pending="pending,requires_action,in_transit")  # fmt: skip

STRIPE_BALANCE = Layout(
    name="stripe balance report",
    needs=("balance_transaction_id", "reporting_category", "currency", "gross", "net", "source_id"),
    reference=("source_id",),
    own_prefix="refund_metadata[",
    target=("charge_id", "payment_intent_id"),
    amount=Amount("gross"),
    currency="currency",
    fee="fee",
    net="net",
    time=("created_utc", "created"),
    type="reporting_category",
    types=_STRIPE_TYPES,
    operations=frozenset(_STRIPE_TYPES),
    decimal=".",
    thousands="",
    lag_us=24 * _HOUR_US,
)
STRIPE_PAYOUTS = Layout(
    name="stripe payouts report",
    needs=("payout_id", "effective_at_utc", "currency", "gross", "net", "payout_status"),
    reference=("payout_id",),
    own_prefix="payout_metadata[",
    amount=Amount("gross"),
    currency="currency",
    fee="fee",
    net="net",
    time=("effective_at_utc", "effective_at"),
    type="reporting_category",
    types=_STRIPE_TYPES,
    operations=frozenset({"payout"}),
    status="payout_status",
    statuses=_STRIPE_STATUS,
    decimal=".",
    thousands="",
    lag_us=24 * _HOUR_US,
)
STRIPE_API_BALANCE = Layout(
    name="stripe balance transactions (API)",
    needs=("id", "amount", "currency", "source", "type", "net"),
    reference=("source.id", "source"),
    own_prefix="source.metadata.",
    target=("source.charge",),
    amount=Amount("amount", unit="minor", decimals=decimals.STRIPE),
    currency="currency",
    fee="fee",
    net="net",
    time=("created",),
    type="type",
    types=_STRIPE_TYPES,
    operations=frozenset(_STRIPE_TYPES),
)
STRIPE_API_REFUNDS = Layout(
    name="stripe refunds (API)",
    needs=("id", "object", "amount", "currency", "charge", "status"),
    reference=("id",),
    own_prefix="metadata.",
    target=("charge", "payment_intent"),
    amount=Amount("amount", unit="minor", outflow=1, decimals=decimals.STRIPE),
    currency="currency",
    time=("created",),
    type="object",
    types={"refund": {"refund": Role.EXECUTION}},
    operations=frozenset({"refund"}),
    status="status",
    statuses=_STRIPE_STATUS,
)
