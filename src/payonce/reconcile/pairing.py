"""Which statement entry belongs to which item: one to one, exact, by reference, then key, then own reference.

Pure. Ids are compared character by character, case included; a near miss becomes a suggestion and never a pair. Each
entry belongs to one item at most, and the entries that are left over name the item they were about, if any.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from payonce.core.states import ItemState
from payonce.reconcile.model import Coverage, Entry, LedgerLine

# How far a provider's clock and ours may be apart when an entry is tied to an item by its target alone.
CLOCK_TOLERANCE_US = 300 * 1_000_000
_WITHOUT_OUTCOME = (ItemState.UNKNOWN, ItemState.PENDING)


@dataclass(slots=True)
class Pairs:
    """The pairs found: ``entry_of`` an item's place, ``extras`` further entries of a paired item, by item's place;
    ``legs`` entries in another currency under a paired reference; ``apart`` entries that are no item's of these lines. ``shares_references``: the statement's references are
    the ledger's, so that another one means another execution."""

    lines: Sequence[LedgerLine]
    entries: Sequence[Entry]
    coverage: Coverage
    shares_references: bool = False
    entry_of: dict[int, int] = field(default_factory=dict)
    line_of: dict[int, int] = field(default_factory=dict)
    extras: dict[int, list[int]] = field(default_factory=dict)
    legs: set[int] = field(default_factory=set)
    apart: Collection[int] = ()

    def is_free(self, entry: int) -> bool:
        """Whether an entry may still be somebody's."""
        return entry not in self.line_of and entry not in self.legs and entry not in self.apart

    def join(self, line: int, entry: int) -> None:
        """Makes a pair."""
        self.entry_of[line] = entry
        self.line_of[entry] = line


def pair(
    lines: Sequence[LedgerLine], entries: Sequence[Entry], coverage: Coverage, *, apart: Collection[int] = ()
) -> Pairs:
    """All pairs. Of several entries that carry an item's key or own reference the earliest is its own; the order of
    ``entries`` is the provider's and decides between equals, that of ``lines`` is the input's. ``coverage`` tells an execution under another reference from the only one there is. Entries at the places
    ``apart`` are paired with nothing."""
    pairs = Pairs(lines, entries, coverage, apart=apart)
    _by(pairs, range(len(entries)), lambda line: (line.reference,), lambda entry: (entry.reference,))
    pairs.shares_references = bool(pairs.entry_of)
    # Some providers list the latest first; a row without a time comes after those that have one.
    timed = [(entry.at_us is None, entry.at_us or 0) for entry in entries]
    order = sorted((number for number in range(len(entries)) if pairs.is_free(number)), key=timed.__getitem__)
    _by(pairs, order, lambda line: line.keys, lambda entry: entry.keys)
    # A provider's reference column often repeats ours, so it counts as an own reference too.
    _by(pairs, order, lambda line: (line.item,), lambda entry: (*entry.owns, entry.reference))
    _by_target(pairs)
    return pairs


Ids = Callable[[LedgerLine], Iterable[str | None]]
EntryIds = Callable[[Entry], Iterable[str | None]]


def _by(pairs: Pairs, order: Iterable[int], ids: Ids, entry_ids: EntryIds) -> None:
    places: dict[str, int] = {}
    for place, line in enumerate(pairs.lines):
        for name in ids(line):
            if name and (name not in places or places[name] in pairs.entry_of):
                places[name] = place
    for number in order:
        if not pairs.is_free(number):
            continue
        found = (places[name] for name in entry_ids(pairs.entries[number]) if name and name in places)
        first = next(found, None)
        if first is not None:
            _claim(pairs, first, number)


def _claim(pairs: Pairs, place: int, number: int) -> None:
    """The entry is the item's, or one more of it; entries of the item's own currency go before others."""
    taken = pairs.entry_of.get(place)
    if taken is None:
        if _another_execution(pairs, pairs.lines[place], pairs.entries[number]):
            pairs.extras.setdefault(place, []).append(number)
            pairs.line_of[number] = place
        else:
            pairs.join(place, number)
        return
    line, entry, first = pairs.lines[place], pairs.entries[number], pairs.entries[taken]
    currency = line.money.currency if line.money else first.currency
    if entry.reference is not None and entry.reference == first.reference and entry.currency != first.currency:
        # The same reference in two currencies is one execution and a leg of its exchange.
        if first.currency != currency and entry.currency == currency:
            del pairs.line_of[taken]
            pairs.join(place, number)
            number = taken
        pairs.legs.add(number)
        return
    if not first.legs and not first.returned and (entry.legs or entry.returned):
        # Rows that are no executions never stand in the way of one that is.
        del pairs.line_of[taken]
        pairs.join(place, number)
        number = taken
    pairs.extras.setdefault(place, []).append(number)
    pairs.line_of[number] = place


def _another_execution(pairs: Pairs, line: LedgerLine, entry: Entry) -> bool:
    """An entry of a committed item under another reference than the ledger's is one more execution, unless it is proven
    that the statement would show the ledger's own one and does not."""
    if not pairs.shares_references or line.reference is None or entry.reference in (None, line.reference):
        return False
    return line.committed and not pairs.coverage.proves_absence(line.earliest_us, line.latest_us)


def _by_target(pairs: Pairs) -> None:
    """Where the provider repeats neither key nor own reference: an item without an outcome and an entry that nobody
    claims, alone on their target with one amount, the entry not before the first send."""
    open_lines: dict[tuple[str, str, int], list[int]] = {}
    for place, line in enumerate(pairs.lines):
        if place not in pairs.entry_of and line.state in _WITHOUT_OUTCOME and line.asked is not None:
            open_lines.setdefault((line.target, line.asked.currency, line.asked.minor), []).append(place)
    if not open_lines:
        return
    candidates: dict[tuple[str, str, int], list[int]] = {}
    for number, entry in enumerate(pairs.entries):
        if not pairs.is_free(number) or entry.keys or entry.owns or not entry.target:
            continue
        if len(entry.legs) == 1:
            candidates.setdefault((entry.target, entry.currency, entry.legs[0]), []).append(number)
    for what, places in open_lines.items():
        numbers = candidates.get(what, [])
        if len(places) == len(numbers) == 1 and _after_send(pairs.lines[places[0]], pairs.entries[numbers[0]]):
            pairs.join(places[0], numbers[0])


def _after_send(line: LedgerLine, entry: Entry) -> bool:
    if line.earliest_us is None or entry.at_us is None:
        return True
    return entry.at_us >= line.earliest_us - CLOCK_TOLERANCE_US


def suggestions(pairs: Pairs) -> dict[int, str]:
    """For entries that nobody claims, the item that may have been meant, in words, by the entry's place."""
    near: dict[str, list[int]] = {}
    same: dict[tuple[str, str, int], int] = {}
    free = [number for number in range(len(pairs.entries)) if pairs.is_free(number)]
    if not free:
        return {}
    for place, line in enumerate(pairs.lines):
        for name in {line.reference, line.item, line.target}:
            if name:
                near.setdefault(name.casefold(), []).append(place)
        if line.money is not None:
            same.setdefault((line.target, line.money.currency, line.money.minor), place)
    found = {number: _suggest(pairs, number, near, same) for number in free}
    return {number: text for number, text in found.items() if text}


def _suggest(
    pairs: Pairs, number: int, near: dict[str, list[int]], same: dict[tuple[str, str, int], int]
) -> str | None:
    entry = pairs.entries[number]
    if entry.target and len(set(entry.legs)) == 1:
        place = same.get((entry.target, entry.currency, entry.legs[0]))
        if place is not None:
            return f"same target and amount as item {pairs.lines[place].item}"
    for name in (entry.reference, *entry.owns, entry.target):
        others = [pairs.lines[place] for place in near.get(name.casefold(), ())] if name else []
        misses = [line for line in others if name not in (line.reference, line.item, line.target)]
        if misses:
            # Of several, the one with the entry's amount is the likelier.
            line = next((one for one in misses if one.money and one.money.minor in entry.legs), misses[0])
            return f"differs only by case from item {line.item}"
    return None


def near_misses(pairs: Pairs) -> dict[int, str]:
    """For items that something may have been executed for and that have no entry: an entry that differs from them only
    by case, in words, by the item's place. Also where that entry belongs to another item."""
    alone = [
        place
        for place, line in enumerate(pairs.lines)
        if place not in pairs.entry_of and (line.committed or line.state in _WITHOUT_OUTCOME)
    ]
    if not alone:
        return {}
    names: dict[str, str] = {}
    for entry in pairs.entries:
        for name in (entry.reference, *entry.owns, entry.target):
            if name:
                names.setdefault(name.casefold(), name)
    found: dict[int, str] = {}
    for place in alone:
        line = pairs.lines[place]
        for name in (line.reference, line.item, line.target):
            other = names.get(name.casefold()) if name else None
            if other is not None and other != name:
                found[place] = f"{name} differs only by case from {other} in the statement"
                break
    return found
