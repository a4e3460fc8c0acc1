"""Reconciling a batch with the provider's statement: reads both sides, compares them, and keeps what was found.

The comparison is ``reconcile.match``, which is pure; here is what surrounds it: the right statement for the batch or
none, the trail's event with the statement's digest, findings with a life, and ``--apply``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.model import Actor, Batch
from payonce.ledger.protocol import Ledger
from payonce.reconcile.errors import refuse
from payonce.reconcile.mapping import read_mapping
from payonce.reconcile.match import reconcile
from payonce.reconcile.model import Coverage, Entry, Kind, LedgerLine, Proof, Reconciliation
from payonce.reconcile.pairing import pair
from payonce.reconcile.report import Report
from payonce.reconcile.statement import Statement, Wanted, read_statement
from payonce.service import reconciling_findings as findings
from payonce.service.inspecting import find_batch
from payonce.service.reconciling_apply import apply
from payonce.service.reconciling_ledger import ledger_lines, with_keys, with_times

_REFERENCES_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be reconciled. ``mapping`` is a [statement] table, None for the one sealed with the batch. ``from_us``
    and ``to_us`` bound the period."""

    batch: str
    files: tuple[Path, ...] = ()
    mapping: Mapping[str, Any] | None = None
    from_us: int | None = None
    to_us: int | None = None
    apply: bool = False


def reconcile_files(ledger: Ledger, asked: Asked, *, actor: Actor) -> Report:
    """Reconciles a batch with statement files.

    Writes one note with the statement's digest, and findings that are new; with ``apply`` also what the statement proves
    about items. Raises StatementError where the statement cannot be used or is not this batch's: nothing is written.
    """
    batch = find_batch(ledger, asked.batch)
    return reconcile_statement(ledger, batch, statement_of(batch, asked), asked, actor=actor)


def statement_of(batch: Batch, asked: Asked) -> Statement:
    """Reads the statement as the mapping that was given or sealed says. Raises StatementError and ConfigError."""
    given = asked.mapping if asked.mapping is not None else batch.spec.config.get("statement")
    mapping = read_mapping(given) if given else None
    return read_statement(asked.files, Wanted(batch.spec.operation, mapping, asked.from_us, asked.to_us))


def reconcile_statement(ledger: Ledger, batch: Batch, statement: Statement, asked: Asked, *, actor: Actor) -> Report:
    """As ``reconcile_files``, with a statement that was read or fetched already."""
    result = compare(ledger, batch, statement)
    known = findings.open_new(ledger, batch.spec.id, result, statement, actor=actor)
    applied: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []
    later = 0
    if asked.apply and result.proven:
        applied, left = apply(ledger, batch.spec.id, result.proven, statement, actor=actor)
        later = sum(change["proves"] in (Proof.RETURNED.value, Proof.FAILED.value) for change in applied)
        result = compare(ledger, batch, statement)
    lives = findings.lives(ledger, batch.spec.id) if applied else known
    report = Report(
        batch.spec.id, batch.spec.operation, statement, result, time.time_ns() // 1000, lives, applied, left, later,
        account=batch.spec.account,
    )  # fmt: skip
    ledger.control(batch.spec.id, Control(BatchCommand.NOTE, code="reconciled", data=_event(report)), actor=actor)
    return report


def compare(ledger: Ledger, batch: Batch, statement: Statement) -> Reconciliation:
    """The comparison alone; writes nothing. Raises StatementError where the statement is not this batch's."""
    lines = ledger_lines(ledger, batch)
    sample = next((key for entry in statement.entries for key in entry.keys), None)
    if sample is not None:
        lines = with_keys(batch, lines, sample)
    pairs = pair(lines, statement.entries, Coverage())
    _check_is_ours(batch, lines, statement, matched=len(pairs.entry_of))
    unexplained = [place for place in range(len(lines)) if place not in pairs.entry_of or place in pairs.extras]
    lines = with_times(ledger, batch.spec.id, lines, unexplained)
    free = [entry for number, entry in enumerate(statement.entries) if number not in pairs.line_of]
    return reconcile(lines, statement.entries, statement.coverage, elsewhere=_elsewhere(ledger, batch, lines, free))


def _elsewhere(ledger: Ledger, batch: Batch, lines: Sequence[LedgerLine], free: Sequence[Entry]) -> frozenset[str]:
    """References of entries that another batch of the ledger accounts for."""
    own = {line.reference for line in lines}
    asked = [entry.reference for entry in free if entry.reference and entry.reference not in own]
    found: set[str] = set()
    for start in range(0, len(asked), _REFERENCES_AT_ONCE):
        found |= ledger.claimed_references(batch.spec.id, asked[start : start + _REFERENCES_AT_ONCE])
    return frozenset(found)


def _check_is_ours(batch: Batch, lines: Sequence[LedgerLine], statement: Statement, *, matched: int) -> None:
    """Refuses a statement of another account, currency or time; it must never be matched at zero."""
    account = batch.spec.account
    if account is not None and statement.accounts and account not in statement.accounts:
        refuse(
            f"the statement is of account {', '.join(sorted(statement.accounts))}, the batch of {account}",
            code="wrong_account", hint="take the statement of the batch's own account",
        )  # fmt: skip
    committed = [line for line in lines if line.committed]
    if matched or not committed:
        return
    ours = {line.money.currency for line in committed if line.money is not None}
    theirs = {entry.currency for entry in statement.entries}
    if ours and not ours & theirs:
        refuse(
            f"the statement is in {', '.join(sorted(theirs))}, the batch in {', '.join(sorted(ours))}",
            code="wrong_currency", hint="take the statement of the batch's currency, or check [statement] currency",
        )  # fmt: skip
    times = [line.latest_us for line in committed if line.latest_us is not None]
    coverage = statement.coverage
    before = times and coverage.from_us is not None and max(times) < coverage.from_us
    after = times and coverage.to_us is not None and min(times) > coverage.to_us
    if before or after:
        refuse(
            "the statement covers another time than the one in which the batch was executed",
            code="wrong_period",
            hint="take the statement of the time in which the batch ran",
        )
    refuse(
        f"none of the batch's {len(committed)} executed items is in the statement, by reference, key or own reference",
        code="nothing_matches",
        hint="another account, another report, or [statement] names the wrong columns; payonce items shows the references",
    )


def _event(report: Report) -> dict[str, Any]:
    """What the trail keeps of a reconciliation."""
    result, statement = report.result, report.statement
    return {
        "statement": statement.sha256,
        "report": statement.layout,
        "files": list(statement.files),
        "rows": statement.rows,
        "used": statement.used,
        "from_us": statement.coverage.from_us,
        "to_us": statement.coverage.to_us,
        "classes": {kind.value: count for kind, count in result.counts.items() if count},
        "balance": {
            currency: {"ledger": sums.ledger, "statement": sums.statement, "explained": sums.explained}
            for currency, sums in result.balance.items()
        },
        "applied": len(report.applied),
        "found": sum(result.counts.get(kind, 0) for kind in Kind if kind.is_finding),
    }
