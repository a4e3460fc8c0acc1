"""The way for large statements: pairs that agree go through a database, the rest through the usual comparison.

The result is the same, whichever way is taken; a file that is unusual in any way takes the usual one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from payonce.core.model import Batch
from payonce.ledger.protocol import Ledger
from payonce.reconcile import bulk
from payonce.reconcile.bulk_sql import Unusual
from payonce.reconcile.match import with_clean
from payonce.reconcile.model import LedgerLine, Reconciliation
from payonce.reconcile.statement import Statement, Wanted, form_for, layouts_for, of_left
from payonce.reconcile.table import TEXTS
from payonce.service.reconciling_compare import compare_lines
from payonce.service.reconciling_findings import lives
from payonce.service.reconciling_ledger import lines_of, pages_of

# Asking for one item costs about as much as paging over so many.
_A_SEEK: Final = 20


def compare_large(
    ledger: Ledger, batch: Batch, files: Sequence[Path], wanted: Wanted
) -> tuple[Statement, Reconciliation] | None:
    """The statement and the comparison; None where the usual way is to be taken."""
    if len(files) != 1 or not _is_large(files[0]):
        return None
    open_findings = {
        str(f["item"]) for f in lives(ledger, batch.spec.id).values() if f["item"] and f["state"] != "resolved"
    }
    try:
        left = bulk.take_clean(
            files[0],
            layouts_for(wanted.mapping),
            wanted.operation,
            form=form_for(files[0], wanted.mapping),
            period=(wanted.from_us, wanted.to_us),
            billing=ledger.billing(batch.spec.id),
            keep=open_findings,
        )
    except Unusual:
        return None
    statement = of_left(left, wanted)
    lines = _lines(ledger, batch, left.items)
    clean = sum(number for number, _ in left.clean.values())
    return statement, with_clean(compare_lines(ledger, batch, statement, lines, clean=clean), left.clean)


def _is_large(path: Path) -> bool:
    return path.suffix.lower() in TEXTS and path.is_file() and path.stat().st_size >= bulk.LARGE


def _lines(ledger: Ledger, batch: Batch, numbers: Sequence[int]) -> list[LedgerLine]:
    if len(numbers) * _A_SEEK > batch.items:
        return [line for page in pages_of(ledger, batch, set(numbers)) for line in lines_of(ledger, batch, page)]
    found = (ledger.items(batch.spec.id, after_n=number - 1, limit=1).items for number in numbers)
    return lines_of(ledger, batch, [item for page in found for item in page])
