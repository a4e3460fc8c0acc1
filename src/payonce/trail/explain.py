"""Replaying the events: the state, attempts, generation and money that each item must have come to by them.

One pass in sequence. The transition table is that of core.states; an event that the table does not allow in its item's
state is a fault of its own. What an item came to is kept in flat columns, a few dozen bytes an item.
"""

from __future__ import annotations

from array import array
from typing import Final

import msgspec

from payonce.core.states import TRANSITIONS, ItemEvent, ItemState, Settlement
from payonce.ledger.rows import BatchRow
from payonce.trail.explain_batch import BatchStory
from payonce.trail.faults import Fault
from payonce.trail.said import DECODER, Said

STATES: Final = tuple(ItemState)
_CODE: Final = {state: code for code, state in enumerate(STATES)}
EDGES: Final = {(_CODE[before], event.value): _CODE[after] for (before, event), after in TRANSITIONS.items()}
SETTLEMENTS: Final = {settlement.value: code for code, settlement in enumerate(Settlement)}
_ITEM_EVENTS: Final = frozenset(event.value for event in ItemEvent)
NOTHING: Final = hash((None, None, None))
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
        # Hashes of this process: reference, billed amount and currency; code and message.
        self.facts = array("q", [NOTHING]) * length
        self.codes = array("q", [hash((None, None))]) * length
        self.holds: dict[int, tuple[str | None, str | None]] = {}
        self.outputs: dict[int, str] = {}
        self.erased: set[int] = set()
        self.batch = BatchStory(row)


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

    def take(self, seq: int, number: int | None, n: int, body: bytes, item: str | None) -> None:
        """The next event, as it is filed: batch number, item number (0 for the batch), the item's id there."""
        try:
            said = DECODER.decode(body)
        except msgspec.MsgspecError:
            self.fault(Fault("not_canonical", f"event {seq} is no event: {body[:60]!r}", seq))
            return
        if said.seq != seq:
            self.fault(Fault("reordered", f"event {said.seq} stands in the place of event {seq}", seq))
        story = None if number is None else self.stories.get(number)
        foreign = (story.name if story else None) != said.batch
        # What is about an item may be filed under its batch alone, but never under another item.
        if foreign or (item != said.item and n):
            self._misfiled(seq, said, story, item)
            return
        if story is None:
            return
        if n and said.type in _ITEM_EVENTS:
            self._item(story, n, said)
        elif n and said.type == "erased":
            story.erased.add(n)
        else:
            story.batch.take(said)

    def _misfiled(self, seq: int, said: Said, story: Story | None, item: str | None) -> None:
        where = (
            f"item {item} of batch {story.name}" if story and item else f"batch {story.name}" if story else "no batch"
        )
        about = f"item {said.item} of batch {said.batch}" if said.item else f"batch {said.batch}"
        text = f"event {seq} is about {about} and is filed under {where}"
        self.fault(Fault("misplaced", text, seq, batch=said.batch, item=said.item))

    def _item(self, story: Story, n: int, said: Said) -> None:
        if n >= len(story.states):
            text = f"event {said.seq} is about item {said.item}, which batch {story.name} does not have"
            self.fault(Fault("unexplained", text, said.seq, batch=story.name, item=said.item))
            return
        before = story.states[n]
        after = EDGES.get((before, said.type))
        if after is None:
            text = f"event {said.seq} says {said.type} of item {said.item}, which was {STATES[before]} by the events before"
            self.fault(Fault("no_such_edge", text, said.seq, batch=story.name, item=said.item))
            return
        story.states[n] = after
        story.attempts[n] = said.attempt
        match said.type:
            case "intent" | "resend":
                story.batch.sent += said.worker is not None
                story.codes[n] = hash((None, None))
                if said.reserve is not None:
                    story.holds[n] = (said.reserve["amount"], said.reserve["currency"])
                elif said.type == "intent":
                    story.holds[n] = (said.amount, said.currency)
            case "takeover":
                pass
            case _:
                self._outcome(story, n, said, after)

    def _outcome(self, story: Story, n: int, said: Said, after: int) -> None:
        """What an answer, a look-up or an operator made of the item."""
        if said.new_generation is not None:
            story.generations[n] = said.new_generation
        if said.type == "step_done":
            story.steps[n] += 1
        if said.type in ("commit", "retry") or said.code is not None:
            story.codes[n] = hash((said.code, said.message))
        if said.type == "commit":
            story.facts[n] = hash((said.reference, said.billed, said.billed_currency or said.currency))
            story.settlements[n] = SETTLEMENTS[said.settlement or "none"]
            if said.output is not None:
                story.outputs[n] = said.output
        elif said.type == "settle" and said.settlement is not None:
            story.settlements[n] = SETTLEMENTS[said.settlement]
        if not STATES[after].holds_money:
            story.holds.pop(n, None)
