"""Reconciling a batch of calls with totals a day and model, where its provider gives nothing finer.

Writes one note with the report's digest and what came of it; opens no findings, since no item can be named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import ConfigError
from payonce.core.events import iso
from payonce.core.model import Actor, Batch
from payonce.core.money import exponent
from payonce.core.states import ItemState
from payonce.ledger.protocol import Ledger
from payonce.reconcile.coarse import Coarse, Key, Line, Sum, compare
from payonce.reconcile.coarse_read import Totals, read_coarse, read_totals, tolerance_of
from payonce.reconcile.mapping import form_of, read_mapping
from payonce.service.costs import outputs, value_of
from payonce.service.inspecting import find_batch

_WIDE: Final = Context(prec=60)


@dataclass(frozen=True, slots=True)
class CoarseReport:
    """One coarse comparison. ``unknown`` is how many items may have been executed and are in neither total for certain."""

    batch: str
    by: str
    totals: Totals
    result: Coarse
    unknown: int

    @property
    def found(self) -> bool:
        """Whether a total differs."""
        return self.result.found

    def as_json(self) -> dict[str, Any]:
        """The JSON contract of ``payonce reconcile --coarse --json``."""
        return {
            "batch": self.batch,
            "coarse": True,
            "by": self.by,
            "statement": {
                "sha256": self.totals.sha256,
                "files": list(self.totals.files),
                "rows": self.totals.rows,
            },
            "days": [_line(line) for line in self.result.days],
            "totals": [_line(line) for line in self.result.totals],
            "unknown": self.unknown,
            "found": self.found,
        }


def reconcile_coarse(
    ledger: Ledger, batch: str, files: tuple[Path, ...], mapping: Mapping[str, Any] | None, *, actor: Actor
) -> CoarseReport:
    """Compares a batch's totals with a report's. ``mapping`` is a [statement] table, None for the one sealed.

    Raises ConfigError where it has no ``coarse`` table, StatementError where the report cannot be used.
    """
    found = find_batch(ledger, batch)
    given = mapping if mapping is not None else found.spec.config.get("statement")
    stated = dict(given or {}).get("coarse")
    if not isinstance(stated, Mapping):
        raise ConfigError(
            "there is no [statement.coarse] table that says which column is which",
            code="bad_statement_mapping",
            hint="--map FILE.toml with [statement.coarse]; docs/reference/statements.md describes it",
        )
    table = read_coarse(stated)
    totals = read_totals(files, table, form_of(read_mapping(dict(given or {}))))
    result = compare(
        _sums(ledger, found, table.by, valued=table.value is not None), totals.sums, tolerance=tolerance_of(table)
    )
    unknown = ledger.status(batch).count(ItemState.UNKNOWN)
    report = CoarseReport(batch, table.by, totals, result, unknown)
    data = {
        "statement": totals.sha256,
        "files": list(totals.files),
        "rows": totals.rows,
        "coarse": True,
        "totals": [_line(line) for line in result.totals],
        "found": report.found,
    }
    ledger.control(batch, Control(BatchCommand.NOTE, code="reconciled_coarse", data=data), actor=actor)
    return report


def _sums(ledger: Ledger, batch: Batch, by: str, *, valued: bool) -> dict[Key, Sum]:
    """The ledger's side: committed items by the UTC day of their commit, at what they cost exactly."""
    sums: dict[Key, Sum] = {}
    for entry in outputs(ledger, batch.spec.id):
        item = entry.item
        if item.state is not ItemState.COMMITTED or item.billed is None:
            continue
        key = Key(iso(item.updated_us)[:10], value_of(entry, by) if valued else "", item.billed.currency)
        there = sums.get(key, Sum(0, Decimal(0)))
        exact = Decimal(str(entry.kept.get("$cost") or item.billed.text))
        sums[key] = Sum((there.calls or 0) + 1, _WIDE.add(there.amount, exact))
    return sums


def _line(line: Line) -> dict[str, Any]:
    return {
        "day": line.key.day or None,
        "value": line.key.value,
        "currency": line.key.currency,
        "ledger_calls": line.ledger.calls,
        "statement_calls": line.statement.calls,
        "ledger_amount": _text(line.ledger.amount, line.key.currency),
        "statement_amount": _text(line.statement.amount, line.key.currency),
        "difference": _text(line.difference, line.key.currency),
        "result": line.result.value,
    }


def _text(amount: Decimal, currency: str) -> str:
    """An exact amount with at least its currency's decimals."""
    places = exponent(currency)
    digits = -int(amount.as_tuple().exponent) if isinstance(amount.as_tuple().exponent, int) else 0
    return f"{amount:.{max(places, digits)}f}"
