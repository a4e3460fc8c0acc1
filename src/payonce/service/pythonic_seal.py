"""Sealing a batch that comes from Python, beside whatever else is in its ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from payonce.core.errors import SealedError, UsageError
from payonce.core.model import BatchSpec, NewItem
from payonce.ledger.actors import this_actor
from payonce.ledger.protocol import Ledger
from payonce.service import overlaps

# So often a seal is tried while other batches are sealed in between; each try compares with the new ones.
_TRIES: Final = 5


def seal_beside_others(
    ledger: Ledger, spec: BatchSpec, items: Sequence[NewItem], *, seal: str, allow_overlap: str | None
) -> None:
    """Seals a new batch; where another process has sealed it just now, that one stands and is to be compared.

    Raises OverlapError where the items act on targets of other batches and no reason is given why they may.
    """
    if allow_overlap is not None and not allow_overlap.strip():
        raise UsageError(
            "allow_overlap is the reason, as text", code="no_reason", hint='allow_overlap="agreed with ..."'
        )
    new = overlaps.of_items(lambda: iter(items))
    for _ in range(_TRIES):
        found = overlaps.find(ledger, spec, new, allowed=allow_overlap)
        if found.held:
            raise overlaps.OverlapError(
                spec.id,
                found,
                file="items",
                hint='look into them; allow_overlap="REASON" runs them all the same; nothing was sent',
            )
        try:
            ledger.seal(spec, items, seal=seal, actor=this_actor(), clearance=found.clearance)
        except SealedError as raced:
            if raced.code == "already_sealed":
                return
            if raced.code != "batches_changed":
                raise
        else:
            return
    raise SealedError(
        f"batch {spec.id!r} could not be sealed: other batches are sealed all the time",
        code="batches_changed",
        hint="call it again",
    )


def same_items(sealed_seal: str, new_seal: str, *, batch: str) -> None:
    """Refuses items that differ from what was sealed under the same batch id."""
    if sealed_seal != new_seal:
        raise SealedError(
            f"the items differ from those batch {batch!r} was sealed with",
            code="batch_changed",
            hint="pass the same items to go on, or use a new batch id for new ones",
        )
