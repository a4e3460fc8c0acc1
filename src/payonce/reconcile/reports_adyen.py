"""Adyen's reports: settlement details and payment accounting.

Column names as in Adyen's public documentation (docs/reference/statements.md names the sources).
"""

from __future__ import annotations

from typing import Final

from payonce.reconcile.layout import Amount, Layout, role_table, status_table

_HOUR_US: Final = 3_600_000_000

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
