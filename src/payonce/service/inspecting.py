"""Looking at a ledger: batches, items, histories, rate and time left. Changes nothing, calls nobody.

Everything comes from the ledger's own counts; nothing is remembered between two calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from payonce.core.errors import UsageError
from payonce.core.events import from_iso
from payonce.core.model import SECOND_US, Batch, Item, Status
from payonce.core.states import BatchState, ItemState
from payonce.ledger.protocol import Ledger
from payonce.service.open_findings import open_findings
from payonce.service.report import event_json, intent_json, item_json, next_step, status_json

_PAGE = 1000
_RECENT_EVENTS = 2000


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a batch moves: items settled a second, and the seconds left at that pace; None where nothing moves."""

    items_per_s: float | None
    seconds_left: float | None


def find_batch(ledger: Ledger, batch: str) -> Batch:
    """The batch. Raises UsageError, naming the nearest, where the ledger has none of that name."""
    found = ledger.batches(batch)
    if found:
        return found[0]
    names = [other.spec.id for other in ledger.batches()]
    if not names:
        raise UsageError(
            f"there is no batch {batch!r}: the ledger {ledger.info().url} is empty",
            code="unknown_batch",
            hint="payonce plan BATCH.toml seals one; --ledger URL names another ledger, or give the batch file's path",
        )
    from difflib import get_close_matches

    near = get_close_matches(batch, names, n=1)
    raise UsageError(
        f"there is no batch {batch!r} in {ledger.info().url}",
        code="unknown_batch",
        hint=(f"did you mean {near[0]!r}? " if near else "payonce status lists the batches; ")
        + "--ledger URL names another ledger, or give the batch file's path",
    )


def find_item(ledger: Ledger, batch: str, item: str) -> Item:
    """The item. Raises UsageError where the batch has none of exactly that id."""
    find_batch(ledger, batch)
    found = ledger.item(batch, item)
    if found is None:
        raise UsageError(
            f"batch {batch!r} has no item {item!r}",
            code="unknown_item",
            hint=f"ids are compared exactly, case and leading zeros included; payonce items {batch} lists them",
        )
    return found


def status(ledger: Ledger, batch: str) -> dict[str, Any]:
    """One batch in the JSON shape, with its pace."""
    from payonce.service import costs  # which uses this module

    find_batch(ledger, batch)
    now = ledger.status(batch)
    shown = {**with_pace(now, pace(ledger, now)), "findings_open": findings_open(ledger, batch)}
    return {**shown, "cost": costs.summary(ledger, now)}


def findings_open(ledger: Ledger, batch: str) -> int:
    """How many findings of a batch nobody has acknowledged or resolved, whatever opened them."""
    return len(open_findings(ledger.findings(batch)))


def with_pace(now: Status, at: Pace) -> dict[str, Any]:
    """A status in the JSON shape with rate (items a second) and seconds left."""
    shown = status_json(now)
    shown["rate"] = None if at.items_per_s is None else round(at.items_per_s, 3)
    shown["eta_seconds"] = None if at.seconds_left is None else round(at.seconds_left, 1)
    return shown


def batches(ledger: Ledger) -> dict[str, Any]:
    """All batches of the ledger, newest first."""
    return {
        "ledger": ledger.info().url,
        "batches": [
            {**status_json(ledger.status(found.spec.id)), "findings_open": findings_open(ledger, found.spec.id)}
            for found in ledger.batches()
        ],
    }


def pace(ledger: Ledger, now: Status) -> Pace:
    """The pace over the batch's latest events. None of a batch that nobody works on: it has no pace."""
    left = sum(now.count(state) for state in ItemState if state.is_open)
    if now.batch.state is not BatchState.RUNNING or not now.live_workers or left == 0:
        return Pace(None, None)
    head = ledger.info().events
    events = [
        event_json(e)
        for e in ledger.events(now.batch.spec.id, after_seq=max(0, head - _RECENT_EVENTS), limit=_RECENT_EVENTS)
    ]
    settled = [event for event in events if event.get("type") in ("commit", "refuse", "skip", "undecided")]
    times = [from_iso(str(event["at"])) for event in settled if "at" in event]
    if len(times) < 2 or times[-1] <= times[0]:
        return Pace(None, None)
    per_s = (len(times) - 1) * SECOND_US / (times[-1] - times[0])
    return Pace(per_s, left / per_s)


def items(
    ledger: Ledger, batch: str, *, states: Sequence[ItemState] = (), after_n: int = 0, limit: int | None = None
) -> Iterator[Item]:
    """The items in input order after some place, read page by page: memory does not grow with their number."""
    find_batch(ledger, batch)
    left = limit
    place: int | None = after_n
    while place is not None and left != 0:
        page = ledger.items(batch, states=states, after_n=place, limit=_PAGE if left is None else min(_PAGE, left))
        yield from page.items
        left = None if left is None else left - len(page.items)
        place = page.next_n


def show(ledger: Ledger, batch: str, item: str) -> dict[str, Any]:
    """One item, its open intent if there is one, what comes next, and all its events in sequence, in the JSON shape."""
    found = find_item(ledger, batch, item)
    events: list[dict[str, Any]] = []
    after = 0
    while True:
        page = ledger.events(batch, item=item, after_seq=after, limit=_PAGE)
        events.extend(event_json(event) for event in page)
        if len(page) < _PAGE:
            item_part = {**item_json(found), "fields": dict(found.fields)}
            opened = ledger.open_intents(batch, [found.n]) if found.state.holds_money else ()
            intent = intent_json(opened[0]) if opened else None
            return {"item": item_part, "intent": intent, "next": next_step(found, batch), "events": events}
        after = page[-1].seq
