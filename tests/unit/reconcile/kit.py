"""What tests of statements share: reading a case file, writing one, and a ledger's side from a file of operations."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from payonce.core.money import Money
from payonce.core.states import ItemState
from payonce.reconcile.mapping import read_mapping
from payonce.reconcile.model import LedgerLine
from payonce.reconcile.statement import Statement, Wanted, read_statement

CASES = Path(__file__).parents[2] / "data" / "cases"
STATES = {"succeeded": ItemState.COMMITTED, "unknown": ItemState.UNKNOWN}


def read(*paths: Path, operation: str = "refund", **mapping: Any) -> Statement:
    """A statement, with a mapping if there is one."""
    return read_statement(paths, Wanted(operation, read_mapping(mapping) if mapping else None))


def case(name: str, *, operation: str = "refund", **mapping: Any) -> Statement:
    """A case file as a statement."""
    return read(CASES / name, operation=operation, **mapping)


def written(folder: Path, text: str, name: str = "statement.csv", encoding: str = "utf-8") -> Path:
    """A statement file with this text."""
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def ledger_of(name: str, *, at_us: int) -> list[LedgerLine]:
    """The ledger's side of a case: executed or started at one time."""
    lines = []
    with (CASES / name).open(newline="") as file:
        for n, row in enumerate(csv.DictReader(file), 1):
            money = Money(row["amount"], row["currency"])
            state = STATES[row["ledger_state"]]
            lines.append(
                LedgerLine(n, row["op_key"], row["charge_id"], state, reference=row["provider_id"] or None, asked=money,
                           billed=money if state is ItemState.COMMITTED else None, earliest_us=at_us, latest_us=at_us)
            )  # fmt: skip
    return lines
