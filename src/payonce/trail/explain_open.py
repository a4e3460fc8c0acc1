"""Replaying what the events say of an open intent: the key, the request, since when it is out, what was learned of it.

Few items are open at a time, so their events are read once more, with everything in them. Not in any event are the times
by which a call will have left and been given up (``send_by_us``, ``deadline_us``), and headers besides that of the key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from payonce.core.events import from_iso
from payonce.core.model import Request
from payonce.core.states import TRANSITIONS, ItemEvent
from payonce.ledger.clockset import carry_over
from payonce.ledger.requests import request_digest
from payonce.ledger.rows import (
    ALREADY_DONE,
    BURNT,
    FINAL,
    IN_PROGRESS,
    NO_INTENT,
    UNKNOWN,
    BatchRow,
    ItemRow,
    OpenRow,
    load,
)
from payonce.ledger.trail_port import PLACE_MASK, PLACE_SHIFT, Opened, TrailReads

# More open items than these are found in one pass over all events.
_FEW: Final = 1000
_E: Final = ItemEvent
_NO_REQUEST: Final = request_digest(Request("", ""))
_FLAGS: Final = {"burnt": BURNT, "final": FINAL, "in_progress": IN_PROGRESS, "already_done": ALREADY_DONE}
# Of an open intent, with the names under which they are reported.
_COMPARED: Final = {
    "fence": "worker",
    "key": "key",
    "digest": "request",
    "first_sent_us": "start of its key's window",
    "sent_us": "time of its last intent",
    "seen_us": "time of its last answer",
    "flags": "evidence",
    "lookups": "number of look-ups",
    "lookup_failures": "number of failed look-ups",
    "retry_at_us": "time of its next try",
}
Said = Mapping[str, Any]


class OpenStory:
    """What the events of one item came to, as far as its open intent goes."""

    def __init__(self, n: int, target: str) -> None:
        self.item = ItemRow(n, "", target, None, None, "{}")
        self.held: OpenRow | None = None

    def take(self, said: Said) -> None:
        """The item's next event; one that is not about its state is left aside."""
        try:
            event = ItemEvent(said["type"])
        except ValueError:
            return
        item, held, at_us = self.item, self.held, from_iso(said["at"])
        after = TRANSITIONS.get((item.state, event))
        if after is None:
            return  # the replay names it
        if event in (_E.INTENT, _E.RESEND):
            self._intend(said, at_us)
        elif event is _E.TAKEOVER and held is not None:
            held.fence = said["worker"]
            carry_over(item, held, set_us=said.get("clock_set_us", 0))
        elif after.holds_money and held is not None:
            _learn(held, event, said, at_us)
        if "code" in said:
            item.code, item.message = said["code"], said.get("message")
        if after.holds_money and self.held is None:
            self._hold(said, at_us)
        if not after.holds_money:
            self.held = None
            item.first_sent_us = from_iso(said["first_sent"]) if "first_sent" in said else 0
        item.state = after

    def _intend(self, said: Said, at_us: int) -> None:
        held, item = self.held, self.item
        sent_us = from_iso(said["sent"]) if "sent" in said else at_us
        if held is None:
            held = self.held = OpenRow(item.n, item.target, said.get("worker", 0), None, b"", 0, 0, 0, 0)
            first_us = item.first_sent_us or sent_us
        else:
            first_us = sent_us if held.flags & NO_INTENT else held.first_sent_us
        held.flags &= BURNT
        held.key, held.digest = said.get("key"), bytes.fromhex(said["request"])
        held.first_sent_us, held.sent_us = first_us, sent_us
        held.seen_us = held.code = held.message = None
        held.lookup_failures = held.retry_at_us = 0
        item.code = item.message = None

    def _hold(self, said: Said, at_us: int) -> None:
        """A planned item became unknown: its intent is for no call, it holds the money."""
        item = self.item
        sent_us = from_iso(said["sent"]) if "sent" in said else at_us
        target = None if said.get("target_busy") else item.target
        flags = NO_INTENT | UNKNOWN
        self.held = OpenRow(item.n, target, 0, None, _NO_REQUEST, sent_us, sent_us, 0, 0, flags=flags)
        self.held.code, self.held.message = item.code, item.message


def _learn(held: OpenRow, event: ItemEvent, said: Said, at_us: int) -> None:
    """What was learned of a call while the item stays open."""
    if event is _E.STEP_DONE:
        held.flags, held.lookup_failures = NO_INTENT, 0
        held.seen_us = held.code = held.message = None
    else:
        held.flags |= sum(flag for name, flag in _FLAGS.items() if said.get(name))
        if event is _E.UNRESOLVED and not said.get("in_progress"):
            held.flags &= ~IN_PROGRESS
        # What a call answered stays, whatever becomes of look-ups.
        if "code" in said and event is not _E.LOOKUP:
            held.code, held.message = said["code"], said.get("message")
        held.lookups += said.get("lookups", 0)
        held.lookup_failures += said.get("lookup_failures", 0)
    if event is _E.UNDECIDED:
        held.flags |= UNKNOWN
    if said.get("seen"):
        held.seen_us = from_iso(said["seen_at"]) if "seen_at" in said else at_us
    held.retry_at_us = from_iso(said["wait_until"]) if "wait_until" in said else 0


def open_faults(reads: TrailReads, batch: BatchRow, open_items: Collection[int]) -> Iterator[tuple[int, str]]:
    """Item number and words, for each open intent that is not as its events say."""
    stored = {opened.row.n: opened for opened in reads.opens(batch.number)}
    for n in sorted(stored.keys() - open_items):
        yield n, "it has an open intent, by its events it has none"
    for n in sorted(open_items - stored.keys()):
        yield n, "its open intent is gone"
    stories = {n: OpenStory(n, stored[n].target) for n in sorted(stored.keys() & open_items)}
    for n, body in _events(reads, batch.number, stories.keys()):
        stories[n].take(orjson.loads(body))
    header = _key_header(batch)
    for n, story in stories.items():
        yield from ((n, text) for text in _differences(stored[n], story, targets=batch.targets, header=header))


def _events(reads: TrailReads, number: int, ns: Collection[int]) -> Iterable[tuple[int, bytes]]:
    if len(ns) <= _FEW:
        return ((n, body) for n in ns for _, body in reads.about(number, n))
    filed = reads.filed(1, reads.head().size)
    return (
        (place & PLACE_MASK, body)
        for _, place, body, _ in filed
        if place is not None and place >> PLACE_SHIFT == number and place & PLACE_MASK in ns
    )


def _differences(opened: Opened, story: OpenStory, *, targets: bool, header: str | None) -> Iterator[str]:
    row, told = opened.row, story.held
    if told is None:
        yield "it has an open intent, by its events it has none"
        return
    for name, words in _COMPARED.items():
        if getattr(row, name) != getattr(told, name):
            yield f"the {words} of its open intent is not what its events say"
    if (row.code or None, row.message or None) != (told.code or None, told.message or None):
        yield "code or message of its open intent are not those of its events"
    # Where items are their own targets, a store may leave it out.
    if row.target != told.target and (targets or row.target is not None):
        yield "its open intent holds another target than its own"
    yield from _request_differences(row, told, header)
    if not row.sent_us <= row.send_by_us <= row.deadline_us:
        yield "the times of its open intent are in no order"


def _request_differences(row: OpenRow, told: OpenRow, header: str | None) -> Iterator[str]:
    """What of the request is not as it went out. Between two steps that of the step before is there, or none."""
    request = row.request
    digest = b"" if request is None else request_digest(request)
    if request is None or (digest != told.digest and not (told.flags & NO_INTENT and digest == _NO_REQUEST)):
        yield "the request of its open intent is not the one that went out"
    elif digest == _NO_REQUEST:
        if request.headers:
            yield "its open intent has no request, and headers"
    elif header is not None and told.key is not None and _header(request, header) != [told.key]:
        yield "the request of its open intent does not carry its key"


def _header(request: Request, name: str) -> list[str]:
    return [value for other, value in request.headers if other.lower() == name]


def _key_header(batch: BatchRow) -> str | None:
    """The name of the header that the provider's key travels in, by what the batch was sealed with; None where it is none,
    or an earlier payonce did not note it."""
    carrier = str(load(batch.spec).get("config", {}).get("key_carrier", ""))
    return carrier.removeprefix("header ").lower() if carrier.startswith("header ") else None
