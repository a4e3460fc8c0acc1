"""What the events say of a batch's course: its state, why, since when, and what its items' events add up to."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final

from payonce.core.events import from_iso
from payonce.core.states import BatchState
from payonce.ledger.rows import BatchRow
from payonce.trail.said import Said, never_left

_B: Final = BatchState
_OVER: Final = (_B.CANCELLED, _B.FINISHED)


class Counts:
    """What the events of a batch's items add up to. Counts of parts of the events add up to those of all."""

    __slots__ = ("committed", "lookups", "rate_limited", "refused", "sent")

    def __init__(self) -> None:
        self.sent = 0
        self.lookups = 0
        self.rate_limited = 0
        # The events with which workers said no, and the last one with which one of them said yes.
        self.refused = array("Q")
        self.committed = 0

    def take(self, said: Said) -> None:
        """The next event about the state of an item."""
        if said.worker is not None:
            match said.type:
                case "intent" | "resend":
                    self.sent += 1
                case "refuse":
                    self.refused.append(said.seq)
                case "commit":
                    self.committed = said.seq
        if never_left(said):
            self.sent -= 1  # counted with its intent, but no byte of it left
        self.lookups += said.lookups
        self.rate_limited += said.rate_limited

    def add(self, *, sent: int, lookups: int, rate_limited: int, refused: bytes, committed: int) -> None:
        """What another part of the events came to."""
        self.sent += sent
        self.lookups += lookups
        self.rate_limited += rate_limited
        self.refused = array("Q", sorted([*self.refused, *array("Q", refused)]))
        self.committed = max(self.committed, committed)

    def refused_since(self, seq: int) -> int:
        """How often a worker said no behind an event."""
        return len(self.refused) - bisect_right(self.refused, seq)


class Course:
    """The course of a batch whose events say all of it. Where an event could mean more than one thing, it says which."""

    def __init__(self) -> None:
        self.state: BatchState | None = None
        self.reason: str | None = None
        self.code: str | None = None
        self.hold = False
        self.started_us: int | None = None
        self.ended_us: int | None = None
        self.slow_until_us = 0
        self.pace_per_ks: int | None = None
        self.control = 0
        self.since = 0  # the event from which on refusals count

    def take(self, said: Said) -> None:
        """The next event about the batch."""
        at_us = from_iso(said.at)
        match said.type:
            case "sealed" | "amended":
                if self.state in (None, _B.FINISHED):
                    self.state = _B.SEALED if self.state is None else _B.INTERRUPTED
                    self.ended_us = None
                return
            case "started" | "resumed":
                self._go(said, at_us)
            case "paused" | "cancelled":
                self._hold_still(said, at_us)
            case "stopped":
                self._stop(said)
                return
            case "interrupted" | "halted":
                self._break_off(said, at_us)
            case "finished":
                self.state, self.ended_us, self.reason, self.code = _B.FINISHED, at_us, None, None
            case "slowed":
                self.slow_until_us = max(self.slow_until_us, said.slow_until_us)
                if said.pace_per_ks is not None:
                    self.pace_per_ks = said.pace_per_ks or None
            case "configured":
                pass
            case _:
                return
        self.control += 1

    def _go(self, said: Said, at_us: int) -> None:
        self.state = _B.RUNNING if said.type == "started" else BatchState(said.state or "")
        if said.type == "started" and self.started_us is None:
            self.started_us = at_us
        self.hold, self.reason, self.code, self.ended_us = False, None, None, None
        self.since = said.seq

    def _hold_still(self, said: Said, at_us: int) -> None:
        if said.type == "cancelled" and self.state is not _B.CANCELLED:
            self.ended_us = at_us
        self.state = BatchState(said.type)
        self.reason, self.code = said.reason, said.code or said.type

    def _stop(self, said: Said) -> None:
        """One that is paused stays paused, one that is over stays over."""
        if self.state in _OVER:
            return
        if self.state is not _B.PAUSED:
            self.state = _B.STOPPED
        self.reason, self.code = said.message, said.code
        self.hold = self.hold or said.hold
        self.control += 1

    def _break_off(self, said: Said, at_us: int) -> None:
        """A run ended; or an item of a finished batch is planned again, which is told in a message. Where others work on,
        nothing comes of it."""
        if said.message is not None and self.state is _B.FINISHED:
            self.state, self.reason, self.code, self.ended_us = _B.INTERRUPTED, said.message, said.code, None
        elif self.state is _B.RUNNING and said.state == said.type:
            self.state, self.ended_us = BatchState(said.type), at_us
            self.reason, self.code = said.reason, said.code

    def faults(self, row: BatchRow, counts: Counts) -> Iterator[str]:
        """What of the stored batch is not what the events came to, in words."""
        stored_and_told: dict[str, tuple[Any, Any]] = {
            "state": (row.state, self.state),
            "reason": (row.reason or None, self.reason or None),
            "code of its reason": (row.reason_code or None, self.code or None),
            "hold": (row.hold, self.hold),
            "start": (row.started_us, self.started_us),
            "end": (row.ended_us, self.ended_us),
            "pause after a rate limit": (row.slow_until_us, self.slow_until_us),
            "pace": (row.pace_per_ks, self.pace_per_ks),
            "number of controls": (row.control, self.control),
            "number of look-ups": (row.lookups, counts.lookups),
            "number of rate limits": (row.rate_limited, counts.rate_limited),
            "number of refusals since the start": (row.refusals, counts.refused_since(self.since)),
            "number of refusals in a row": (
                row.consecutive,
                counts.refused_since(max(self.since, counts.committed)),
            ),
        }
        for what, (stored, told) in stored_and_told.items():
            if stored != told:
                yield f"the {what} of batch {row.id} is {stored}, by its events it is {told}"
