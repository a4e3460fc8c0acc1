"""The reports that are known by their headers: Stripe, Adyen, PayPal, OpenRouter, and the built-in provider's own.

Column names are those of the providers' public documentation and of public exports (docs/reference/statements.md names
the sources). A report that is none of these is read with a [statement] table.
"""

from __future__ import annotations

from typing import Final

from payonce.reconcile.layout import Amount, Credit, Layout, role_table
from payonce.reconcile.reports_adyen import ADYEN_ACCOUNTING, ADYEN_SETTLEMENT
from payonce.reconcile.reports_paypal import PAYPAL_ACTIVITY, PAYPAL_API, PAYPAL_STL, PAYPAL_TRR
from payonce.reconcile.reports_stripe import STRIPE_API_BALANCE, STRIPE_API_REFUNDS, STRIPE_BALANCE, STRIPE_PAYOUTS

_HOUR_US: Final = 3_600_000_000

OPENROUTER = Layout(
    name="openrouter activity",
    needs=("generation_id", "created_at", "cost_total", "model_permaslug"),
    reference=("generation_id",),
    own=("user",),
    amount=Amount("cost_total", outflow=1),
    currency_value="USDC",
    time=("created_at",),
    operations=None,
    decimal=".",
    thousands="",
    lag_us=_HOUR_US,
)
_SIMULATED = {
    "refund": role_table(executions="refund", reversals="refund_failure,refund_failed,refund_returned,refund_canceled"),
    "payout": role_table(
        executions="payout,transfer",
        reversals="payout_failure,payout_returned,payout_canceled,transfer_failure,transfer_returned,transfer_canceled",
    ),
    "invoice": role_table(executions="invoice", reversals="invoice_failure,invoice_returned,invoice_canceled"),
    "call": role_table(executions="call", reversals="call_failure,call_returned"),
}
SIMULATOR = Layout(
    name="built-in provider's statement",
    needs=("refund_id", "type", "charge", "amount", "currency", "created", "idempotency_key", "reference"),
    reference=("refund_id",),
    key=("idempotency_key",),
    own=("reference",),
    target=("charge",),
    amount=Amount("amount", unit="minor", outflow=1),
    currency="currency",
    time=("created",),
    type="type",
    types=_SIMULATED,
)
SIMULATOR_CALLS = Credit(official="official_price", credit="credit", multiplier="multiplier")

# The more particular ones first: a report's columns may contain another's.
REPORTS: Final[tuple[Layout, ...]] = (
    SIMULATOR, STRIPE_BALANCE, STRIPE_PAYOUTS, STRIPE_API_BALANCE, STRIPE_API_REFUNDS, ADYEN_SETTLEMENT, ADYEN_ACCOUNTING,
    PAYPAL_ACTIVITY, PAYPAL_STL, PAYPAL_TRR, PAYPAL_API, OPENROUTER,
)  # fmt: skip
# Reports whose done rows say that the money arrived, not only that it left.
SETTLING: Final = frozenset(
    layout.name for layout in (ADYEN_SETTLEMENT, ADYEN_ACCOUNTING, STRIPE_API_REFUNDS, STRIPE_PAYOUTS, PAYPAL_ACTIVITY)
)
