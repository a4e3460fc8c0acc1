"""The reconciliation that is part of a run's final report: the provider asked about what the run has executed.

Reads only, apart from its findings and its note in the trail. It never makes a run fail: where the provider cannot be
asked, the report says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from payonce.core.errors import PayonceError
from payonce.core.model import Batch, Item
from payonce.core.states import BatchState, ItemState
from payonce.core.wording import some
from payonce.ledger.actors import this_actor
from payonce.reconcile.model import Kind
from payonce.reconcile.report import Report, document
from payonce.service.inspecting import find_batch, items
from payonce.service.opening import opened
from payonce.service.reconciling import Asked
from payonce.service.reconciling_provider import asked_about, reconcile_items

# Unasked, the provider is asked about so many items, since each costs it a call, and for so long.
UNASKED_ITEMS: Final = 200
UNASKED_S: Final = 30.0
_MOST_LISTED: Final = 20
_WRONG_MONEY: Final = (Kind.AMOUNT_MISMATCH, Kind.CURRENCY_MISMATCH)


@dataclass(frozen=True, slots=True)
class Reconciled:
    """``document`` is the report's ``reconciliation``; ``exit_code`` is 0 where nothing was found, 4 where the provider
    has billed another amount or currency, else 1."""

    document: dict[str, Any]
    exit_code: int = 0


def after_run(url: str, batch_file: Path, *, batch: str, wished: bool) -> Reconciled:
    """Reconciles a batch that has ended with what its provider shows. ``wished`` says that a person asked for it: then
    however many items there are, else only where it costs little. Raises nothing that the provider or the ledger causes."""
    try:
        with opened(url) as ledger:
            known = find_batch(ledger, batch)
            if known.state not in (BatchState.FINISHED, BatchState.CANCELLED) and not wished:
                return _not("the batch has not ended")
            left = next(items(ledger, batch, states=[ItemState.PENDING], limit=1), None)
            if left is not None:
                return _not("some items are still pending; the next run decides them, and then the provider is asked")
            chosen = asked_about(items(ledger, batch))
            why = _why_not(known, chosen, wished=wished)
            if why is not None:
                return _not(why)
            within = None if wished else UNASKED_S
            report = reconcile_items(ledger, batch_file, chosen, Asked(batch), actor=this_actor(), within_s=within)
    except PayonceError as error:
        return _not(error.message, code=error.code)
    return _done(report)


def _why_not(batch: Batch, chosen: Sequence[Item], *, wished: bool) -> str | None:
    if not chosen:
        return "nothing was sent"
    if len(chosen) > UNASKED_ITEMS and not wished:
        return f"it takes {some(len(chosen), 'look-up')}; --reconcile makes them"
    return None


def _not(why: str, *, code: str | None = None) -> Reconciled:
    return Reconciled({"asked": False, "why": why, "code": code})


def _done(report: Report) -> Reconciled:
    shown = document(report)
    kinds = {found.kind for found in report.result.discrepancies}
    code = 0 if not report.found else 4 if kinds & set(_WRONG_MONEY) else 1
    return Reconciled(
        {
            "asked": True, "why": None, "code": None, "found": report.found, "classes": shown["classes"], "balance": shown["balance"],
            "discrepancies": shown["discrepancies"][:_MOST_LISTED], "undecided": shown["undecided"][:_MOST_LISTED],
            "statement": shown["statement"]["sha256"],
        },
        code,
    )  # fmt: skip
