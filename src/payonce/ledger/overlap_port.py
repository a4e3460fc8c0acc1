"""What finding overlaps between batches reads of a ledger: a narrow port beside the verbs.

Targets are streamed by the thousand and nothing is looked up one by one, so that millions of items can be compared with
millions of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from payonce.core.overlap import Acting


class OverlapReads(Protocol):
    """A ledger's batches as far as other batches have to know them."""

    def extents(self) -> dict[int, int]:
        """How many items each batch has, by its number."""
        ...

    def acted_targets(self, number: int) -> Iterator[list[str]]:
        """The targets of a batch's items that are planned, pending, committed or unknown, some thousand at a time."""
        ...

    def acting_on(self, number: int, targets: Sequence[str]) -> list[Acting]:
        """The items of a batch that act on some targets, compared exactly, in input order."""
        ...
