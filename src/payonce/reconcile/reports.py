"""The reports that are known by their headers: Stripe, Adyen, PayPal, OpenRouter, and the built-in provider's own.

Column names are those of the providers' public documentation and of public exports (docs/reference/statements.md names
the sources). A report that is none of these is read with a [statement] table.
"""

from __future__ import annotations

from typing import Final

from payonce.core import decimals
from payonce.reconcile.layout import Amount, Credit, Layout, Role, role_table, status_table

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
ADYEN_SETTLEMENT = Layout(
    name="adyen settlement details",
    needs=("Merchant Account", "Psp Reference", "Type", "Modification Reference", "Gross Currency", "Gross Debit (GC)", "Gross Credit (GC)"),
    reference=("Modification Reference", "Psp Reference"),
    own=("Modification Merchant Reference",),
    target=("Psp Reference",),
    amount=Amount("Gross Debit (GC)", credit="Gross Credit (GC)"),
    currency="Gross Currency",
    time=("Creation Date",),
    zone_column="TimeZone",
    account="Merchant Account",
    type="Type",
    types={
        "refund": role_table(executions="refunded,refundedexternallywithinfo", reversals="refundedreversed,refundfailed,refundreversed", fees="fee"),
        "payout": role_table(executions="merchantpayout,payout,paidout", reversals="paidoutreversed,payoutreversed,payouterror", fees="fee"),
        "invoice": role_table(executions="settled,settledexternallywithinfo", reversals="settledreversed", fees="fee"),
    },
    operations=frozenset({"refund", "payout", "invoice"}),
    decimal=".",
    thousands="",
    lag_us=72 * _HOUR_US,
)  # fmt: skip
ADYEN_ACCOUNTING = Layout(
    name="adyen payment accounting",
    needs=("Merchant Account", "Psp Reference", "Record Type", "Modification Psp Reference", "Main Currency", "Main Amount"),
    reference=("Modification Psp Reference", "Psp Reference"),
    own=("Modification Merchant Reference",),
    target=("Psp Reference",),
    amount=Amount("Main Amount", unsigned=True),
    currency="Main Currency",
    time=("Creation Date",),
    zone_column="TimeZone",
    account="Merchant Account",
    type="Record Type",
    # A refund is booked twice: when it is sent for refunding, which is not final, and when it was refunded.
    types={
        "refund": role_table(executions="refunded,sentforrefund,refundfailed", reversals="refundedreversed", fees="fee"),
        "invoice": role_table(executions="settled,sentforsettle", reversals="settledreversed", fees="fee"),
    },
    status="Record Type",
    statuses=status_table(done="refunded,refundedreversed,settled,settledreversed,fee", failed="refundfailed", pending="sentforrefund,sentforsettle"),
    operations=frozenset({"refund", "invoice"}),
    decimal=".",
    thousands="",
    lag_us=72 * _HOUR_US,
)  # fmt: skip

_PAYPAL_STATUS = status_table(
    done="completed,s,success,partially refunded,refunded,partially reversed",
    failed="denied,failed,voided,canceled,cancelled,expired,returned,removed,d,v,blocked",
    pending="pending,p,on hold,held,processing,unclaimed,placed,uncleared",
)
PAYPAL_ACTIVITY = Layout(
    name="paypal activity",
    needs=("Date", "Time", "TimeZone", "Type", "Status", "Currency", "Gross", "Fee", "Net", "Transaction ID", "Reference Txn ID"),
    reference=("Transaction ID",),
    own=("Custom Number", "Invoice Number", "Invoice ID"),
    target=("Reference Txn ID",),
    parent="Reference Txn ID",
    amount=Amount("Gross"),
    currency="Currency",
    fee="Fee",
    net="Net",
    fee_sign=1,
    time=("Date", "Time"),
    zone_column="TimeZone",
    type="Type",
    types={
        "refund": role_table(
            executions="payment refund,refund,partial refund",
            reversals="payment refund reversal,refund reversal,cancelled refund,payment refund cancellation",
            fees="payment refund fee reversal,fee reversal,partner fee,fee,refund fee",
            fx="general currency conversion,currency conversion",
            holds="account hold for open authorization,payment hold,hold,payment release,payment hold release,reserve hold,reserve release",
        ),
        "payout": role_table(
            executions="mass payment,mass pay payment,payout,payouts payment,general payment",
            reversals="mass payment reversal,mass payment refund,mass pay reversal,payout refund,mass pay refund",
            fees="mass payment fee,mass pay fee,payouts fee,fee,fee reversal",
            fx="general currency conversion,currency conversion",
            holds="payment hold,hold,payment release",
        ),
    },
    operations=frozenset({"refund", "payout"}),
    status="Status",
    statuses=_PAYPAL_STATUS,
    lag_us=3 * _HOUR_US,
)  # fmt: skip

# Transaction event codes: the refund itself, what undoes one, conversions, holds and their releases, fees.
_PAYPAL_CODES = {
    "refund": role_table(executions="t1107", reversals="t1101,t1115", fees="t0100,t0106,t0107,t1108,t1109", fx="t0200,t0201,t0202", holds="t1105,t1503,t1501,t2103,t2101"),
    "payout": role_table(executions="t0001", reversals="t1114,t1115", fees="t0104,t0100", fx="t0200,t0201,t0202", holds="t1105,t1503"),
}  # fmt: skip
PAYPAL_STL = Layout(
    name="paypal settlement report (STL)",
    needs=("Transaction ID", "Invoice ID", "PayPal Reference ID", "Transaction Event Code", "Transaction  Debit or Credit", "Gross Transaction Amount", "Gross Transaction Currency"),
    reference=("Transaction ID",),
    own=("Custom Field", "Invoice ID"),
    target=("PayPal Reference ID",),
    parent="PayPal Reference ID",
    amount=Amount(
        "Gross Transaction Amount", side="Transaction  Debit or Credit", unit="minor", decimals=decimals.PAYPAL_REPORTS
    ),
    currency="Gross Transaction Currency",
    time=("Transaction Completion Date", "Transaction Initiation Date"),
    type="Transaction Event Code",
    types=_PAYPAL_CODES,
    operations=frozenset({"refund", "payout"}),
    row_type="",
    body=frozenset({"SB"}),
    counts={"SC": "SB"},
    lag_us=24 * _HOUR_US,
)  # fmt: skip
PAYPAL_TRR = Layout(
    name="paypal transaction detail (TRR)",
    needs=("Transaction ID", "Invoice ID", "PayPal Reference ID", "Transaction Event Code", "Transactional Status", "Gross Transaction Amount", "Gross Transaction Currency"),
    reference=("Transaction ID",),
    own=("Custom Field", "Invoice ID"),
    target=("PayPal Reference ID",),
    parent="PayPal Reference ID",
    amount=Amount(
        "Gross Transaction Amount", side="Transaction Debit or Credit", unit="minor", decimals=decimals.PAYPAL_REPORTS
    ),
    currency="Gross Transaction Currency",
    time=("Transaction Completion Date", "Transaction Initiation Date"),
    type="Transaction Event Code",
    types=_PAYPAL_CODES,
    operations=frozenset({"refund", "payout"}),
    status="Transactional Status",
    statuses=_PAYPAL_STATUS,
    row_type="",
    body=frozenset({"SB"}),
    counts={"SC": "SB"},
    lag_us=24 * _HOUR_US,
)  # fmt: skip
PAYPAL_API = Layout(
    name="paypal transaction search (API)",
    needs=("transaction_info.transaction_id", "transaction_info.transaction_event_code", "transaction_info.transaction_amount.value", "transaction_info.transaction_status"),
    reference=("transaction_info.transaction_id",),
    own=("transaction_info.custom_field", "transaction_info.invoice_id"),
    target=("transaction_info.paypal_reference_id",),
    parent="transaction_info.paypal_reference_id",
    amount=Amount("transaction_info.transaction_amount.value"),
    currency="transaction_info.transaction_amount.currency_code",
    time=("transaction_info.transaction_updated_date", "transaction_info.transaction_initiation_date"),
    type="transaction_info.transaction_event_code",
    types=_PAYPAL_CODES,
    operations=frozenset({"refund", "payout"}),
    status="transaction_info.transaction_status",
    statuses=_PAYPAL_STATUS,
    decimal=".",
    thousands="",
    lag_us=3 * _HOUR_US,
)  # fmt: skip
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
