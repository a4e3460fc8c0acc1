"""An input that was edited after sealing: each difference is named, order alone is none."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from payonce.core.model import Item, NewItem
from payonce.core.money import Money
from payonce.intake import Difference, compare


class Items:
    """Items like an input has them."""

    def __init__(self, items: Sequence[NewItem]) -> None:
        self._items = items

    def items(self) -> Iterator[NewItem]:
        """The items in order."""
        return iter(self._items)


def make(count: int) -> list[NewItem]:
    """Sound items."""
    return [NewItem(f"A{n}", Money.of_minor(100 + n, "USD"), f"ch_{n}", {"memo": f"m{n}"}, n + 2) for n in range(count)]


def sealed(items: Sequence[NewItem]) -> list[Item]:
    """The items as a ledger holds them."""
    return [Item(n, item.id, item.target or item.id, item.money, item.fields) for n, item in enumerate(items, 1)]


def told(difference: Difference) -> dict[str, Any]:
    """What a difference says."""
    return {
        "added": [(entry.id, entry.line) for entry in difference.added],
        "removed": list(difference.removed),
        "changed": [(entry.id, entry.field, entry.sealed, entry.now) for entry in difference.changed],
    }


def test_the_same_items_differ_in_nothing() -> None:
    """Falsy, and all of them counted as the same."""
    difference = compare(sealed(make(10)), Items(make(10)))
    assert not difference
    assert difference.same == 10


def test_every_field_that_changed_is_named() -> None:
    """Amount, currency, target, a changed column, a new and a missing one."""
    now = make(6)
    now[0] = replace(now[0], money=Money.of_minor(101, "USD"))
    now[1] = replace(now[1], money=Money.of_minor(101, "EUR"))
    now[2] = replace(now[2], target="ch_x")
    now[3] = replace(now[3], fields={"memo": "other"})
    now[4] = replace(now[4], fields={"memo": "m4", "new": 1.5})
    now[5] = replace(now[5], fields={})
    assert told(compare(sealed(make(6)), Items(now))) == {
        "added": [],
        "removed": [],
        "changed": [
            ("A0", "amount", "1.00 USD", "1.01 USD"),
            ("A1", "amount", "1.01 USD", "1.01 EUR"),
            ("A2", "target", "ch_2", "ch_x"),
            ("A3", "memo", "m3", "other"),
            ("A4", "new", None, "1.5"),
            ("A5", "memo", "m5", None),
        ],
    }


def test_values_that_python_takes_for_equal_differ() -> None:
    """1, 1.0 and true are three values in JSON."""
    now = [NewItem("A", None, "A", {"x": 1.0, "y": True, "z": [1]}, 1)]
    was = [NewItem("A", None, "A", {"x": 1, "y": 1, "z": [1]}, 1)]
    difference = compare(sealed(was), Items(now))
    assert [entry.field for entry in difference.changed] == ["x", "y"]
    assert difference.changed_items == 1


def test_added_and_removed_rows_shift_nothing() -> None:
    """A row put in at the top and one taken out in the middle."""
    now = [NewItem("new", Money("1", "USD"), None, {}, 2), *make(10)]
    del now[5]
    assert told(compare(sealed(make(10)), Items(now))) == {"added": [("new", 2)], "removed": ["A4"], "changed": []}


def test_a_target_that_is_the_id_is_no_change() -> None:
    """An item without a target acts on its id."""
    assert not compare(sealed([NewItem("A", None, None)]), Items([NewItem("A", None, "A")]))


@pytest.mark.parametrize("in_memory", [0, 3, 50_000])
def test_any_order_and_any_edits(in_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shuffled, with items added, removed and changed, in memory and on disk: exactly these are told."""
    monkeypatch.setattr("payonce.intake.difference._IN_MEMORY", in_memory)
    for seed in range(20):
        chance = random.Random(seed)
        was = make(chance.randrange(60))
        removed = {item.id for item in was if chance.random() < 0.1}
        changed = {item.id for item in was if chance.random() < 0.1} - removed
        now = [
            replace(item, fields={"memo": "!"}) if item.id in changed else item
            for item in was
            if item.id not in removed
        ]
        now += [NewItem(f"N{n}", None) for n in range(chance.randrange(5))]
        chance.shuffle(now)
        found = told(compare(sealed(was), Items(now)))
        assert {entry[0] for entry in found["changed"]} == changed
        assert set(found["removed"]) == removed
        assert {entry[0] for entry in found["added"]} == {item.id for item in now if item.id.startswith("N")}
