"""Writing what a statement proves into the ledger: each a change of one item, with the rows as its evidence.

Only what the transition table allows lands. Money is never sent here; an item goes back to planned only where a complete
statement that is late enough proves that nothing was executed, and then under a new generation of its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from payonce.core.commands import Change, Landed
from payonce.core.events import iso
from payonce.core.model import Actor, Finding
from payonce.core.states import ItemEvent, Settlement
from payonce.ledger.protocol import Ledger
from payonce.providers.official.facts import settled
from payonce.reconcile.model import Proof, Proven
from payonce.reconcile.report import proof_json, row_name
from payonce.reconcile.statement import Statement

REASONS = {
    Proof.EXECUTED: "the statement shows the execution",
    Proof.NOT_EXECUTED: "a complete statement of the time in question does not show it",
    Proof.FAILED: "the statement shows that it failed",
    Proof.RETURNED: "the statement shows that the money came back",
    Proof.SETTLED: "the statement shows that the money arrived",
    Proof.ELSEWHERE: "the statement shows that it was executed already",
}


def apply(
    ledger: Ledger, batch: str, proven: Sequence[Proven], statement: Statement, *, actor: Actor
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Applies proofs one by one, each in a transaction of its own; a crash half-way leaves whole changes, and the same
    command goes on. Returns what was written and what was not, with the reason."""
    applied: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []
    for proof in proven:
        shown = proof_json(proof)
        landed = ledger.operate(
            batch, proof.line.item, [change_of(proof, statement)], actor=actor, reason=REASONS[proof.proof]
        )
        if landed is Landed.LANDED:
            applied.append(shown)
        else:
            left.append({**shown, "why": f"it changed meanwhile or a running process has it ({landed.value})"})
    return applied, left


def change_of(proven: Proven, statement: Statement) -> Change:
    """The change that writes a proof down."""
    line, entry = proven.line, proven.entry
    data = _evidence(proven, statement)
    match proven.proof:
        case Proof.EXECUTED:
            assert entry is not None, "an execution is proven by an entry"
            reference = entry.reference or next(iter((*entry.keys, *entry.owns)), None) or f"row {entry.rows[0]}"
            back = entry.returned >= entry.executed > 0
            return Change(
                line.n, ItemEvent.COMMIT, data=data, reference=reference, billed=proven.billed,
                settlement=Settlement.RETURNED if back else Settlement.SUCCEEDED, findings=_mismatch(proven),
            )  # fmt: skip
        case Proof.NOT_EXECUTED:
            return Change(line.n, ItemEvent.NOT_EXECUTED, data=data, generation=line.generation + 1)
        case Proof.FAILED:
            return Change(line.n, ItemEvent.REFUSE, data=data, code="failed_at_provider", message=REASONS[proven.proof])
        case Proof.RETURNED:
            failed = entry is not None and not entry.legs and entry.failed
            # Money that had arrived and is said to have failed came back.
            settlement = settled(line.settlement, Settlement.FAILED if failed else Settlement.RETURNED)
            return Change(line.n, ItemEvent.SETTLE, data=data, settlement=settlement)
        case Proof.SETTLED:
            return Change(line.n, ItemEvent.SETTLE, data=data, settlement=Settlement.SUCCEEDED)
        case Proof.ELSEWHERE:
            return Change(line.n, ItemEvent.SKIP, data=data, code="executed_elsewhere", message=REASONS[proven.proof])
        case _:
            assert_never(proven.proof)


def _evidence(proven: Proven, statement: Statement) -> dict[str, Any]:
    entry, coverage = proven.entry, statement.coverage
    data: dict[str, Any] = {"by": "statement", "statement": statement.sha256, "proves": proven.proof.value}
    if entry is not None:
        data["rows"] = [row_name(name) for name in entry.rows]
        data["reference"] = entry.reference or ""
        if entry.at_us is not None:
            data["row_time"] = iso(entry.at_us)
    elif coverage.from_us is not None and coverage.to_us is not None:
        data["covered"] = {"from": iso(coverage.from_us), "to": iso(coverage.to_us)}
    return data


def _mismatch(proven: Proven) -> tuple[Finding, ...]:
    """Another amount than asked is a finding of its own, as it is when the provider's answer says so."""
    line, billed, entry = proven.line, proven.billed, proven.entry
    if line.asked is None or billed is None or billed == line.asked or entry is None:
        return ()
    data = {"asked": str(line.asked), "billed": str(billed), "reference": entry.reference or ""}
    return (Finding("amount_mismatch", line.item, data),)
