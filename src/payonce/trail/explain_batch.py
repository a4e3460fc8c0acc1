"""Replaying the events about a batch as a whole: which states it can be in by them, its limits, its calls, its findings.

Whether an interruption changed the state depends on who else was working on the batch, which the events tell only in
part; so the replay follows every state that is possible, and a stored state outside of these is a fault.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import orjson

from payonce.core.events import plain
from payonce.core.states import BatchState
from payonce.ledger.rows import BatchRow, load
from payonce.trail.said import Said

_B = BatchState
_OVER: Final = frozenset({_B.CANCELLED, _B.FINISHED})


class BatchStory:
    """What the events say of one batch. ``sealed`` is its first event, once it has passed."""

    __slots__ = ("amended", "findings", "limits", "may_be", "name", "sealed", "sent")

    def __init__(self, row: BatchRow) -> None:
        self.name = row.id
        self.may_be: frozenset[BatchState] = frozenset()
        self.sent = 0
        self.limits: bytes | None = None
        self.findings: Counter[tuple[str | None, str]] = Counter()
        self.sealed = 0
        self.amended = False

    def take(self, said: Said) -> None:
        """The next event that is about the batch and not about the state of an item."""
        match said.type:
            case "sealed":
                self.sealed, self.may_be = said.seq, frozenset({_B.SEALED})
            case "started":
                self.may_be = frozenset({_B.RUNNING})
            case "resumed":
                self.may_be = frozenset({_B.RUNNING, _B.SEALED, _B.INTERRUPTED})
            case "paused":
                self.may_be = frozenset({_B.PAUSED})
            case "cancelled":
                self.may_be = frozenset({_B.CANCELLED})
            case "stopped":
                self.may_be = frozenset(s if s in _OVER or s is _B.PAUSED else _B.STOPPED for s in self.may_be)
            case "interrupted":
                self.may_be |= {_B.INTERRUPTED}
            case "halted":
                self.may_be |= {_B.HALTED}
            case "finished":
                self.may_be = frozenset({_B.FINISHED})
            case "configured":
                self.limits = bytes(said.limits)
            case "finding":
                self.findings[said.item, said.cls or ""] += 1
            case "amended":
                self.amended = True
            case _:
                pass

    def faults(self, row: BatchRow, findings: list[tuple[str | None, str]]) -> list[str]:
        """What of the stored batch its events do not explain, in words."""
        found = []
        if not self.sealed:
            return [f"batch {row.id} has no event that sealed it"]
        if row.state not in self.may_be:
            could = " or ".join(sorted(state.value for state in self.may_be))
            found.append(f"batch {row.id} is {row.state}, by its events it is {could}")
        if row.sent != self.sent:
            found.append(f"batch {row.id} counts {row.sent} calls, its events {self.sent}")
        stored = _sorted(plain(load(row.limits)))
        if self.limits is not None and stored != _sorted(orjson.loads(self.limits)):
            found.append(f"the limits of batch {row.id} are not those of its last event that set them")
        elif self.limits is None and load(row.limits):
            found.append(f"batch {row.id} has limits that no event set")
        for (item, kind), count in (Counter(findings) - self.findings).items():
            found.append(f"batch {row.id} has {count} finding {kind} of {item or 'the batch'} that no event opened")
        for (item, kind), count in (self.findings - Counter(findings)).items():
            found.append(f"batch {row.id} lost {count} finding {kind} of {item or 'the batch'}")
        return found


def _sorted(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
