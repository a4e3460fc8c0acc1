"""Replaying the events: the state, attempts, generation and money that each item must have come to by them.

One pass in sequence. The transition table is that of core.states; an event that the table does not allow in its item's
state is a fault of its own. What an item came to is kept in flat columns, a few dozen bytes an item.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from payonce.core.events import from_iso
from payonce.core.keys import digest
from payonce.core.states import TRANSITIONS, ItemEvent, ItemState, Settlement
from payonce.ledger.rows import BatchRow
from payonce.ledger.trail_port import PLACE_MASK, PLACE_SHIFT, Filed
from payonce.trail.explain_batch import BatchStory
from payonce.trail.explain_workers import WorkersStory
from payonce.trail.faults import Fault
from payonce.trail.said import DECODER, Said, SaidOfItem

STATES: Final = tuple(ItemState)
_CODE: Final = {state: code for code, state in enumerate(STATES)}
EDGES: Final = {(_CODE[before], event.value): _CODE[after] for (before, event), after in TRANSITIONS.items()}
# For each event, by the state's code before it, the code after it; None where there is no such edge.
AFTER: Final = {
    event.value: tuple(EDGES.get((code, event.value)) for code in range(len(STATES))) for event in ItemEvent
}
SETTLEMENTS: Final = {settlement.value: code for code, settlement in enumerate(Settlement)}
OPEN: Final = frozenset(code for code, state in enumerate(STATES) if state.holds_money)
NOTHING: Final = hash((None, None, None))
NO_CODE: Final = hash((None, None))
NO_CARRY: Final = hash(digest(b"{}"))
_MOST_FAULTS: Final = 100


class Story:
    """What the items of one batch came to, by number from 1. ``exact``: its events explain every column that follows from
    events; those of a batch that an earlier payonce sealed do not."""

    __slots__ = (
        "attempts",
        "batch",
        "carries",
        "codes",
        "erased",
        "exact",
        "facts",
        "first_sent",
        "generations",
        "holds",
        "ids",
        "kept",
        "name",
        "not_before",
        "number",
        "open",
        "outputs",
        "payloads",
        "settlements",
        "spent",
        "states",
        "steps",
        "times",
    )

    def __init__(self, row: BatchRow, *, exact: bool) -> None:
        self.name, self.number, self.exact = row.id, row.number, exact
        length = row.items + 1
        self.states = bytearray(length)
        self.settlements = bytearray(length)
        self.steps = bytearray(length)
        self.attempts, self.generations, self.spent = (array("I", bytes(4 * length)) for _ in range(3))
        # Microseconds: of the item's last event (0 before the first), before which it is not sent again, and since when
        # the key of a planned item is in use.
        self.times, self.not_before, self.first_sent = (array("q", bytes(8 * length)) for _ in range(3))
        # Hashes of this process: the item's id in its events (0 before the first); what was kept of its call (0 for
        # nothing); reference, billed amount and currency; code and message; the digest of what it carries between calls.
        self.ids = array("q", bytes(8 * length))
        self.kept = array("q", bytes(8 * length))
        self.facts = array("q", [NOTHING]) * length
        self.codes = array("q", [NO_CODE]) * length
        self.carries = array("q", [NO_CARRY]) * length
        # Of open items whose intent reserved another amount than their own.
        self.holds: dict[int, tuple[str, str]] = {}
        self.outputs: dict[int, str] = {}
        self.erased: set[int] = set()
        # Items that are pending or unknown, once all events are taken; and how many payloads their events say are kept.
        self.open: set[int] = set()
        self.payloads = 0
        self.batch = BatchStory(row, exact=exact)

    def returned(self, n: int, said: SaidOfItem) -> None:
        """What a call returned and what was kept of it, in place of what there was."""
        if said.output is None:
            self.outputs.pop(n, None)
        else:
            self.outputs[n] = said.output
        self.kept[n] = hash(bytes(said.kept)) if said.kept else 0

    def find_open(self) -> None:
        """Notes which items are open, once all events are taken."""
        if any(self.states.count(code) for code in OPEN):
            self.open.update(n for n, code in enumerate(self.states) if code in OPEN)


class Replay:
    """All batches of a ledger, and the faults that the replay itself found (the first hundred, and how many there are).
    ``exact`` are the numbers of the batches whose events explain everything."""

    def __init__(self, rows: Iterable[BatchRow], exact: Collection[int]) -> None:
        self.stories = {row.number: Story(row, exact=row.number in exact) for row in rows}
        self.workers = WorkersStory()
        self.faults: list[Fault] = []
        self.count = 0

    def fault(self, fault: Fault) -> None:
        """Notes a fault."""
        self.count += 1
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(fault)

    def run(self, rows: Iterable[Filed]) -> None:
        """Takes events in sequence, as they are filed. The loop is tight: it runs for every event of a ledger."""
        decode, stories = DECODER.decode, self.stories
        number, story = 0, None
        for seq, place, body, _ in rows:
            try:
                said = decode(body)
            except msgspec.MsgspecError:
                self.fault(Fault("not_canonical", f"event {seq} is no event: {body[:60]!r}", seq))
                continue
            if said.seq != seq:
                self.fault(Fault("reordered", f"event {said.seq} stands in the place of event {seq}", seq))
            if place is None:
                if said.batch is not None:
                    self._misfiled(seq, said, None, 0)
                continue
            n = place & PLACE_MASK
            if place >> PLACE_SHIFT != number or story is None:
                number = place >> PLACE_SHIFT
                story = stories.get(number)
            if story is None or said.batch != story.name or n >= len(story.states):
                self._misfiled(seq, said, story, n)
            elif n == 0 or said.type not in AFTER:
                if is_of_item(story, n, said):
                    self.aside(story, n, said)
                else:
                    self._misfiled(seq, said, story, n)
            else:
                self.item(story, n, said, from_iso(said.at))
        for story in stories.values():
            story.find_open()

    def aside(self, story: Story, n: int, said: Said) -> None:
        """An event about the batch, or about an item but not its state."""
        if n and said.type == "erased":
            story.erased.add(n)
        elif not (n == 0 and self.workers.take(story.number, said)):
            story.batch.take(said)

    def _misfiled(self, seq: int, said: SaidOfItem, story: Story | None, n: int) -> None:
        where = f"batch {story.name}" if story else "no batch"
        where = f"item number {n} of {where}" if n else where
        about = f"item {said.item} of batch {said.batch}" if said.item else f"batch {said.batch}"
        text = f"event {seq} is about {about} and is filed under {where}"
        self.fault(Fault("misplaced", text, seq, batch=said.batch, item=said.item))

    def item(self, story: Story, n: int, said: Said, at_us: int) -> None:
        """An event about the state of an item."""
        kind, states = said.type, story.states
        after = AFTER[kind][states[n]]
        if not is_of_item(story, n, said):
            self._misfiled(said.seq, said, story, n)
            return
        if after is None:
            text = f"event {said.seq} says {kind} of item {said.item}, which was {STATES[states[n]]} by those before"
            self.fault(Fault("no_such_edge", text, said.seq, batch=story.name, item=said.item))
            return
        states[n] = after
        story.attempts[n] = said.attempt
        story.times[n] = at_us
        story.spent[n] += said.spent
        story.payloads += (said.request_kept is not None) + (said.response_kept is not None)
        story.batch.counts.take(said)
        if said.output is not None or said.kept:
            story.returned(n, said)
        if said.carry is not None:
            story.carries[n] = hash(said.carry)
        if kind == "intent" or kind == "resend":
            story.codes[n] = NO_CODE
            if said.reserve is not None:
                story.holds[n] = (said.reserve["amount"], said.reserve["currency"])
        elif kind == "commit":
            story.facts[n] = hash((said.reference or None, said.billed, said.billed_currency or said.currency))
            story.codes[n] = hash((said.code or None, said.message))
            if said.settlement is not None:
                story.settlements[n] = SETTLEMENTS[said.settlement]
            if story.holds:
                story.holds.pop(n, None)
        elif kind != "takeover":
            self._otherwise(story, n, said, after)
        elif said.clock_set_us < 0 and story.first_sent[n]:
            story.first_sent[n] = max(1, story.first_sent[n] + said.clock_set_us)

    def _otherwise(self, story: Story, n: int, said: Said, after: int) -> None:
        """What a doubt, a no, a look-up, an operator or a later fact about the money made of the item."""
        if said.new_generation is not None:
            story.generations[n] = said.new_generation
        if said.type == "step_done":
            story.steps[n] += 1
        if said.type == "retry" or said.code is not None:
            story.codes[n] = hash((said.code or None, said.message))
        if said.type == "settle" and said.settlement is not None:
            story.settlements[n] = SETTLEMENTS[said.settlement]
        if said.reserve is not None:  # a planned item became unknown
            story.holds[n] = (said.reserve["amount"], said.reserve["currency"])
        if not STATES[after].holds_money:
            story.holds.pop(n, None)
        if STATES[after] is ItemState.PLANNED:
            story.not_before[n] = 0 if said.wait_until is None else from_iso(said.wait_until)
            story.first_sent[n] = 0 if said.first_sent is None else from_iso(said.first_sent)
            if said.type == "retry":
                story.spent[n] = 0


def is_of_item(story: Story, n: int, said: SaidOfItem) -> bool:
    """Whether an event that is filed under an item is about the same item as the events before it."""
    if not n:
        return True
    about = hash(said.item)
    if not story.ids[n]:
        story.ids[n] = about
    return story.ids[n] == about
