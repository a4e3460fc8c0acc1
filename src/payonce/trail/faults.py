"""What a check of the trail can find wrong: a code, the event where there is one, and a sentence that names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

# Every code, and what it says. docs/how-to/verify-the-trail.md explains each, by a test.
CODES: Final[dict[str, str]] = {
    "changed": "an event is not what was hashed when it was written",
    "changed_block": "one of at most 256 events was changed together with its own hash",
    "removed": "events are missing",
    "inserted": "an event stands there that was never written by the ledger",
    "reordered": "an event stands in another place than it was written in",
    "misplaced": "an event is filed under another item or batch than it is about",
    "hashes_changed": "a kept hash inside the trail was changed; the events under it were not",
    "head_changed": "the head of the trail is not that of its events",
    "truncated": "the trail is shorter than a checkpoint says",
    "rewritten": "the trail's events are not those that a checkpoint was signed over",
    "other_ledger": "a checkpoint, or the first event, belongs to another ledger",
    "not_canonical": "an event is not in canonical form",
    "no_such_edge": "an event that could not happen in the state its item was in",
    "unexplained": "a state, an amount or a count that the events do not explain",
    "unreadable": "a row that no ledger writes: the check cannot go on behind it",
    "payload_changed": "a kept payload or output is not the one whose digest is in its event",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One finding. ``seq`` is the first event concerned and ``last`` the last, where it is about events."""

    code: str
    message: str
    seq: int | None = None
    last: int | None = None
    batch: str | None = None
    item: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The finding as ``payonce trail verify --json`` shows it."""
        return {
            "code": self.code,
            "message": self.message,
            "event": self.seq,
            "last_event": self.last if self.last is not None else self.seq,
            "batch": self.batch,
            "item": self.item,
        }
