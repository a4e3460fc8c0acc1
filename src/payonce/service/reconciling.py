"""Reconciling a batch with the provider's statement: reads both sides, compares them, and keeps what was found.

The comparison is ``reconcile.match``, which is pure; here is what surrounds it: the right statement for the batch or
none, the trail's event with the statement's digest, findings with a life, and ``--apply``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from payonce.core.commands import BatchCommand, Control
from payonce.core.model import Actor, Batch
from payonce.ledger.protocol import Ledger
from payonce.reconcile.mapping import read_mapping
from payonce.reconcile.model import Kind, Proof, Reconciliation
from payonce.reconcile.report import Report
from payonce.reconcile.statement import Statement, Wanted, read_statement
from payonce.service import reconciling_bulk as bulk
from payonce.service import reconciling_findings as findings
from payonce.service.inspecting import find_batch
from payonce.service.reconciling_apply import apply
from payonce.service.reconciling_compare import compare
from payonce.service.reconciling_settled import arrived, record


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
    if not asked.apply:
        found = bulk.compare_large(ledger, batch, asked.files, wanted_of(batch, asked))
        if found is not None:
            return _recorded(ledger, batch, found[0], found[1], actor=actor)
    return reconcile_statement(ledger, batch, statement_of(batch, asked), asked, actor=actor)


def wanted_of(batch: Batch, asked: Asked) -> Wanted:
    """What a statement is read for, with the mapping that was given or sealed. Raises ConfigError."""
    given = asked.mapping if asked.mapping is not None else batch.spec.config.get("statement")
    mapping = read_mapping(given) if given else None
    return Wanted(batch.spec.operation, mapping, asked.from_us, asked.to_us, time.time_ns() // 1000)


def statement_of(batch: Batch, asked: Asked) -> Statement:
    """Reads the statement. Raises StatementError and ConfigError."""
    return read_statement(asked.files, wanted_of(batch, asked))


def _recorded(ledger: Ledger, batch: Batch, statement: Statement, result: Reconciliation, *, actor: Actor) -> Report:
    """A comparison with its findings opened and its event in the trail."""
    known = findings.open_new(ledger, batch.spec.id, result, statement, actor=actor)
    report = Report(
        batch.spec.id,
        batch.spec.operation,
        statement,
        result,
        time.time_ns() // 1000,
        known,
        account=batch.spec.account,
    )
    ledger.control(batch.spec.id, Control(BatchCommand.NOTE, code="reconciled", data=_event(report)), actor=actor)
    return report


def reconcile_statement(
    ledger: Ledger,
    batch: Batch,
    statement: Statement,
    asked: Asked,
    *,
    actor: Actor,
    comparing: Callable[[Ledger, Batch, Statement], Reconciliation] = compare,
) -> Report:
    """As ``reconcile_files``, with a statement that was read or fetched already."""
    result = comparing(ledger, batch, statement)
    known = findings.open_new(ledger, batch.spec.id, result, statement, actor=actor)
    applied: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []
    later = 0
    money = arrived(ledger, batch, result, statement)
    if asked.apply and result.proven:
        applied, left = apply(ledger, batch.spec.id, result.proven, statement, actor=actor)
        later = sum(change["proves"] in (Proof.RETURNED.value, Proof.FAILED.value) for change in applied)
        result = comparing(ledger, batch, statement)
    recorded = record(ledger, batch.spec.id, money, statement, actor=actor) if asked.apply else 0
    lives = known
    if applied:
        lives = findings.close_explained(ledger, batch.spec.id, result, statement, actor=actor)
    report = Report(
        batch.spec.id, batch.spec.operation, statement, result, time.time_ns() // 1000, lives, applied, left, later,
        account=batch.spec.account, arrived=len(money), arrived_recorded=recorded,
    )  # fmt: skip
    ledger.control(batch.spec.id, Control(BatchCommand.NOTE, code="reconciled", data=_event(report)), actor=actor)
    return report


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
        "arrived": report.arrived_recorded,
        "found": sum(result.counts.get(kind, 0) for kind in Kind if kind.is_finding),
    }
