"""What is stored of the items and their tallies, against what the events come to. Pure over the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from payonce.core.errors import MoneyError
from payonce.core.money import format_minor
from payonce.core.states import ItemState
from payonce.ledger.rows import BatchRow, Tallies
from payonce.ledger.trail_port import FactRow
from payonce.trail.explain import NO_CODE, NOTHING, SETTLEMENTS, STATES, Story
from payonce.trail.faults import Fault

Holds = dict[int, tuple[int | None, str | None]]
_COMMITTED: Final = STATES.index(ItemState.COMMITTED)
_OPEN: Final = frozenset(code for code, state in enumerate(STATES) if state.holds_money)
_SETTLEMENT_NAMES: Final = tuple(SETTLEMENTS)


class Stored:
    """One pass over the items of a batch: compares each with its story and counts the tallies."""

    def __init__(self, story: Story, row: BatchRow, holds: Holds) -> None:
        self._story = story
        self._row = row
        self._holds = holds
        self._tallies: dict[tuple[int, str | None], list[int]] = {}
        self.items = 0

    def faults(self, facts: Iterable[FactRow], tallies: Tallies) -> Iterator[Fault]:
        """Everything that the events do not explain, items first."""
        story, row = self._story, self._row
        for fact in self._suspects(facts):
            if fact[0] >= len(story.states):
                yield self._fault(f"item {fact[1]} is none of the {row.items} items of batch {row.id}", fact[1])
                continue
            for what in self._differences(fact):
                yield self._fault(f"item {fact[1]} of batch {row.id}: {what}", fact[1])
        if self.items != row.items:
            yield self._fault(f"batch {row.id} has {self.items} items and says {row.items}")
        counted = {(state_name(state), currency or ""): tally for (state, currency), tally in self._tallies.items()}
        if {(state.value, coin): tally for (state, coin), tally in tallies.items() if tally != [0, 0]} != counted:
            yield self._fault(f"the tallies of batch {row.id} are not those of its items")

    def _suspects(self, facts: Iterable[FactRow]) -> Iterator[FactRow]:
        """Counts every item and hands on those that differ in anything. The loop is tight: it runs for every item."""
        story, tallies, end = self._story, self._tallies, len(self._story.states)
        states, attempts, known, codes = story.states, story.attempts, story.facts, story.codes
        generations, steps, settlements, ids = story.generations, story.steps, story.settlements, story.ids
        for fact in facts:
            n, id_, minor, currency, state, settlement, generation, step, tries, reference, billed, coin, code, text = (
                fact
            )
            self.items += 1
            is_open = state in _OPEN
            if (
                n >= end
                or (ids[n] and ids[n] != hash(id_))
                or states[n] != state
                or attempts[n] != tries
                or generations[n] != generation
                or steps[n] != step
                or settlements[n] != settlement
                or known[n] != (NOTHING if billed is None and reference is None else _billed(reference, billed, coin))
                or codes[n] != (NO_CODE if code is None and not text else hash((code, text or None)))
                or is_open
            ):
                yield fact
            if is_open:
                minor, currency = self._holds.get(n, (None, None))
            elif state == _COMMITTED and coin is not None:
                minor, currency = billed, coin
            tally = tallies.get((state, currency))
            if tally is None:
                tally = tallies[state, currency] = [0, 0]
            tally[0] += 1
            tally[1] += minor or 0

    def _fault(self, text: str, item: str | None = None) -> Fault:
        return Fault("unexplained", text, batch=self._row.id, item=item)

    def _differences(self, fact: FactRow) -> Iterator[str]:
        n, id_, minor, currency, state, settlement, generation, step, tries, reference, billed, coin, code, text = fact
        story = self._story
        if story.ids[n] and story.ids[n] != hash(id_):
            yield "the events filed under it are about another item"
        if state != story.states[n]:
            yield f"it is {state_name(state)}, by its events it is {state_name(story.states[n])}"
        stored, explained = (tries, generation, step), (story.attempts[n], story.generations[n], story.steps[n])
        if stored != explained:
            yield f"attempts, generation and step are {stored}, by its events {explained}"
        if settlement != story.settlements[n]:
            names = dict(enumerate(_SETTLEMENT_NAMES))
            yield f"its settlement is {names.get(settlement, settlement)}, which no event says"
        if _billed(reference, billed, coin) != story.facts[n]:
            yield f"reference {reference} and billed amount {_amount(billed, coin)} are not those of its commit"
        if hash((code, text or None)) != story.codes[n]:
            yield f"its code {code} or message is not that of its last event"
        if state in _OPEN:
            own = (_amount(minor, currency), currency if minor is not None else None)
            held_minor, held_currency = self._holds.get(n, (None, None))
            if (_amount(held_minor, held_currency), held_currency) != story.holds.get(n, own):
                yield "the money it holds is not that of its intent"


def _billed(reference: str | None, minor: int | None, currency: str | None) -> int:
    """What ``Story.facts`` holds for a reference and a billed amount."""
    return hash((reference, _amount(minor, currency), currency))


def _amount(minor: int | None, currency: str | None) -> str | None:
    try:
        return None if minor is None or currency is None else format_minor(minor, currency)
    except MoneyError:  # somebody wrote a currency that is none: like no amount of any event
        return f"{minor} of {currency}"


def state_name(code: int) -> str:
    """A state by its code; one that is none is only ever written by somebody else than a ledger."""
    return STATES[code].value if 0 <= code < len(STATES) else f"in no state ({code})"
