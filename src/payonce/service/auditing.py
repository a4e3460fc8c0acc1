"""Auditing a run that had no ledger: its items against the provider's listing or statement.

Reads only. Wires the readers of statements and look-ups to ``audit.sort``, which is pure and decides.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from payonce.audit.model import Found, Seen, Sorted, Wish
from payonce.audit.sort import sort
from payonce.core.errors import UsageError
from payonce.core.events import iso
from payonce.core.model import Item, NewItem
from payonce.core.money import Money, format_minor
from payonce.intake import FileFormat, InputSettings, ItemColumns, SettingFault, read, read_item
from payonce.providers.protocol import Identity, Provider
from payonce.reconcile.mapping import read_mapping
from payonce.reconcile.model import Entry
from payonce.reconcile.report import rows_json
from payonce.reconcile.statement import Statement, Wanted, read_statement
from payonce.reconcile.table import read_table
from payonce.service import batchfile, planning
from payonce.service.planning_input import input_settings

# Names that item files commonly use, where nobody says which column is which.
_IDS: Final = ("id", "item", "item_id", "op_key", "request", "request_id", "refund_request", "charge_id", "charge", "invoice_id", "invoice")  # fmt: skip
_TARGETS: Final = ("target", "charge_id", "charge", "payment_intent", "payment", "destination", "customer")
_AMOUNTS: Final = ("amount", "amount_minor", "amount_cents")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be audited. ``items`` is a batch file or an item file; ``mapping`` holds [item] and [statement] tables.
    ``since_us`` and ``until_us`` bound the run: executions outside are earlier or later business, not extras."""

    items: Path
    statements: tuple[Path, ...] = ()
    provider: Path | None = None
    mapping: Mapping[str, Any] | None = None
    operation: str = "refund"
    since_us: int | None = None
    until_us: int | None = None


@dataclass(frozen=True, slots=True)
class Audited:
    """An audit with what it was made from."""

    found: Sorted
    wishes: tuple[Wish, ...]
    source: str
    outside: int
    operation: str
    digest: str
    rows: Mapping[str, Any]


def audit(asked: Asked) -> Audited:
    """Sorts every item. Raises UsageError, InputError for items that cannot be read, StatementError for a statement."""
    wishes, operation, new = wanted_items(asked)
    if asked.provider is not None:
        statement = _listed(asked.provider, new)
        source = str(asked.provider)
    else:
        statement = _stated(asked, operation)
        source = ", ".join(path.name for path in asked.statements)
    executions = [seen for entry in statement.entries for seen in executions_of(entry)]
    inside = [seen for seen in executions if _inside(seen, asked)]
    found = sort(wishes, inside)
    return Audited(
        found, tuple(wishes), source, len(executions) - len(inside), operation, statement.sha256, rows_of(statement)
    )


def _inside(seen: Seen, asked: Asked) -> bool:
    if seen.at_us is None:
        return True
    early = asked.since_us is not None and seen.at_us < asked.since_us
    return not early and not (asked.until_us is not None and seen.at_us >= asked.until_us)


def wanted_items(asked: Asked) -> tuple[list[Wish], str, list[NewItem]]:
    """The items of a batch file, or of an item file with an [item] table or common column names."""
    if asked.items.suffix == ".toml":
        file = batchfile.load(asked.items)
        settings, base, operation = input_settings(file, skip_bad_rows=False), file.base, file.operation
    else:
        given = (asked.mapping or {}).get("item")
        columns = _mapped(given) if given else _columns(asked.items)
        settings, base = InputSettings(asked.items.name, columns), asked.items.resolve().parent
        operation = asked.operation
    with read(settings, base_dir=base, operation=operation) as intake:
        intake.raise_if_bad()
        new = list(intake.items())
    return [Wish(item.id, item.target or item.id, item.money) for item in new], operation, new


def _mapped(table: Mapping[str, Any]) -> ItemColumns:
    faults: list[SettingFault] = []
    columns = read_item(table, faults)
    if faults:
        first = faults[0]
        raise UsageError(
            f"[{first.table}] {first.key}: {first.message}",
            code="bad_item_mapping",
            hint="docs/reference/batch-file.md",
        )
    return columns


def _columns(path: Path) -> ItemColumns:
    table = read_table(path, [(amount, "currency") for amount in _AMOUNTS], FileFormat(), option="--items")
    there = table.columns
    id_column = next((name for name in _IDS if name in there), None)
    if id_column is None:
        raise UsageError(
            f"{path.name} has no column that is known to hold ids",
            code="no_id_column",
            hint="say which: --map FILE.toml with an [item] table, or --items BATCH.toml",
        )
    amount = next(name for name in _AMOUNTS if name in there)
    return ItemColumns(
        id=id_column,
        target=next((name for name in _TARGETS if name in there), None),
        amount=amount if amount == "amount" else None,
        amount_minor=None if amount == "amount" else amount,
        currency="currency",
    )


def rows_of(statement: Statement) -> dict[str, Any]:
    """What became of a statement's rows, for a document."""
    return rows_json(statement.rows, statement.used, statement.ignored, statement.assumed)


def _stated(asked: Asked, operation: str) -> Statement:
    table = (asked.mapping or {}).get("statement")
    if table is None and asked.items.suffix == ".toml":
        table = batchfile.load(asked.items).statement or None
    return read_statement(asked.statements, Wanted(operation, read_mapping(table) if table else None))


def executions_of(entry: Entry) -> list[Seen]:
    """The single executions of an entry; what came back undoes the latest ones first, so that the earliest stays. What was
    accepted and is not final is an execution too: it will be billed unless somebody cancels it."""
    undone = 0
    left = entry.returned
    for minor in reversed(entry.legs):
        if left < minor or minor == 0:
            break
        left -= minor
        undone += 1
    stands = len(entry.legs) - undone
    minors = [(minor, entry.pending, number >= stands) for number, minor in enumerate(entry.legs)]
    # One reference is pending in one row only, however often a report shows it.
    minors += [(minor, True, False) for minor in entry.waiting[:1]]
    return [
        Seen(
            place=entry.place, reference=entry.reference or "", money=Money.of_minor(minor, entry.currency), owns=(*entry.owns, *entry.keys),
            target=entry.target, at_us=entry.at_us, undone=is_undone, pending=pending, rows=entry.rows,
        )
        for minor, pending, is_undone in minors
    ]  # fmt: skip


def _listed(path: Path, new: Sequence[NewItem]) -> Statement:
    chosen = [Item(n, item.id, item.target or item.id, item.money, item.fields) for n, item in enumerate(new, 1)]
    return ask(path, chosen).statement


@dataclass(frozen=True, slots=True)
class Listed:
    """A provider's own listing as a statement, and whose account it is."""

    statement: Statement
    identity: Identity


def ask(path: Path, chosen: Sequence[Item]) -> Listed:
    """What the provider of a batch file shows of each item, by its look-up. Raises UsageError where it cannot be asked."""
    from payonce.service.reconciling_provider import as_statement, listing

    file = batchfile.load(path)
    columns = tuple(dict.fromkeys(name for item in chosen for name in item.fields))

    def make() -> Provider:
        return planning.provider_of(file, environ=os.environ, columns=columns or None)

    limits = file.limits
    shown, (_, identity, _), _ = asyncio.run(
        listing(make, chosen, concurrency=limits.concurrency, rate_per_ks=limits.rate_per_ks)
    )
    return Listed(as_statement(shown, name=f"{file.provider['kind']} look-up", until_us=0, lag_us=0), identity)


def document(audited: Audited) -> dict[str, Any]:
    """The JSON contract of ``payonce audit --json``."""
    found = audited.found
    targets = {wish.item: wish.target for wish in audited.wishes}
    asked = {wish.item: wish.money for wish in audited.wishes}
    return {
        "items": {kind.value: found.count(kind) for kind in Found},
        "extras": [
            {"item": extra.item, "kept": extra.kept, "target": targets[extra.item], **_seen(extra.seen)} for extra in found.extras
        ],
        "none": [item for item, kind in found.classes.items() if kind is Found.NONE],
        "wrong_amount": [
            {"item": item, "asked": money.text if (money := asked[item]) else None, **_seen(found.kept[item])}
            for item, kind in found.classes.items()
            if kind is Found.WRONG_AMOUNT
        ],
        "unexplained": [
            {"name": s.name, "target": s.target, "count": s.count, "amount": format_minor(s.minor, s.currency),
             "currency": s.currency, "references": list(s.references)}
            for s in found.strangers
        ],
        "undone": found.undone,
        "outside_the_window": audited.outside,
        "operation": audited.operation,
        "source": audited.source,
        "sha256": audited.digest,
        **audited.rows,
    }  # fmt: skip


def _seen(seen: Seen) -> dict[str, Any]:
    return {
        "reference": seen.reference or None,
        "amount": seen.money.text,
        "currency": seen.money.currency,
        "created_at": None if seen.at_us is None else iso(seen.at_us),
        "pending": seen.pending,
        "rows": [int(row) if row.isdigit() else row for row in seen.rows],
    }
