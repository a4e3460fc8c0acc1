"""Items on their way into a ledger: as plain columns, counted and summed as they pass.

A batch of millions is sealed in one pass, so nothing here is done item by item that can be done for a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from payonce.core.errors import UsageError
from payonce.core.model import NewItem, PlainColumns, PlainItem, PlainItems
from payonce.core.money import MAX_MINOR
from payonce.core.seal import item_line
from payonce.core.states import ItemState
from payonce.ledger.rows import BatchRow, ItemRow, Tallies, dump

_AT_ONCE: Final = 5000
_A_FEW: Final = 16


class Block(NamedTuple):
    """Some new items of a batch, numbered on from ``first_n``, all planned now."""

    first_n: int
    items: PlainColumns
    now_us: int

    def rows(self) -> Iterator[ItemRow]:
        """The same as rows."""
        for n, (item, target, minor, currency, fields) in enumerate(self.items, start=self.first_n):
            yield ItemRow(n, item, target, minor, currency, fields, updated_us=self.now_us)


class Few:
    """New items on their way into a store. Of a few, ``rows`` are at hand afterwards, since more happens to them soon."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._blocks = blocks
        self.rows: list[ItemRow] = []

    def __iter__(self) -> Iterator[Block]:
        """The blocks, once."""
        for block in self._blocks:
            if len(block.items) <= _A_FEW:  # anything but the last block has thousands
                self.rows += block.rows()
            yield block


def counted(items: Iterable[NewItem] | PlainItems, *, row: BatchRow, totals: Tallies, now_us: int) -> Iterator[Block]:
    """The new items of a batch in blocks, numbered behind those it has; ``row`` and ``totals`` are kept up with them.

    Raises UsageError where an item has a target of its own in a batch without targets, or a total is too large.
    """
    blocks = items.blocks if isinstance(items, PlainItems) else _plain_blocks(items)
    for block in blocks:
        if not row.targets:
            _refuse_targets(block)
        _add_up(block, totals)
        first_n = row.items + 1
        row.items += len(block)
        yield Block(first_n, block, now_us)


def _plain_blocks(items: Iterable[NewItem]) -> Iterator[PlainColumns]:
    rest = iter(items)
    while block := [_plain(item) for item in islice(rest, _AT_ONCE)]:
        yield PlainColumns.of(block)


def _plain(item: NewItem) -> PlainItem:
    target = item.id if item.target is None else item.target
    money = item.money
    if money is None:
        return item.id, target, None, None, dump(item.fields)
    return item.id, target, money.minor, money.currency, dump(item.fields)


def _refuse_targets(block: PlainColumns) -> None:
    if block.targets is block.ids:
        return
    for item, target, *_ in block:
        if item != target:
            raise UsageError(
                f"item {item!r} has a target of its own, but the batch is sealed without targets",
                code="unexpected_target",
                hint="seal it with targets",
            )


def _add_up(block: PlainColumns, totals: Tallies) -> None:
    currencies = block.currencies
    for currency in set(currencies):
        count = currencies.count(currency)
        tally = totals.setdefault((ItemState.PLANNED, currency or ""), [0, 0])
        tally[0] += count
        if count == len(block):
            tally[1] += sum(filter(None, block.minors))
        else:
            tally[1] += sum(
                [minor or 0 for minor, code in zip(block.minors, currencies, strict=True) if code == currency]
            )
        if tally[1] > MAX_MINOR:
            raise UsageError(
                f"the batch's {currency} total is too large", code="total_too_large", hint="split the batch"
            )


class Chain:
    """The digest over the lines of what is added to a batch, after its old seal where that gives the new one: either can
    be computed again from the stored items."""

    def __init__(self, seal: str) -> None:
        self._sha256 = hashlib.sha256(seal.encode())

    def pass_on(self, items: Iterable[NewItem]) -> Iterator[NewItem]:
        """The items, digested on their way through."""
        for item in items:
            self._sha256.update(item_line(item))
            yield item

    def hexdigest(self) -> str:
        """The digest so far."""
        return self._sha256.hexdigest()
