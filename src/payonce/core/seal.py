"""The seal: one digest over a batch's normalised items, in order (SPEC section 8).

The same items give the same seal whatever file, format or column order they came from; one changed id, target, amount,
currency or field gives another.
"""

from __future__ import annotations

import hashlib

import orjson

from payonce.core.model import NewItem


def item_line(item: NewItem) -> bytes:
    """The canonical line of one item: what is compared to find out whether an item has changed."""
    body = {
        "id": item.id,
        "target": item.target if item.target is not None else item.id,
        "amount_minor": None if item.money is None else str(item.money.minor),
        "currency": None if item.money is None else item.money.currency,
        "fields": dict(item.fields),
    }
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS) + b"\n"


class Seal:
    """The digest of a stream of items; feed them in order, then read ``hexdigest``."""

    __slots__ = ("_sha256", "items")

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self.items = 0

    def add(self, item: NewItem) -> None:
        """The next item."""
        self._sha256.update(item_line(item))
        self.items += 1

    def hexdigest(self) -> str:
        """The seal so far."""
        return self._sha256.hexdigest()
