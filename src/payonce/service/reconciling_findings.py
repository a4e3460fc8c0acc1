"""The life of findings: open, acknowledged, resolved, each step with a person and a reason.

A finding is a row that is never changed: each step is a further row that names the first, so that the trail holds all of
it. The same facts in a second statement open nothing again; other facts (the money came back) open a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import UsageError
from payonce.core.events import iso
from payonce.core.model import Actor, Finding
from payonce.ledger.protocol import Ledger
from payonce.reconcile.model import Discrepancy, Kind, Reconciliation
from payonce.reconcile.report import amount, fingerprint, row_name
from payonce.reconcile.statement import Statement
from payonce.service.inspecting import find_batch

STEPS: Final = ("acknowledged", "resolved")
# What an execution of another batch was taken for while the ledger did not have it there yet.
_OF_ANOTHER: Final = (Kind.DUPLICATE.value, Kind.MISSING_IN_LEDGER.value)
# So many findings go into one transaction.
_AT_ONCE: Final = 1000


def findings(ledger: Ledger, batch: str) -> list[dict[str, Any]]:
    """All findings of a batch, oldest first, as they stand now: whatever opened them, a run or a reconciliation."""
    find_batch(ledger, batch)
    found: dict[int, dict[str, Any]] = {}
    for row in ledger.findings(batch):
        first = row.data.get("of")
        if isinstance(first, int) and first in found:
            step = {"state": row.data.get("state"), "reason": row.data.get("reason"), "by": row.data.get("by"),
                    "at": iso(row.opened_us)}  # fmt: skip
            found[first]["state"] = step["state"]
            found[first]["steps"].append(step)
            continue
        found[row.id] = {
            "id": row.id, "class": row.kind, "item": row.item, "state": row.state, "opened_at": iso(row.opened_us),
            **{name: value for name, value in row.data.items() if name != "of"}, "steps": [],
        }  # fmt: skip
    return list(found.values())


def lives(ledger: Ledger, batch: str) -> dict[str, Mapping[str, Any]]:
    """The findings of reconciliations by fingerprint; the latest of each."""
    known = findings(ledger, batch)
    return {str(finding["fingerprint"]): finding for finding in known if "fingerprint" in finding}


def open_new(
    ledger: Ledger, batch: str, result: Reconciliation, statement: Statement, *, actor: Actor
) -> dict[str, Mapping[str, Any]]:
    """Opens what no earlier statement showed, and closes open findings that this one explains. Returns all lives."""
    known = lives(ledger, batch)
    new = {fingerprint(d): d for d in result.discrepancies if fingerprint(d) not in known}
    rows = [Finding(d.kind.value, d.item, _facts(d, mark, statement)) for mark, d in new.items()]
    rows += _explained(known, result, statement)
    for start in range(0, len(rows), _AT_ONCE):
        note = Control(BatchCommand.NOTE, code="findings", findings=tuple(rows[start : start + _AT_ONCE]))
        ledger.control(batch, note, actor=actor)
    return lives(ledger, batch) if rows else known


def close_explained(
    ledger: Ledger, batch: str, result: Reconciliation, statement: Statement, *, actor: Actor
) -> dict[str, Mapping[str, Any]]:
    """Closes open findings that a statement explains once its proofs were applied. Returns all lives."""
    rows = _explained(lives(ledger, batch), result, statement)
    for start in range(0, len(rows), _AT_ONCE):
        note = Control(BatchCommand.NOTE, code="findings", findings=tuple(rows[start : start + _AT_ONCE]))
        ledger.control(batch, note, actor=actor)
    return lives(ledger, batch)


def _explained(known: Mapping[str, Mapping[str, Any]], result: Reconciliation, statement: Statement) -> list[Finding]:
    """Missing items that a later statement shows, executions that the ledger has by now, and those that another batch
    accounts for: the finding is resolved by the statement."""
    still = {fingerprint(d) for d in result.discrepancies}
    elsewhere = {entry.reference for entry in result.elsewhere if entry.reference}
    bad = {d.item for d in result.discrepancies}
    rows = []
    for mark, finding in known.items():
        item = finding["item"]
        if mark in still or finding["state"] == "resolved":
            continue
        if finding["class"] in _OF_ANOTHER and finding.get("reference") in elsewhere:
            reason = f"statement {statement.sha256}: accounted for by another batch of the ledger"
        elif item not in result.pairs or item in bad:
            continue
        elif finding["class"] == Kind.MISSING_AT_PROVIDER.value:
            reason = f"statement {statement.sha256} shows it"
        elif finding["class"] == Kind.STATUS_MISMATCH.value and _was_behind(finding):
            reason = f"statement {statement.sha256} shows it, and the ledger has it too"
        else:
            continue
        data = {"of": finding["id"], "state": "resolved", "by": "statement", "reason": reason}
        rows.append(Finding(str(finding["class"]), item, data))
    return rows


def _was_behind(finding: Mapping[str, Any]) -> bool:
    """Whether the provider had executed what the ledger had otherwise; money that came back stays for a person."""
    ledger, statement = (Decimal(finding.get(name) or 0) for name in ("ledger_amount", "statement_amount"))
    return ledger == 0 and statement > 0


def _facts(found: Discrepancy, mark: str, statement: Statement) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "fingerprint": mark,
        "statement": statement.sha256,
        "rows": [row_name(name) for name in found.rows],
        "reference": found.reference,
        "ledger_amount": amount(found.ledger, found.currency),
        "statement_amount": amount(found.statement, found.statement_currency or found.currency),
        "currency": found.currency or None,
        "note": found.note,
    }
    if found.expected is not None:
        facts |= {"expected": found.expected, "found": found.found}
    return {name: value for name, value in facts.items() if value is not None}


def step(ledger: Ledger, batch: str, finding: int, *, state: str, reason: str, actor: Actor) -> dict[str, Any]:
    """Acknowledges or resolves one finding, with a reason; returns it as it is now.

    Raises UsageError for no reason, an unknown finding, and one that is resolved already.
    """
    assert state in STEPS, f"{state} is no step of a finding"
    if not reason.strip():
        raise UsageError("a finding's step needs a reason", code="no_reason", hint='--reason "..."')
    known = {row["id"]: row for row in findings(ledger, batch)}
    if finding not in known:
        raise UsageError(
            f"batch {batch!r} has no finding {finding}",
            code="no_such_finding",
            hint=f"payonce findings {batch} lists them",
        )
    if known[finding]["state"] == "resolved":
        raise UsageError(
            f"finding {finding} is resolved already",
            code="already_resolved", hint="what is new about it will open a finding of its own",
        )  # fmt: skip
    data = {"of": finding, "state": state, "reason": reason.strip(), "by": actor.user or actor.program}
    row = Finding(str(known[finding]["class"]), known[finding]["item"], data)
    ledger.control(
        batch, Control(BatchCommand.NOTE, code=f"finding_{state}", reason=reason, findings=(row,)), actor=actor
    )
    return next(row for row in findings(ledger, batch) if row["id"] == finding)
