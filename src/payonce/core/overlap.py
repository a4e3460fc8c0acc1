"""Targets that two batches act on (SPEC invariant 11): what is known of them before a batch is sealed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from payonce.core.model import BatchSpec
from payonce.core.money import Money
from payonce.core.states import ItemState

# An item in one of these states has acted on its target, or will.
ACTING: Final = (ItemState.PLANNED, ItemState.PENDING, ItemState.COMMITTED, ItemState.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Acting:
    """An item of a sealed batch that acts on a target: it is planned, pending, committed or unknown."""

    batch: str
    item: str
    target: str
    state: ItemState
    money: Money | None


@dataclass(frozen=True, slots=True)
class Clearance:
    """That new items were compared with the other batches of a ledger, and what of it a person allowed.

    ``seen`` are all batches that there were, by number, with their numbers of items; None where they do not matter
    (another provider, another account). ``items`` of the new ones overlap with ``batches``, allowed for ``reason``.
    """

    seen: Mapping[int, int | None] = field(default_factory=dict)
    items: int = 0
    batches: tuple[str, ...] = ()
    reason: str | None = None

    def still_holds(self, extents: Mapping[int, int]) -> bool:
        """Whether nothing was sealed or added since that could matter; ``extents`` are the batches as they are now."""
        return extents.keys() == self.seen.keys() and all(
            items is None or items == extents[number] for number, items in self.seen.items()
        )


def same_account(one: BatchSpec, other: BatchSpec) -> bool:
    """Whether two batches may act on the same targets: one provider kind, and neither account nor mode known to differ.

    An account that an adapter cannot tell may be any, so it is taken for the same.
    """
    pairs = ((one.account, other.account), (one.mode, other.mode))
    return one.provider == other.provider and all(a is None or b is None or a == b for a, b in pairs)
