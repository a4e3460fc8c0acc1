"""Items of a SQLite ledger by columns: SQLite turns them, and a column comes as one JSON array instead of cell by cell.

Fetching two thousand rows of sixteen cells costs three times as much as these arrays, most of it for cells that are the same
from item to item. Those are only counted: where all items of a part are as its first one is, the first one says it all.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from payonce.ledger.trail_port import COLUMN_LENGTH, Columns

_INTS: Final = msgspec.json.Decoder(list[int])
_TEXTS: Final = msgspec.json.Decoder(list[str])
_MAYBE_INTS: Final = msgspec.json.Decoder(list[int | None])
_MAYBE_TEXTS: Final = msgspec.json.Decoder(list[str | None])
# State, settlement, generation, step, attempts, spent, two times, then currencies, code, message and carry.
_OTHERS: Final[tuple[msgspec.json.Decoder[Any], ...]] = (*[_INTS] * 8, *[_MAYBE_TEXTS] * 5)
# The same columns where all values are one, in the form that costs nothing to take over: bytes, or an array of a type.
_KINDS: Final = ("", "", "I", "", "I", "I", "q", "q", *[None] * 5)


def columns_of(all_of: Callable[..., list[Any]], *, base: int, first: int, last: int) -> Iterator[Columns]:
    """The items ``first`` to ``last`` of the batch whose place is ``base``. ``all_of`` gives a statement's rows.

    Raises MsgspecError where a column does not hold what it was declared for, which the rows would show as well."""
    at, end = base + first, base + last
    while found := all_of("alike", at, end):
        start, *same = found[0]
        at = min(start + COLUMN_LENGTH - 1, end) + 1
        yield _part(all_of, base, start, at - 1, same)


def _part(all_of: Callable[..., list[Any]], base: int, start: int, end: int, same: list[Any]) -> Columns:
    """The items from place ``start`` to ``end``, of which the first one is at ``start``."""
    (items, highest, alike, *differing), *_ = all_of("texts", start, end, *same)
    if alike == items == highest - start + 1:
        ns: Any = range(start - base, highest - base + 1)
        others: list[Any] = [_all(value, items, kind) for value, kind in zip(same, _KINDS, strict=True)]
    else:
        places, *columns = all_of("others", start, end)[0]
        ns = [place - base for place in _INTS.decode(places)]
        others = [decoder.decode(column) for decoder, column in zip(_OTHERS, columns, strict=True)]
    ids, targets, minors, fields, references, billed, updated = differing
    states, settlements, generations, steps, attempts, spent, not_before, first_sent, *texts = others
    currencies, billed_in, codes, messages, carries = texts
    return Columns(
        ns,
        _TEXTS.decode(ids),
        _TEXTS.decode(targets),
        _MAYBE_INTS.decode(minors),
        currencies,
        _TEXTS.decode(fields),
        states,
        settlements,
        generations,
        steps,
        attempts,
        spent,
        not_before,
        _MAYBE_TEXTS.decode(references),
        _MAYBE_INTS.decode(billed),
        billed_in,
        codes,
        messages,
        ["{}"] * items if carries.count(None) == items else [carry or "{}" for carry in carries],
        first_sent,
        _INTS.decode(updated),
    )


def _all(value: Any, items: int, kind: str | None) -> Any:
    """A column of which all values are one. Raises ValueError, TypeError or OverflowError where it is none that fits."""
    if kind is None:
        return [value] * items
    return array(kind, [value]) * items if kind else bytes([value]) * items
