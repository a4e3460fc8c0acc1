"""PayPal's reports: activity, settlement (STL), transaction detail (TRR), and the API's transaction search.

Column names as in PayPal's public documentation (docs/reference/statements.md names the sources).
"""

from __future__ import annotations

from typing import Final

from payonce.core import decimals
from payonce.reconcile.layout import Amount, Layout, role_table, status_table

_HOUR_US: Final = 3_600_000_000

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
