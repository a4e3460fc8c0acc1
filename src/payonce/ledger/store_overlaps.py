"""Whether a batch may be sealed beside the others of its ledger: reading what they act on, and holding to what was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from payonce.core.errors import SealedError
from payonce.core.model import Actor
from payonce.core.overlap import Acting, Clearance
from payonce.ledger.log import Log
from payonce.ledger.rows import BatchRow, signature
from payonce.ledger.store import StoreBase


class OverlapVerbs(StoreBase):
    """See ledger.overlap_port for the readings."""

    def extents(self) -> dict[int, int]:
        """See ledger.overlap_port."""
        return self._reads.extents()

    def acted_targets(self, number: int) -> Iterator[list[str]]:
        """See ledger.overlap_port."""
        return self._reads.acted_targets(number)

    def acting_on(self, number: int, targets: Sequence[str]) -> list[Acting]:
        """See ledger.overlap_port."""
        return self._reads.acting_on(number, targets)

    def _hold_to(self, clearance: Clearance | None) -> None:
        """Raises SealedError where batches or items came to the ledger since it was read: they were not compared.

        Asked inside the sealing transaction, before it writes, so that of two overlapping batches that are planned at
        the same time only one is sealed.
        """
        if clearance is not None and not clearance.still_holds(self._tables.extents()):
            raise SealedError(
                "another batch was sealed or added to while this one was planned",
                code="batches_changed",
                hint="run the same command again: it compares the new items too",
            )

    def _note_allowed(self, log: Log, batch: BatchRow, clearance: Clearance | None, actor: Actor) -> None:
        """The event of a person's permission to act on targets that others act on, in the sealing transaction."""
        if clearance is None or not clearance.items:
            return
        body = {
            "type": "overlap_allowed",
            "batch": batch.id,
            "actor": signature(actor),
            "items": clearance.items,
            "batches": list(clearance.batches),
            "reason": clearance.reason,
        }
        log.emit(body, batch=batch.number)
