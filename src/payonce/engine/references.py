"""Two items under one reference of the provider: seen at once, as far as this process remembers.

An answer that names an execution which another item was committed with is still committed, since the provider says so,
but a finding says that one of the two was perhaps never executed. Bounded: the last references are remembered, and a
run opens a bounded number of such findings (a far side without references of its own may answer the same each time).
The statement's reconciliation is what finds every one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from payonce.core.commands import Change
from payonce.core.model import Finding, Item
from payonce.core.states import ItemEvent

_REMEMBERED: Final = 65_536
_MOST_FINDINGS: Final = 20


@dataclass(slots=True)
class References:
    """The references this process has committed, newest last."""

    _items: dict[str, str] = field(default_factory=dict)
    _opened: int = 0

    def shared(self, item: Item, change: Change) -> tuple[Finding, ...]:
        """The finding for a commit under a reference that another item has; remembers the reference."""
        if change.event is not ItemEvent.COMMIT or change.reference is None:
            return ()
        other = self._items.setdefault(change.reference, item.id)
        if len(self._items) > _REMEMBERED:
            del self._items[next(iter(self._items))]
        if other == item.id or self._opened >= _MOST_FINDINGS:
            return ()
        self._opened += 1
        return (Finding("duplicate", item.id, {"reference": change.reference, "also": other}),)
