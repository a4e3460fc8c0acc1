"""The ledger's side of a reconciliation: items as lines, with the time in which each may have been executed.

Reads only. The times of an execution are looked up in the trail for those lines alone that no statement row explains:
reading a million histories to compare amounts would be waste.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import Any, Final

import orjson

from payonce.core.durations import duration_us
from payonce.core.errors import ConfigError
from payonce.core.events import from_iso
from payonce.core.keys import KeyFormat, KeyFormatName, KeyMaker
from payonce.core.model import Batch, Item, OpenIntent
from payonce.core.states import ItemEvent, ItemState
from payonce.ledger.protocol import Ledger
from payonce.reconcile.model import LedgerLine

ADOPTED: Final = "ADOPT"
_PAGE: Final = 1000
_OPEN: Final = (ItemState.PENDING, ItemState.UNKNOWN)
# Where nobody declared how long an unanswered call may go on, absence proves something only after this long.
_LONGEST_EXECUTION_US: Final = 3_600_000_000
# A history of its own costs about as much as so many events in one pass over the trail.
_A_HISTORY: Final = 20


def ledger_lines(ledger: Ledger, batch: Batch) -> list[LedgerLine]:
    """All items of a batch in input order. Open items have their key and the time in which they may have been executed;
    committed ones the time at which the ledger last heard of them."""
    return [line for page in _pages(ledger, batch.spec.id) for line in lines_of(ledger, batch, page)]


def lines_of(ledger: Ledger, batch: Batch, page: Sequence[Item]) -> list[LedgerLine]:
    """Some items as lines."""
    longest = max_execution_us(batch)
    open_ns = [item.n for item in page if item.state in _OPEN]
    intents = {intent.item.n: intent for intent in ledger.open_intents(batch.spec.id, open_ns)} if open_ns else {}
    return [_line(item, intents.get(item.n), longest) for item in page]


def pages_of(ledger: Ledger, batch: Batch, numbers: Set[int]) -> Iterator[list[Item]]:
    """Some items of a batch by number, page by page, none of the others kept."""
    for page in _pages(ledger, batch.spec.id):
        found = [item for item in page if item.n in numbers]
        if found:
            yield found


def _pages(ledger: Ledger, batch: str) -> Iterator[Sequence[Item]]:
    after: int | None = 0
    while after is not None:
        page = ledger.items(batch, after_n=after, limit=_PAGE)
        yield page.items
        after = page.next_n


def _line(item: Item, intent: OpenIntent | None, longest_us: int) -> LedgerLine:
    committed = item.state is ItemState.COMMITTED
    line = LedgerLine(
        item.n, item.id, item.target, item.state, item.settlement, item.reference if committed else None,
        asked=item.money, billed=item.billed if committed else None, settled_us=item.updated_us,
        latest_us=item.updated_us if committed else None, generation=item.generation,
    )  # fmt: skip
    if intent is None:
        return line
    if intent.request is not None and intent.request.method == ADOPTED:
        # An earlier run started it, at a time that only its log may know; if it does not, at any time before the adoption.
        started = next((from_iso(value) for name, value in intent.request.headers if name == "Started-At"), None)
        latest = intent.first_sent_us if started is None else started
        return replace(line, earliest_us=started or 0, latest_us=latest + longest_us)
    latest = max(intent.deadline_us, intent.send_by_us + longest_us)
    keys = (intent.key,) if intent.key else ()
    return replace(line, keys=keys, earliest_us=intent.first_sent_us, latest_us=latest)


def max_execution_us(batch: Batch) -> int:
    """After how long an unanswered call of the batch can no longer start executing, as its sealed settings declare."""
    provider = batch.spec.config.get("provider", {})
    declared = provider.get("max_execution") if isinstance(provider, dict) else None
    return duration_us(str(declared)) if declared is not None else _LONGEST_EXECUTION_US


def with_times(ledger: Ledger, batch: str, lines: Sequence[LedgerLine], places: Sequence[int]) -> list[LedgerLine]:
    """The lines, those at some places with the time in which they were executed: from the first intent to the commit.

    An item that was taken over from elsewhere has no intent, and so no earliest time: its absence proves nothing.
    """
    result = list(lines)
    wanted = {lines[place].item: place for place in places if lines[place].committed}
    if not wanted:
        return result
    times: dict[str, tuple[int | None, int | None]] = {}
    for body in _histories(ledger, batch, list(wanted)):
        item = body.get("item")
        if item not in wanted:
            continue
        first, last = times.get(item, (None, None))
        at = from_iso(str(body["at"]))
        if body["type"] == ItemEvent.INTENT.value:
            first = at if first is None else first
        elif body["type"] == ItemEvent.COMMIT.value:
            last = at
        times[item] = (first, last)
    for item, (first, last) in times.items():
        place = wanted[item]
        result[place] = replace(lines[place], earliest_us=first, latest_us=last or lines[place].latest_us)
    return result


def _histories(ledger: Ledger, batch: str, items: Sequence[str]) -> Iterator[dict[str, Any]]:
    if len(items) * _A_HISTORY <= ledger.info().events:
        for item in items:
            yield from _events(ledger, batch, item)
    else:
        yield from _events(ledger, batch, None)


def _events(ledger: Ledger, batch: str, item: str | None) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        page = ledger.events(batch, item=item, after_seq=after, limit=_PAGE)
        for event in page:
            yield orjson.loads(event.body)
        if len(page) < _PAGE:
            return
        after = page[-1].seq


def with_keys(batch: Batch, lines: Sequence[LedgerLine], sample: str) -> list[LedgerLine]:
    """The lines with all keys they may have been sent under, derived again in the format of a key of the statement.

    A key is a digest of what the item is, so one that agrees is proof, whoever derives it.
    """
    made = _format(sample)
    if made is None:
        return list(lines)
    spec = batch.spec
    maker = KeyMaker(made, namespace=spec.namespace, batch=spec.id, operation=spec.operation)
    steps = tuple(dict.fromkeys(("call", spec.operation)))

    def keys(line: LedgerLine) -> tuple[str, ...]:
        generations = range(line.generation + 1)
        derived = (maker.key(line.item, step=step, generation=g) for step in steps for g in generations)
        return tuple(dict.fromkeys((*line.keys, *derived)))

    return [replace(line, keys=keys(line)) for line in lines]


def _format(sample: str) -> KeyFormat | None:
    shapes: tuple[KeyFormatName, ...] = ("uuid", "bytes32", "hex", "base32")
    for name in shapes:
        try:
            made = KeyFormat(name, max_length=len(sample))
        except ConfigError:  # shorter than any key of this format
            continue
        if made.fits(sample):
            return made
    return None
