"""Undoing the extras: a batch that reverses them under the same contract, or a work list where nothing can reverse them.

Writes files and sends nothing. What an earlier reversal of this ledger already has is left out, so that doing it twice
reverses once; what any batch of the ledger is committed with is never listed, since that is the one that stays; the reversal's items are named after the executions that they undo, and so are their keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from payonce.core.errors import UsageError
from payonce.core.keys import digest
from payonce.ledger.protocol import Ledger
from payonce.reconcile.report_csv import csv_text
from payonce.service.inspecting import find_batch
from payonce.service.reconciling_elsewhere import UNDOING, claimed, reversal_id
from payonce.service.reconciling_findings import findings
from payonce.service.reversing_calls import provider_text, undoing
from payonce.service.tomltext import read_toml

COLUMNS: Final = (
    "reversal",
    "reference",
    "amount",
    "currency",
    "item",
    "customer_target",
    "kept",
    "created_at",
    "reason",
)


@dataclass(frozen=True, slots=True)
class Undo:
    """One execution to undo. ``pending`` says whether it is final already; None where that is not known."""

    item: str
    reference: str
    amount: str
    currency: str
    target: str
    kept: str
    created_at: str
    pending: bool | None = None

    @property
    def id(self) -> str:
        """The reversal's item id: the same whenever and wherever the list is made."""
        return reversal_id(self.reference)


@dataclass(frozen=True, slots=True)
class Written:
    """What was written. ``items`` are all executions to undo, ``by_call`` those that the batch file undoes; the others are in
    ``list_file`` for people. ``batch_file`` is None where no call can undo any of them. ``kept`` are references that the
    ledger is committed with, and so not listed."""

    items: int
    by_call: int
    already: tuple[str, ...]
    list_file: Path | None
    batch_file: Path | None
    totals: Mapping[str, str]
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Open:
    """What is still to be undone; the references that a reversal batch has ``already``, and those that an item of the
    ledger is committed with, which are ``kept``."""

    extras: tuple[Undo, ...]
    already: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def extras_of_audit(path: Path) -> tuple[list[Undo], str, str]:
    """The extras of an audit that was kept (``payonce audit --out``), its name and operation."""
    try:
        kept = orjson.loads(path.read_bytes())
        found = [
            Undo(str(e["item"]), str(e["reference"] or ""), str(e["amount"]), str(e["currency"]), str(e.get("target") or ""),
                 str(e.get("kept") or ""), str(e.get("created_at") or ""), e.get("pending"))
            for e in kept["extras"]
        ]  # fmt: skip
        operation = str(kept.get("operation", "refund"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is no audit: {error}", code="not_an_audit", hint="payonce audit ... --out FILE.json makes one"
        ) from error
    return found, path.stem, operation


def extras_of_batch(ledger: Ledger, batch: str) -> tuple[list[Undo], str, str]:
    """The duplicates that reconciliations or look-ups of a batch found and nobody resolved. What the item is committed
    with is kept; of an item that is not committed, what a statement showed to be its own, the earliest."""
    known = find_batch(ledger, batch)
    found: list[Undo] = []
    every = findings(ledger, batch)
    shown = {str(f["item"]): str(f.get("reference") or "") for f in every if f["item"] and f["class"] != "duplicate"}
    for finding in every:
        if finding["class"] != "duplicate" or finding["state"] == "resolved" or not finding["item"]:
            continue
        item = ledger.item(batch, str(finding["item"]))
        amount = finding.get("statement_amount") or (item.billed.text if item and item.billed else "")
        currency = finding.get("currency") or (item.billed.currency if item and item.billed else "")
        found.append(
            Undo(str(finding["item"]), str(finding.get("reference") or ""), str(amount), str(currency),
                 item.target if item else "", (item and item.reference) or shown.get(str(finding["item"]), ""), "")
        )  # fmt: skip
    return found, batch, known.spec.operation


def still_open(found: Sequence[Undo], ledger: Ledger | None) -> Open:
    """What of some extras is still to be undone.

    Raises UsageError where an extra has no reference of the provider's: nothing could be told apart by it.
    """
    nameless = [undo.item for undo in found if _is_nameless(undo)]
    if nameless:
        raise UsageError(
            f"an extra of item {nameless[0]} has no reference of the provider's, so it cannot be reversed by itself",
            code="no_reference", hint="use a statement or listing that shows references",
        )  # fmt: skip
    batches = ledger.batches() if ledger is not None else ()
    if ledger is None or not batches:
        return Open(tuple(found))
    undoing = [batch.spec.id for batch in batches if batch.spec.operation in UNDOING]
    already = {undo.reference for undo in found if any(ledger.item(batch, undo.id) is not None for batch in undoing)}
    kept = claimed(ledger, batches[0].spec.id, {undo.reference for undo in found}) - already
    left = tuple(undo for undo in found if undo.reference not in already | kept)
    return Open(left, tuple(sorted(already)), tuple(sorted(kept)))


def _is_nameless(undo: Undo) -> bool:
    """Whether an extra is only known by our own id, or by nothing; a provider may also take our id for its reference."""
    return not undo.reference or (undo.reference == undo.item and undo.kept not in ("", undo.item))


@dataclass(frozen=True, slots=True)
class How:
    """How executions are undone. ``file`` is a TOML file whose [provider] says it, or, with ``collect``, how an invoice is
    made; else the ``kind`` of provider does. ``sealed`` and ``account`` are those of the batch they were made by."""

    kind: str | None = None
    file: Path | None = None
    collect: bool = False
    sealed: Mapping[str, Any] = field(default_factory=dict)
    account: str | None = None


def write(wanted: Open, out: Path, *, name: str, operation: str, how: How) -> Written:
    """Writes the list of all executions to undo (CSV) and, where a call can undo some, the batch file beside it, with a list
    of its own where it is not all of them. Raises UsageError where a file exists that says something else: a reversal may
    be under way with it.
    """
    found, already, kept = wanted.extras, wanted.already, wanted.kept
    csv_path, toml_path = out.with_suffix(".csv"), out.with_suffix(".toml")
    totals = _totals(found)
    if not found:
        return Written(0, 0, already, None, None, totals, kept)
    _put(csv_path, csv_text(COLUMNS, _rows(found)))
    call = None if how.file is not None else undoing(how.kind, operation)
    callable_ = [undo for undo in found if call is None or not call.only_pending or undo.pending is not False]
    if (call is None and how.file is None) or not callable_:
        return Written(len(found), 0, already, csv_path, None, totals, kept)
    source = csv_path
    if len(callable_) < len(found):
        source = out.with_suffix(".by-call.csv")
        _put(source, csv_text(COLUMNS, _rows(callable_)))
    provider = provider_text(call, how.sealed, account=how.account) if call is not None else _provider(how.file)
    undone = "invoice" if how.collect else "reverse"
    # The same extras give the same batch, others another one: a sealed batch is never changed.
    mark = orjson.dumps([row[0] for row in _rows(callable_)])
    text = _batch(f"{name}-{undone}-{digest(mark)[:8]}", undone, source.name, provider, collect=how.collect)
    _put(toml_path, text)
    return Written(len(found), len(callable_), already, csv_path, toml_path, totals, kept)


def _rows(found: Sequence[Undo]) -> list[tuple[str, ...]]:
    reason = "executed more than once"
    return [
        (
            undo.id,
            undo.reference,
            undo.amount,
            undo.currency,
            undo.item,
            undo.target,
            undo.kept,
            undo.created_at,
            reason,
        )
        for undo in sorted(found, key=lambda undo: (undo.target, undo.reference))
    ]


def _totals(found: Sequence[Undo]) -> dict[str, str]:
    from payonce.core.money import Money

    totals: dict[str, Money] = {}
    for undo in found:
        money = Money(undo.amount, undo.currency)
        totals[money.currency] = totals[money.currency] + money if money.currency in totals else money
    return {currency: money.text for currency, money in sorted(totals.items())}


def _put(path: Path, text: str) -> None:
    try:
        if path.exists() and path.read_text(encoding="utf-8") != text.replace("\r\n", "\n"):
            raise UsageError(
                f"{path} exists and says something else",
                code="file_exists", hint="a reversal may be under way with it; choose another name",
            )  # fmt: skip
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", code="file_unwritable", hint="choose another place"
        ) from error


def _provider(how: Path | None) -> str:
    """The [provider] tables of a file as they are written there, comments included."""
    assert how is not None, "a call is known or described"
    raw, text = read_toml(how, what="provider file")
    if not isinstance(raw.get("provider"), dict):
        raise UsageError(f"{how} has no [provider] table", code="usage", hint="write it as in a batch file")
    return "".join(_tables(text))


def _tables(text: str) -> Iterator[str]:
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            inside = line.strip().strip("[]").strip().split(".")[0] == "provider"
        if inside:
            yield line if line.endswith("\n") else line + "\n"


def _batch(batch: str, operation: str, source: str, provider: str, *, collect: bool) -> str:
    target = "customer_target" if collect else "reference"
    return (
        f'# Undoes executions that were made more than once; one of each item stays, which its row names.\n[batch]\nid = "{batch}"\n'
        f'operation = "{operation}"\ninput = "{source}"\n\n[item]\nid = "reversal"\ntarget = "{target}"\n'
        f'amount = "amount"\ncurrency = "currency"\n\n[limits]\nconcurrency = 4\n\n{provider}'
    )
