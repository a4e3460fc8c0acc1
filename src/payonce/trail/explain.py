"""Replaying the events: the state, attempts, generation and money that each item must have come to by them.

One pass in sequence. The transition table is that of core.states; an event that the table does not allow in its item's
state is a fault of its own. What an item came to is kept in flat columns, a few dozen bytes an item.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

import msgspec

from payonce.core.states import TRANSITIONS, ItemEvent, ItemState, Settlement
from payonce.ledger.rows import BatchRow
from payonce.ledger.trail_port import PLACE_MASK, PLACE_SHIFT, Filed
from payonce.trail.explain_batch import BatchStory
from payonce.trail.faults import Fault
from payonce.trail.said import DECODER, Said, SaidOfItem, never_left

STATES: Final = tuple(ItemState)
_CODE: Final = {state: code for code, state in enumerate(STATES)}
EDGES: Final = {(_CODE[before], event.value): _CODE[after] for (before, event), after in TRANSITIONS.items()}
# For each event, by the state's code before it, the code after it; None where there is no such edge.
AFTER: Final = {
    event.value: tuple(EDGES.get((code, event.value)) for code in range(len(STATES))) for event in ItemEvent
}
SETTLEMENTS: Final = {settlement.value: code for code, settlement in enumerate(Settlement)}
NOTHING: Final = hash((None, None, None))
NO_CODE: Final = hash((None, None))
_MOST_FAULTS: Final = 100


class Story:
    """What the items of one batch came to, by number from 1."""

    __slots__ = (
        "attempts",
        "batch",
        "codes",
        "erased",
        "facts",
        "generations",
        "holds",
        "ids",
        "kept",
        "name",
        "number",
        "outputs",
        "settlements",
        "states",
        "steps",
    )

    def __init__(self, row: BatchRow) -> None:
        self.name, self.number = row.id, row.number
        length = row.items + 1
        self.states = bytearray(length)
        self.settlements = bytearray(length)
        self.steps = bytearray(length)
        self.attempts = array("I", bytes(4 * length))
        self.generations = array("I", bytes(4 * length))
        # Hashes of this process: the item's id in its events (0 before the first); what was kept of its call (0 for
        # nothing); reference, billed amount and currency; code and message.
        self.ids = array("q", bytes(8 * length))
        self.kept = array("q", bytes(8 * length))
        self.facts = array("q", [NOTHING]) * length
        self.codes = array("q", [NO_CODE]) * length
        # Of open items whose intent reserved another amount than their own.
        self.holds: dict[int, tuple[str, str]] = {}
        self.outputs: dict[int, str] = {}
        self.erased: set[int] = set()
        self.batch = BatchStory(row)

    def returned(self, n: int, said: SaidOfItem) -> None:
        """What a call returned and what was kept of it, in place of what there was."""
        if said.output is None:
            self.outputs.pop(n, None)
        else:
            self.outputs[n] = said.output
        self.kept[n] = hash(bytes(said.kept)) if said.kept else 0


class Replay:
    """All batches of a ledger, and the faults that the replay itself found (the first hundred, and how many there are)."""

    def __init__(self, rows: list[BatchRow]) -> None:
        self.stories = {row.number: Story(row) for row in rows}
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
                self.aside(story, n, said)
            else:
                self.item(story, n, said)

    def aside(self, story: Story, n: int, said: Said) -> None:
        """An event about a batch, or about an item but not its state."""
        if n and said.type == "erased":
            story.erased.add(n)
        else:
            story.batch.take(said)

    def _misfiled(self, seq: int, said: SaidOfItem, story: Story | None, n: int) -> None:
        where = f"batch {story.name}" if story else "no batch"
        where = f"item number {n} of {where}" if n else where
        about = f"item {said.item} of batch {said.batch}" if said.item else f"batch {said.batch}"
        text = f"event {seq} is about {about} and is filed under {where}"
        self.fault(Fault("misplaced", text, seq, batch=said.batch, item=said.item))

    def item(self, story: Story, n: int, said: Said) -> None:
        """An event about the state of an item."""
        kind, states, about = said.type, story.states, hash(said.item)
        after = AFTER[kind][states[n]]
        if story.ids[n] != about:
            if story.ids[n]:
                self._misfiled(said.seq, said, story, n)
                return
            story.ids[n] = about
        if after is None:
            text = f"event {said.seq} says {kind} of item {said.item}, which was {STATES[states[n]]} by those before"
            self.fault(Fault("no_such_edge", text, said.seq, batch=story.name, item=said.item))
            return
        states[n] = after
        story.attempts[n] = said.attempt
        if said.output is not None or said.kept:
            story.returned(n, said)
        if never_left(said):
            story.batch.sent -= 1  # counted with its intent, but no byte of it left
        if kind == "intent" or kind == "resend":
            if said.worker is not None:
                story.batch.sent += 1
            story.codes[n] = NO_CODE
            if said.reserve is not None:
                story.holds[n] = (said.reserve["amount"], said.reserve["currency"])
        elif kind == "commit":
            story.facts[n] = hash((said.reference or None, said.billed, said.billed_currency or said.currency))
            story.codes[n] = NO_CODE if said.code is None else hash((said.code or None, said.message))
            if said.settlement is not None:
                story.settlements[n] = SETTLEMENTS[said.settlement]
            if story.holds:
                story.holds.pop(n, None)
        elif kind != "takeover":
            self._otherwise(story, n, said, after)

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
