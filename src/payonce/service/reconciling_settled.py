"""Money that arrived, as a statement shows it: committed items whose settlement was still pending.

Only a report that says so settles anything: a refund that stands in a balance may still be on its way, one that a
provider's settlement report lists as refunded has left. Nothing else about an item changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from payonce.core.commands import Landed
from payonce.core.model import Actor, Batch
from payonce.core.states import Settlement
from payonce.ledger.protocol import Ledger
from payonce.reconcile import reports
from payonce.reconcile.model import Proof, Proven, Reconciliation
from payonce.reconcile.statement import Statement
from payonce.service.reconciling_apply import REASONS, change_of
from payonce.service.reconciling_ledger import ledger_lines


def arrived(ledger: Ledger, batch: Batch, result: Reconciliation, statement: Statement) -> list[Proven]:
    """The items whose money has arrived and whose settlement is still pending in the ledger, in input order."""
    if statement.layout not in reports.SETTLING:
        return []
    odd = {found.item for found in result.discrepancies}
    found = []
    for line in ledger_lines(ledger, batch):
        number = result.pairs.get(line.item)
        if number is None or line.settlement is not Settlement.PENDING or not line.committed or line.item in odd:
            continue
        entry = statement.entries[number]
        # A row that was pending before the done one is the usual course.
        if entry.legs and not (entry.returned or entry.failed):
            found.append(Proven(line, Proof.SETTLED, entry))
    return found


def record(ledger: Ledger, batch: str, proven: Sequence[Proven], statement: Statement, *, actor: Actor) -> int:
    """Writes that the money arrived, an event an item; how many were written. A crash half-way leaves whole changes."""
    return sum(
        ledger.operate(batch, one.line.item, [change_of(one, statement)], actor=actor, reason=REASONS[Proof.SETTLED])
        is Landed.LANDED
        for one in proven
    )
