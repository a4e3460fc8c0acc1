"""Amendments: an input that has more items than its sealed batch, and nothing else that differs.

What was sealed is never changed or removed; the ledger adds the new items at the end, in the order of the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from payonce.core.model import Batch, NewItem
from payonce.intake import Intake
from payonce.ledger.protocol import Ledger
from payonce.service.batchfile import BatchFile
from payonce.service.overlaps import Newcomers, of_items
from payonce.service.planning_input import changed, difference_of


@dataclass(frozen=True, slots=True)
class Addition:
    """The items of an input that were not sealed: their ids are held in memory, they themselves stay in its file."""

    intake: Intake
    ids: frozenset[str]
    totals: Mapping[str, int]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.ids)

    @property
    def newcomers(self) -> Newcomers:
        """The same, as they are compared with other batches."""
        return of_items(self.items)

    def items(self) -> Iterator[NewItem]:
        """The items in the order of the input."""
        return (item for item in self.intake.items() if item.id in self.ids)


def addition(
    intake: Intake, file: BatchFile, batch: Batch, ledger: Ledger, *, problems: Path | None = None
) -> Addition | None:
    """The items that the input has beyond what was sealed, None where there are none.

    Raises InputError where the input has problems, ChangedError where an item was changed or removed: that is never
    sealed, and then nothing else of the input is either.
    """
    difference = difference_of(intake, file, batch, ledger)
    if difference is None:
        return None
    try:
        if difference.changed_items or len(difference.removed):
            raise changed(intake.file, file, difference, problems=problems)
        ids = frozenset(added.id for added in difference.added)
    finally:
        difference.close()
    made = Addition(intake, ids, {})
    totals: dict[str, int] = {}
    for item in made.items():
        if item.money is not None:
            totals[item.money.currency] = totals.get(item.money.currency, 0) + item.money.minor
    return Addition(intake, ids, totals)
