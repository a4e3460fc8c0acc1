"""Compares the items of an input with what was sealed, item by item: added, removed, or changed in which field.

Both sides are streamed. Where they run in step nothing is kept; what is out of step waits in a table by id, on disk
when it is much, so that reordered millions are compared as well. Order alone is no difference.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

import msgspec

from payonce.core.model import Item, NewItem
from payonce.core.money import Money
from payonce.intake.report import Log

_IN_MEMORY: Final = 50_000


@dataclass(frozen=True, slots=True)
class Added:
    """An item of the input that was not sealed."""

    id: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Changed:
    """One field of an item that differs: as sealed, and as the input now has it. ``field`` is ``target``, ``amount`` or
    the name of a column; a value that is not there is None."""

    id: str
    line: int | None
    field: str
    sealed: str | None
    now: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between a sealed batch and an input; falsy where nothing does. ``same`` counts equal items."""

    added: Log[Added]
    removed: Log[str]
    changed: Log[Changed]
    same: int
    changed_items: int

    def __bool__(self) -> bool:
        return bool(len(self.added) or len(self.removed) or self.changed_items)

    def close(self) -> None:
        """Gives temporary files back."""
        for log in (self.added, self.removed, self.changed):
            log.close()


class Readable(Protocol):
    """Anything that has items in order, such as an Intake."""

    def items(self) -> Iterator[NewItem]:
        """The items in order."""
        ...


class _Plain(msgspec.Struct, frozen=True):
    """An item reduced to what is sealed of it."""

    id: str
    target: str
    minor: int | None
    currency: str | None
    fields: dict[str, Any]
    line: int | None = None


def compare(sealed: Iterable[Item | NewItem], intake: Readable) -> Difference:
    """The difference between sealed items and an input; ids are compared exactly and occur once on each side.

    Holds at most some ten thousand items in memory. Raises OSError where there is no room for temporary files.
    """
    with TemporaryDirectory(prefix="payonce-") as folder:
        comparison = _Comparison(Path(folder))
        try:
            for old, new in zip_longest(sealed, intake.items()):
                comparison.take(None if old is None else _plain(old), None if new is None else _plain(new))
            return comparison.finish()
        finally:
            comparison.close()


def _plain(item: Item | NewItem) -> _Plain:
    money: Money | None = item.money
    return _Plain(
        item.id,
        item.target or item.id,
        None if money is None else money.minor,
        None if money is None else money.currency,
        dict(item.fields),
        item.line if isinstance(item, NewItem) else None,
    )


class _Comparison:
    def __init__(self, folder: Path) -> None:
        self._old = _Waiting(folder / "sealed.db")
        self._new = _Waiting(folder / "input.db")
        self._added = Log(Added)
        self._removed = Log(str)
        self._changed = Log(Changed)
        self._changed_items = 0
        self._same = 0

    def take(self, old: _Plain | None, new: _Plain | None) -> None:
        """Takes the next item of each side, None from a side that has ended."""
        if old is not None and new is not None and old.id == new.id:
            self._judge(old, new)
            return
        if old is not None:
            partner = self._new.take(old.id)
            if partner is None:
                self._old.put(old)
            else:
                self._judge(old, partner)
        if new is not None:
            partner = self._old.take(new.id)
            if partner is None:
                self._new.put(new)
            else:
                self._judge(partner, new)

    def _judge(self, old: _Plain, new: _Plain) -> None:
        found = list(_differences(old, new))
        if not found:
            self._same += 1
            return
        self._changed_items += 1
        for change in found:
            self._changed.add(change)

    def finish(self) -> Difference:
        """What is left waiting on either side has no partner."""
        for item in self._old.rest():
            self._removed.add(item.id)
        for item in self._new.rest():
            self._added.add(Added(item.id, item.line))
        return Difference(self._added, self._removed, self._changed, self._same, self._changed_items)

    def close(self) -> None:
        self._old.close()
        self._new.close()


def _differences(old: _Plain, new: _Plain) -> Iterator[Changed]:
    def changed(field: str, before: str | None, now: str | None) -> Changed:
        return Changed(new.id, new.line, field, before, now)

    if old.target != new.target:
        yield changed("target", old.target, new.target)
    if (old.minor, old.currency) != (new.minor, new.currency):
        yield changed("amount", _money(old), _money(new))
    if old.fields == new.fields and _text(old.fields) == _text(new.fields):
        return
    for name in sorted({*old.fields, *new.fields}):
        before, now = _value(old.fields, name), _value(new.fields, name)
        if before != now:
            yield changed(name, before, now)


def _money(item: _Plain) -> str | None:
    return None if item.minor is None or item.currency is None else str(Money.of_minor(item.minor, item.currency))


def _text(value: Any) -> str:
    # Unlike Python, JSON tells 1 from 1.0 and from true.
    return msgspec.json.encode(value, order="sorted").decode("utf-8")


def _value(fields: dict[str, Any], name: str) -> str | None:
    if name not in fields:
        return None
    value = fields[name]
    return value if isinstance(value, str) else _text(value)


class _Waiting:
    """Items of one side by id, the first ones in memory and the rest in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._near: dict[str, _Plain] = {}
        self._far: sqlite3.Connection | None = None
        self._decoder = msgspec.json.Decoder(_Plain)

    def put(self, item: _Plain) -> None:
        if len(self._near) < _IN_MEMORY:
            self._near[item.id] = item
            return
        if self._far is None:
            self._far = sqlite3.connect(self._path, isolation_level=None)
            self._far.execute("PRAGMA journal_mode=OFF")
            self._far.execute("PRAGMA synchronous=OFF")
            self._far.execute(
                "CREATE TABLE waiting (n INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, item BLOB NOT NULL)"
            )
            self._far.execute("BEGIN")
        row = (item.id.encode("utf-8"), msgspec.json.encode(item))
        self._far.execute("INSERT INTO waiting (id, item) VALUES (?, ?)", row)

    def take(self, item_id: str) -> _Plain | None:
        found = self._near.pop(item_id, None)
        if found is not None or self._far is None:
            return found
        row = self._far.execute(
            "DELETE FROM waiting WHERE id = ? RETURNING item", (item_id.encode("utf-8"),)
        ).fetchone()
        return None if row is None else self._decoder.decode(row[0])

    def rest(self) -> Iterator[_Plain]:
        yield from self._near.values()
        if self._far is not None:
            for (data,) in self._far.execute("SELECT item FROM waiting ORDER BY n"):
                yield self._decoder.decode(data)

    def close(self) -> None:
        if self._far is not None:
            self._far.close()
