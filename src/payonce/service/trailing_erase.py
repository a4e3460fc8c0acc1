"""Erasing what was read of a person from a ledger, on somebody's word, which goes into the trail."""

from __future__ import annotations

from collections.abc import Sequence

from payonce.core.model import Actor
from payonce.service import large_outputs
from payonce.service.inspecting import items as all_items
from payonce.service.trailing import writable


def erase(
    url: str, *, batch: str, items: Sequence[str], fields: Sequence[str], actor: Actor, reason: str
) -> dict[str, object]:
    """Erases fields (all, or those named), kept payloads and outputs of some items, or of the whole batch.

    Ids, amounts, references, codes and all digests stay: they are the proof that the money moved once. Raises UsageError
    where an item is unknown or may still be sent; then nothing is erased.
    """
    with writable(url) as ledger:
        chosen = list(items) or [item.id for item in all_items(ledger, batch)]
        large = large_outputs.digests(ledger, batch, chosen)
        count = ledger.erase(batch, chosen, fields=fields or None, actor=actor, reason=reason)
        large_outputs.remove(ledger, url, large)
        return {"batch": batch, "items": count, "fields": sorted(fields) or "all", "events": ledger.info().events}
