"""Which entries of a statement another batch of the ledger accounts for: by their reference, or by the key of its item.

Two batches may have the same item ids and targets (a monthly instalment), and their executions then carry the same own
reference. What is committed to an item of one is never a second execution of an item of the other. Reads only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from payonce.core.model import Batch
from payonce.ledger.protocol import Ledger
from payonce.reconcile.model import Entry, LedgerLine
from payonce.service.reconciling_ledger import lines_of, with_keys

UNDOING: Final = ("reverse", "invoice")
_REVERSAL: Final = "reverse-"
_REFERENCES_AT_ONCE: Final = 500


def reversal_id(reference: str) -> str:
    """The id of the item that undoes an execution: the same whenever and wherever a reversal is made."""
    return f"{_REVERSAL}{reference}"


def accounted_elsewhere(
    ledger: Ledger, batch: Batch, lines: Sequence[LedgerLine], entries: Sequence[Entry]
) -> frozenset[int]:
    """The places of entries that are another batch's: their reference is committed to one of its items, or their key is
    that of one. An entry under a reference or key of ``lines`` is this batch's."""
    own = {line.reference for line in lines}
    free = [place for place, entry in enumerate(entries) if entry.reference is None or entry.reference not in own]
    taken = claimed(ledger, batch.spec.id, {name for place in free if (name := entries[place].reference)})
    others = [other for other in ledger.batches() if other.spec.id != batch.spec.id]
    taken -= _only_undone(ledger, others, taken, [entries[place] for place in free])
    found = {place for place in free if entries[place].reference in taken}
    return frozenset(found | _by_key(ledger, others, lines, entries, [place for place in free if place not in found]))


def claimed(ledger: Ledger, batch: str, references: Iterable[str]) -> set[str]:
    """Those of some references that an item of any batch is committed with. ``batch`` is one of the ledger's."""
    asked = sorted(references)
    found: set[str] = set()
    for start in range(0, len(asked), _REFERENCES_AT_ONCE):
        found |= ledger.claimed_references(batch, asked[start : start + _REFERENCES_AT_ONCE])
    return found


def _only_undone(ledger: Ledger, others: Sequence[Batch], taken: Collection[str], entries: Iterable[Entry]) -> set[str]:
    """Claimed references that only their own undoing is committed with: some providers answer a cancellation with the id
    of what was cancelled. Such an execution is still one too many."""
    undoing = [other.spec.id for other in others if other.spec.operation in UNDOING]
    if not undoing:
        return set()
    names: dict[str, set[str]] = {}
    for entry in entries:
        if entry.reference in taken and entry.reference is not None:
            names.setdefault(entry.reference, set()).update(entry.owns)
    executing = [other.spec.id for other in others if other.spec.operation not in UNDOING]
    return {
        reference
        for reference, owns in names.items()
        if _holds(ledger, undoing, (reversal_id(reference),), reference)
        and not _holds(ledger, executing, owns, reference)
    }


def _holds(ledger: Ledger, batches: Iterable[str], items: Collection[str], reference: str) -> bool:
    found = (ledger.item(batch, item) for batch in batches for item in items)
    return any(item is not None and item.reference == reference for item in found)


def _by_key(
    ledger: Ledger, others: Sequence[Batch], lines: Sequence[LedgerLine], entries: Sequence[Entry], free: Iterable[int]
) -> set[int]:
    """Entries that name an item of this batch and carry the key of another batch's item of that name."""
    if not others:
        return set()
    items = {line.item for line in lines}
    keys = {key for line in lines for key in line.keys}
    found: set[int] = set()
    for place in free:
        entry = entries[place]
        names = {name for name in (*entry.owns, entry.reference) if name in items and name is not None}
        if names and entry.keys and keys.isdisjoint(entry.keys) and _has_key(ledger, others, names, entry.keys):
            found.add(place)
    return found


def _has_key(ledger: Ledger, others: Iterable[Batch], names: Collection[str], keys: Sequence[str]) -> bool:
    for other in others:
        known = [item for name in names if (item := ledger.item(other.spec.id, name)) is not None]
        for line in with_keys(other, lines_of(ledger, other, known), keys[0]) if known else ():
            if not set(line.keys).isdisjoint(keys):
                return True
    return False
