"""What calls whose price is known only afterwards may cost: kept inside the ledger's own transactions, over all workers.

Two rules. An execution that cost more than was reserved for it is a finding, and where it breaks the budget the batch
stops. An item of which nobody knows whether it was executed may be paid for once more only in a batch of calls that says
so, within its limit; what may have been paid twice goes on counting against the budget, as a finding each.
"""

from __future__ import annotations

from typing import Any, Final

from payonce.core.commands import Change, Landed, StopBatch
from payonce.core.money import format_minor, parse_minor
from payonce.core.states import BatchState, ItemEvent
from payonce.ledger import effects, findings
from payonce.ledger.desk import Desk
from payonce.ledger.rows import ItemRow, OpenRow, load

PAID_AGAIN: Final = "paid_again"
OVER_RESERVE: Final = "over_reserve"
# The only operation whose effect, done twice, costs no more than its price. Refunds, payouts and invoices move money.
_CALL: Final = "call"


def paid_again(desk: Desk, currency: str) -> int:
    """Minor units of a currency that this batch may have paid a second time, all workers and runs together."""
    if desk.again is None:
        desk.again = {}
        if load(desk.batch.spec).get("operation") == _CALL:
            for kind, _, data in desk.findings_so_far():
                if kind == PAID_AGAIN:
                    code = str(data["currency"])
                    desk.again[code] = desk.again.get(code, 0) + parse_minor(str(data["amount"]), code)
    return desk.again.get(currency, 0)


def over_budget(desk: Desk, held: OpenRow | None, minor: int | None, currency: str | None) -> bool:
    """Whether an intent that holds an amount would break the batch's budget, all workers together."""
    budget = desk.limits.get("budget")
    if not budget or minor is None or currency is None or currency not in budget:
        return False
    already = (held.hold_minor or 0) if held is not None and held.hold_currency == currency else 0
    # Holding no more than before is never refused: a resend costs the same money, not new money.
    if minor <= already:
        return False
    spent = desk.held_or_billed(currency) + paid_again(desk, currency)
    return spent - already + minor > int(budget[currency])


def may_pay_again(desk: Desk, held: OpenRow | None) -> Landed:
    """Whether an item may be paid for once more: by the batch's operation, policy and limit."""
    limits: Any = desk.limits
    if held is None or held.hold_minor is None or held.hold_currency is None:
        return Landed.STALE  # nobody knows how much it may have cost
    if limits.get("on_unknown") != "pay_again" or load(desk.batch.spec).get("operation") != _CALL:
        return Landed.STALE
    limit = dict(limits.get("pay_again_limit") or {}).get(held.hold_currency)
    if limit is None or paid_again(desk, held.hold_currency) + held.hold_minor > int(limit):
        return Landed.OVER_BUDGET
    return Landed.LANDED


def after(desk: Desk, row: ItemRow, held: OpenRow | None, change: Change, stamp: findings.Stamp) -> None:
    """What follows from a change that landed: what was paid again is noted, what cost too much is reported."""
    if change.event is ItemEvent.PAY_AGAIN and held is not None:
        _note(desk, row, held, change, stamp)
    elif change.event is ItemEvent.COMMIT and row.minor is None:
        _settle(desk, row, held, stamp)


def _note(desk: Desk, row: ItemRow, held: OpenRow, change: Change, stamp: findings.Stamp) -> None:
    minor, currency = held.hold_minor, held.hold_currency
    assert minor is not None and currency is not None, "it was checked before the change landed"
    paid_again(desk, currency)
    assert desk.again is not None
    desk.again[currency] = desk.again.get(currency, 0) + minor
    data = {
        "amount": format_minor(minor, currency),
        "currency": currency,
        "code": change.code,
        "attempt": row.attempts,
        "note": f"{change.code or 'no answer'}: its call {row.attempts} may have been executed, it may be paid for once more",
    }
    reference = row.reference or load(row.carry).get("answer_id")
    if reference is not None:
        data["reference"] = str(reference)
    findings.find(desk, row, PAID_AGAIN, data, stamp)


def _settle(desk: Desk, row: ItemRow, held: OpenRow | None, stamp: findings.Stamp) -> None:
    billed, currency = row.billed_minor, row.billed_currency
    if billed is None or currency is None:
        return
    if held is not None and held.hold_currency == currency and held.hold_minor is not None and billed > held.hold_minor:
        data = {
            "reference": row.reference,
            "reserve": format_minor(held.hold_minor, currency),
            "billed": format_minor(billed, currency),
            "currency": currency,
        }
        findings.find(desk, row, OVER_RESERVE, data, stamp)
    budget = dict(desk.limits.get("budget") or {}).get(currency)
    if budget is None or desk.batch.state is not BatchState.RUNNING:
        return
    spent = desk.held_or_billed(currency) + paid_again(desk, currency)
    if spent > int(budget):
        text = (
            f"item {row.id} cost {format_minor(billed, currency)} {currency}: billed and reserved together are "
            f"{format_minor(spent, currency)}, the budget is {format_minor(int(budget), currency)}"
        )
        effects.stop(desk, StopBatch("budget", text), stamp)
