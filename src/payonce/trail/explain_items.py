"""What is stored of the items, the tallies and the seal, against what the events come to. Pure over the rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from payonce.core.money import format_minor
from payonce.core.states import ItemState
from payonce.ledger.rows import BatchRow, Tallies
from payonce.ledger.trail_port import Facts
from payonce.trail.explain import NOTHING, SETTLEMENTS, STATES, Story
from payonce.trail.faults import Fault

_CODE: Final = {state: code for code, state in enumerate(STATES)}
Holds = dict[int, tuple[int | None, str | None]]


class Stored:
    """One pass over the items of a batch: compares each with its story, counts the tallies, hashes the seal."""

    def __init__(self, story: Story, row: BatchRow, holds: Holds) -> None:
        self._story = story
        self._row = row
        self._holds = holds
        self._tallies: Tallies = {}
        self._seals = (hashlib.sha256(), hashlib.sha256())
        self.items = 0
        self.erased = 0

    def faults(self, facts: Iterable[Facts], tallies: Tallies) -> Iterator[Fault]:
        """Everything that the events do not explain, items first."""
        for item in facts:
            self.items += 1
            for what in self._differences(item):
                text = f"item {item.id} of batch {self._row.id}: {what}"
                yield Fault("unexplained", text, batch=self._row.id, item=item.id)
            self._count(item)
            self._seal(item)
        if self.items != self._row.items:
            yield self._fault(f"batch {self._row.id} has {self.items} items and says {self._row.items}")
        if {k: v for k, v in tallies.items() if v != [0, 0]} != self._tallies:
            yield self._fault(f"the tallies of batch {self._row.id} are not those of its items")

    def seal_holds(self) -> bool | None:
        """Whether the items are those that were sealed; None where some were erased, so that nobody can tell any more."""
        if self.erased:
            return None
        return self._row.seal in (seal.hexdigest() for seal in self._seals)

    def _fault(self, text: str) -> Fault:
        return Fault("unexplained", text, batch=self._row.id)

    def _differences(self, item: Facts) -> Iterator[str]:
        story, n = self._story, item.n
        if n >= len(story.states):
            yield "there is no such item by the batch's own count"
            return
        if _CODE[item.state] != story.states[n]:
            yield f"it is {item.state}, by its events it is {STATES[story.states[n]]}"
        counts = (item.attempts, item.generation, item.step)
        explained = (story.attempts[n], story.generations[n], story.steps[n])
        if counts != explained:
            yield f"attempts, generation and step are {counts}, by its events {explained}"
        if SETTLEMENTS[item.settlement] != story.settlements[n]:
            yield f"its settlement is {item.settlement}, which no event says"
        if _billed(item) != story.facts[n]:
            yield f"reference {item.reference} and billed amount {_amount(item)} are not those of its commit"
        if hash((item.code, item.message or None)) != story.codes[n]:
            yield f"its code {item.code} or message is not that of its last event"
        if item.state.holds_money and self._held(n) != story.holds.get(n, (None, None)):
            yield "the money it holds is not that of its intent"

    def _held(self, n: int) -> tuple[str | None, str | None]:
        minor, currency = self._holds.get(n, (None, None))
        return (None, None) if minor is None or currency is None else (format_minor(minor, currency), currency)

    def _count(self, item: Facts) -> None:
        minor, currency = item.minor, item.currency
        if item.state.holds_money:
            minor, currency = self._holds.get(item.n, (None, None))
        elif item.state is ItemState.COMMITTED and item.billed_currency is not None:
            minor, currency = item.billed_minor, item.billed_currency
        tally = self._tallies.setdefault((item.state, currency or ""), [0, 0])
        tally[0] += 1
        tally[1] += minor or 0

    def _seal(self, item: Facts) -> None:
        """Both forms of the line under the seal: the amount as a number (files) and as text (Python)."""
        self.erased += item.n in self._story.erased
        line: dict[str, Any] = {
            "amount_minor": item.minor,
            "currency": item.currency,
            "fields": orjson.Fragment(item.fields),
            "id": item.id,
            "target": item.target,
        }
        for seal in self._seals:
            seal.update(orjson.dumps(line, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))
            line["amount_minor"] = None if item.minor is None else str(item.minor)


def _billed(item: Facts) -> int:
    if item.reference is None and item.billed_minor is None:
        return NOTHING
    return hash((item.reference, _amount(item), item.billed_currency))


def _amount(item: Facts) -> str | None:
    if item.billed_minor is None or item.billed_currency is None:
        return None
    return format_minor(item.billed_minor, item.billed_currency)
