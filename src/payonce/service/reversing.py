"""Undoing the extras: a batch that reverses them under the same contract, or a work list where nothing can reverse them.

Writes files and sends nothing. What an earlier reversal of this ledger already has is left out, so that doing it twice
reverses once; the reversal's items are named after the executions that they undo, and so are their keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from payonce.core.errors import UsageError
from payonce.ledger.protocol import Ledger
from payonce.reconcile.report_csv import csv_text
from payonce.service.inspecting import find_batch
from payonce.service.reconciling_findings import findings
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
_PREFIX: Final = "reverse-"
# Where the provider can undo an execution by a call of its own: path, and body, by kind and operation.
_STRIPE_HEADERS: Final = 'headers = {Authorization = "Bearer ${STRIPE_API_KEY}"}'
_CALLS: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("stripe", "payout"): ("/v1/payouts/{target}/cancel", ""),
    ("stripe", "refund"): ("/v1/refunds/{target}/cancel", ""),
    ("stripe", "transfer"): ("/v1/transfers/{target}/reversals", 'form = {amount = "{amount_minor}"}\n'),
}


@dataclass(frozen=True, slots=True)
class Undo:
    """One execution to undo."""

    item: str
    reference: str
    amount: str
    currency: str
    target: str
    kept: str
    created_at: str

    @property
    def id(self) -> str:
        """The reversal's item id: the same whenever and wherever the list is made."""
        return f"{_PREFIX}{self.reference}"


@dataclass(frozen=True, slots=True)
class Written:
    """What was written: ``batch`` is None where the provider cannot reverse and nobody said how to collect."""

    items: int
    already: tuple[str, ...]
    list_file: Path | None
    batch_file: Path | None
    totals: Mapping[str, str]


def extras_of_audit(path: Path) -> tuple[list[Undo], str, str]:
    """The extras of an audit that was kept (``payonce audit --out``), its name and operation."""
    try:
        kept = orjson.loads(path.read_bytes())
        found = [
            Undo(str(e["item"]), str(e["reference"] or ""), str(e["amount"]), str(e["currency"]), str(e.get("target") or ""),
                 str(e.get("kept") or ""), str(e.get("created_at") or ""))
            for e in kept["extras"]
        ]  # fmt: skip
        operation = str(kept.get("operation", "refund"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is no audit: {error}", code="not_an_audit", hint="payonce audit ... --out FILE.json makes one"
        ) from error
    return found, path.stem, operation


def extras_of_batch(ledger: Ledger, batch: str) -> tuple[list[Undo], str, str]:
    """The duplicates that reconciliations or look-ups of a batch found and nobody resolved."""
    known = find_batch(ledger, batch)
    found: list[Undo] = []
    for finding in findings(ledger, batch):
        if finding["class"] != "duplicate" or finding["state"] == "resolved" or not finding["item"]:
            continue
        item = ledger.item(batch, str(finding["item"]))
        amount = finding.get("statement_amount") or (item.billed.text if item and item.billed else "")
        currency = finding.get("currency") or (item.billed.currency if item and item.billed else "")
        found.append(
            Undo(str(finding["item"]), str(finding.get("reference") or ""), str(amount), str(currency),
                 item.target if item else "", (item.reference or "") if item else "", "")
        )  # fmt: skip
    return found, batch, known.spec.operation


def without_done(found: Sequence[Undo], ledger: Ledger | None) -> tuple[list[Undo], tuple[str, ...]]:
    """What is still to be undone, and the references that a reversal batch of the ledger has already.

    Raises UsageError where an extra has no reference: nothing could be told apart by it.
    """
    nameless = [undo.item for undo in found if not undo.reference]
    if nameless:
        raise UsageError(
            f"an extra of item {nameless[0]} has no reference of the provider's, so it cannot be reversed by itself",
            code="no_reference", hint="use a statement or listing that shows references",
        )  # fmt: skip
    batches = [b.spec.id for b in ledger.batches() if b.spec.operation in ("reverse", "invoice")] if ledger else []
    left: list[Undo] = []
    done: list[str] = []
    for undo in found:
        if ledger is not None and any(ledger.item(batch, undo.id) is not None for batch in batches):
            done.append(undo.reference)
        else:
            left.append(undo)
    return left, tuple(done)


def write(
    found: Sequence[Undo], out: Path, *, name: str, operation: str, kind: str | None, how: Path | None, collect: bool,
    already: tuple[str, ...] = (),
) -> Written:  # fmt: skip
    """Writes the list (CSV) and, where something can carry it out, the batch file beside it.

    ``how`` is a TOML file whose [provider] says how one execution is undone, or, with ``collect``, how an invoice is
    made. Raises UsageError where a file exists that says something else: a reversal may be under way with it.
    """
    csv_path, toml_path = out.with_suffix(".csv"), out.with_suffix(".toml")
    totals = _totals(found)
    if not found:
        return Written(0, already, None, None, totals)
    reason = "executed more than once"
    rows = [
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
    _put(csv_path, csv_text(COLUMNS, rows))
    provider = _provider(how) if how is not None else _known(kind, operation)
    if provider is None:
        return Written(len(found), already, csv_path, None, totals)
    undone = "invoice" if collect else "reverse"
    # The same extras give the same batch, others another one: a sealed batch is never changed.
    mark = orjson.dumps([row[0] for row in rows])
    from payonce.core.keys import digest

    text = _batch(f"{name}-{undone}-{digest(mark)[:8]}", undone, csv_path.name, provider, collect=collect)
    _put(toml_path, text)
    return Written(len(found), already, csv_path, toml_path, totals)


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


def _known(kind: str | None, operation: str) -> str | None:
    call = _CALLS.get((kind or "", operation))
    if call is None:
        return None
    path, form = call
    return (
        '[provider]\nkind = "http"\nbase_url = "https://api.stripe.com"\naccount = "${STRIPE_ACCOUNT}"\n'
        f'{_STRIPE_HEADERS}\n\n[provider.call]\nmethod = "POST"\npath = "{path}"\n{form}reference = "id"\n\n'
        '[provider.key]\nheader = "Idempotency-Key"\nformat = "hex"\nretention = "24h"\nstores_errors = true\n'
        'replay_header = "Idempotent-Replayed"\n'
    )


def _provider(how: Path) -> str:
    """The [provider] tables of a file as they are written there, comments included."""
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
        f'# Undoes executions that were made more than once; the earliest of each item stays.\n[batch]\nid = "{batch}"\n'
        f'operation = "{operation}"\ninput = "{source}"\n\n[item]\nid = "reversal"\ntarget = "{target}"\n'
        f'amount = "amount"\ncurrency = "currency"\n\n[limits]\nconcurrency = 4\n\n{provider}'
    )
