"""A reconciliation as data for programs: fixed names, amounts as text in major units, times in ISO 8601."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from payonce.core.events import iso
from payonce.core.keys import digest
from payonce.core.money import format_minor
from payonce.reconcile.model import Attached, Discrepancy, Kind, Proven, Reconciliation
from payonce.reconcile.statement import Statement

_LISTED_ROWS: Final = 1000


@dataclass(frozen=True, slots=True)
class Report:
    """One reconciliation of one batch with one statement. ``lives`` are the findings' ids and states by fingerprint,
    ``applied`` what was written to the ledger because of it, ``left`` what could not be written and why. ``arrived`` are
    committed items whose money, pending until now, the statement shows as arrived; so many of them were written."""

    batch: str
    operation: str
    statement: Statement
    result: Reconciliation
    at_us: int
    lives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    applied: Sequence[Mapping[str, Any]] = ()
    left: Sequence[Mapping[str, Any]] = ()
    later_facts: int = 0
    account: str | None = None
    arrived: int = 0
    arrived_recorded: int = 0

    @property
    def found(self) -> bool:
        """Whether anything is left that somebody has to look at: a finding that nobody resolved, or a later fact."""
        states = (self.lives.get(fingerprint(d), {}).get("state") for d in self.result.discrepancies)
        return self.later_facts > 0 or any(state != "resolved" for state in states)


def fingerprint(found: Discrepancy) -> str:
    """What makes a finding this one: another statement that shows the same opens nothing, one with other facts does."""
    facts = (found.kind, found.item, found.reference, found.currency, found.ledger, found.statement,
             found.statement_currency, found.expected, found.found, found.count)  # fmt: skip
    return digest("\x1f".join("" if fact is None else str(fact) for fact in facts).encode())[:24]


def document(report: Report) -> dict[str, Any]:
    """The JSON contract of ``payonce reconcile --json``."""
    statement, result = report.statement, report.result
    return {
        "batch": report.batch,
        "statement": _statement(statement),
        "classes": {kind.value: result.counts.get(kind, 0) for kind in Kind},
        "balance": {currency: _balance(result, currency) for currency in result.balance},
        "discrepancies": [discrepancy_json(report, found) for found in result.discrepancies],
        "proofs": [proof_json(proven) for proven in result.proven],
        "not_covered": [found.item or found.reference for found in result.uncovered],
        "undecided": list(result.undecided),
        "near_misses": [{"item": item, "note": note} for item, note in result.near_misses.items()],
        "elsewhere": [entry.reference for entry in result.elsewhere],
        "applied": list(report.applied),
        "not_applied": list(report.left),
        "arrived": {"items": report.arrived, "recorded": report.arrived_recorded},
    }


def _statement(statement: Statement) -> dict[str, Any]:
    coverage = statement.coverage
    return {
        "sha256": statement.sha256,
        "report": statement.layout,
        "files": list(statement.files),
        **rows_json(statement.rows, statement.used, statement.ignored, statement.assumed),
        "from": None if coverage.from_us is None else iso(coverage.from_us),
        "to": None if coverage.to_us is None else iso(coverage.to_us),
        "period": statement.period,
        "complete": coverage.complete,
        "net": {currency: format_minor(minor, currency) for currency, minor in sorted(statement.net.items())},
    }


def rows_json(rows: int, used: int, ignored: Sequence[tuple[str, str]], assumed: Sequence[str] = ()) -> dict[str, Any]:
    """What became of every row that was read: used or ignored with the reason. A row that cannot be read refuses its file."""
    return {
        "rows": rows,
        "rows_used": used,
        "rows_ignored": rows - used,
        "ignored": [{"row": row_name(name), "why": why} for name, why in ignored[:_LISTED_ROWS]],
        "assumed": list(assumed),
    }


def _balance(result: Reconciliation, currency: str) -> dict[str, str]:
    sums = result.balance[currency]
    named = {
        "ledger": sums.ledger,
        "statement": sums.statement,
        "difference": sums.difference,
        "explained": sums.explained,
        "not_covered": sums.not_covered,
    }
    return {name: amount(minor, currency) or "0" for name, minor in named.items()}


def discrepancy_json(report: Report, found: Discrepancy) -> dict[str, Any]:
    """One finding with both sides. A credit mismatch moves no money: its two credits stand beside empty amounts."""
    other = found.statement_currency or found.currency
    credit = found.kind is Kind.CREDIT_MISMATCH
    life = report.lives.get(fingerprint(found), {})
    return {
        "class": found.kind.value,
        "item": found.item,
        "reference": found.reference,
        "ledger_amount": None if credit else amount(found.ledger, found.currency),
        "statement_amount": None if credit else amount(found.statement, other),
        "currency": found.currency or None,
        "statement_currency": other or None,
        "statement_rows": [row_name(name) for name in found.rows],
        "note": found.note + (f" ({found.suggestion})" if found.suggestion else ""),
        "count": found.count,
        "target": found.target,
        "state": found.state,
        "at": None if found.at_us is None else iso(found.at_us),
        "expected": found.expected,
        "found": found.found,
        "attached": [_attached(row) for row in found.attached],
        "finding": life.get("id"),
        "finding_state": life.get("state"),
    }


def _attached(row: Attached) -> dict[str, Any]:
    return {"role": row.role, "amount": row.money.text, "currency": row.money.currency, "row": row_name(row.row)}


def proof_json(proven: Proven) -> dict[str, Any]:
    """What a statement proves about one item, with the rows that are the evidence."""
    entry = proven.entry
    return {
        "item": proven.line.item,
        "proves": proven.proof.value,
        "reference": entry.reference if entry else None,
        "amount": proven.billed.text if proven.billed else None,
        "currency": proven.billed.currency if proven.billed else None,
        "statement_rows": [row_name(name) for name in entry.rows] if entry else [],
    }


def amount(minor: int, currency: str) -> str | None:
    """Minor units in major units; None where there is no currency."""
    return format_minor(minor, currency) if currency else None


def row_name(name: str) -> int | str:
    """A row's line as a number where there is one file, ``FILE:LINE`` where there are several."""
    return int(name) if name.isdigit() else name
