"""What is stored of the items and their tallies, against what the events come to. Pure over the rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from payonce.core.errors import MoneyError
from payonce.core.keys import digest
from payonce.core.money import format_minor
from payonce.core.states import ItemState
from payonce.ledger.rows import BatchRow, Tallies
from payonce.ledger.trail_port import StoredRow
from payonce.trail.explain import NO_CARRY, OPEN, SETTLEMENTS, STATES, Story
from payonce.trail.faults import Fault

Holds = dict[int, tuple[int | None, str | None]]
_COMMITTED: Final = STATES.index(ItemState.COMMITTED)
_SETTLEMENT_NAMES: Final = tuple(SETTLEMENTS)


class Stored:
    """One pass over the items of a batch: compares each with its story and counts the tallies."""

    def __init__(self, story: Story, row: BatchRow, holds: Holds) -> None:
        self._story = story
        self._row = row
        self._holds = holds
        self._sealings = list(story.batch.sealings)
        self._tallies: dict[tuple[int, str | None], list[int]] = {}
        self.items = 0

    def faults(self, stored: Iterable[StoredRow], tallies: Tallies) -> Iterator[Fault]:
        """Everything that the events do not explain, items first."""
        story, row = self._story, self._row
        whole = True
        for item in stored:
            self._count(item)
            if whole and item.n != self.items:
                whole = False
                yield self._fault(f"item {item.id} of batch {row.id} stands at number {item.n}, behind a gap", item.id)
            if item.n >= len(story.states):
                yield self._fault(f"item {item.id} is none of the {row.items} items of batch {row.id}", item.id)
                continue
            for what in self._differences(item):
                yield self._fault(f"item {item.id} of batch {row.id}: {what}", item.id)
        if self.items != row.items:
            yield self._fault(f"batch {row.id} has {self.items} items and says {row.items}")
        counted = {(state_name(state), currency or ""): tally for (state, currency), tally in self._tallies.items()}
        if {(state.value, coin): tally for (state, coin), tally in tallies.items() if tally != [0, 0]} != counted:
            yield self._fault(f"the tallies of batch {row.id} are not those of its items")

    def _count(self, item: StoredRow) -> None:
        minor, currency = item.minor, item.currency
        if item.state in OPEN:
            minor, currency = self._holds.get(item.n, (None, None))
        elif item.state == _COMMITTED and item.billed_currency is not None:
            minor, currency = item.billed_minor, item.billed_currency
        tally = self._tallies.setdefault((item.state, currency), [0, 0])
        tally[0] += 1
        tally[1] += minor or 0
        self.items += 1

    def _fault(self, text: str, item: str | None = None) -> Fault:
        return Fault("unexplained", text, batch=self._row.id, item=item)

    def _differences(self, item: StoredRow) -> Iterator[str]:
        n, story = item.n, self._story
        if story.ids[n] and story.ids[n] != hash(item.id):
            yield "the events filed under it are about another item"
        if item.state != story.states[n]:
            yield f"it is {state_name(item.state)}, by its events it is {state_name(story.states[n])}"
        stored = (item.attempts, item.generation, item.step)
        explained = (story.attempts[n], story.generations[n], story.steps[n])
        if stored != explained:
            yield f"attempts, generation and step are {stored}, by its events {explained}"
        if item.settlement != story.settlements[n]:
            names = dict(enumerate(_SETTLEMENT_NAMES))
            yield f"its settlement is {names.get(item.settlement, item.settlement)}, which no event says"
        facts = _billed(item.reference, item.billed_minor, item.billed_currency)
        if facts != story.facts[n]:
            billed = _amount(item.billed_minor, item.billed_currency)
            yield f"reference {item.reference} and billed amount {billed} are not those of its commit"
        if hash((item.code, item.message or None)) != story.codes[n]:
            yield f"its code {item.code} or message is not that of its last event"
        yield from self._tries(item)
        if item.state in OPEN:
            own = (_amount(item.minor, item.currency), item.currency if item.minor is not None else None)
            held_minor, held_currency = self._holds.get(n, (None, None))
            if (_amount(held_minor, held_currency), held_currency) != story.holds.get(n, own):
                yield "the money it holds is not that of its intent"

    def _tries(self, item: StoredRow) -> Iterator[str]:
        """How often and when it may be tried again, what it carries from call to call, when it was changed."""
        n, story = item.n, self._story
        if item.not_before_us != story.not_before[n]:
            yield "the time before which it is not sent again is not that of its events"
        if item.updated_us != (story.times[n] or self._sealed_us(n)):
            yield "the time of its last change is not that of its last event"
        if not story.exact:
            return
        if item.spent != story.spent[n]:
            yield f"{item.spent} of its attempts count, by its events {story.spent[n]}"
        if item.first_sent_us != story.first_sent[n]:
            yield "the start of its key's window is not that of its events"
        carried = NO_CARRY if item.carry == "{}" else hash(digest(item.carry.encode()))
        if carried != story.carries[n]:
            yield "what it carries from call to call is not what its events say"

    def _sealed_us(self, n: int) -> int:
        at = bisect_right(self._sealings, n, key=lambda sealing: sealing.first) - 1
        return self._sealings[at].at_us if at >= 0 else 0


def _billed(reference: str | None, minor: int | None, currency: str | None) -> int:
    """What ``Story.facts`` holds for a reference and a billed amount."""
    return hash((reference, _amount(minor, currency), currency))


def _amount(minor: int | None, currency: str | None) -> str | None:
    if minor is None:
        return None
    try:
        return f"{minor} of nothing" if currency is None else format_minor(minor, currency)
    except MoneyError:  # somebody wrote a currency that is none: like no amount of any event
        return f"{minor} of {currency}"


def state_name(code: int) -> str:
    """A state by its code; one that is none is only ever written by somebody else than a ledger."""
    return STATES[code].value if 0 <= code < len(STATES) else f"in no state ({code})"
