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
from payonce.trail.seals import Sealing

_B = BatchState
_OVER: Final = frozenset({_B.CANCELLED, _B.FINISHED})
# What binds a batch, and is in the event that sealed it.
_BOUND: Final = ("operation", "provider", "namespace", "account", "mode")


class BatchStory:
    """What the events say of one batch. ``sealed`` is its first event, once it has passed."""

    __slots__ = ("findings", "items", "limits", "may_be", "name", "seal", "sealed", "sealings", "sent", "spec")

    def __init__(self, row: BatchRow) -> None:
        self.name = row.id
        self.may_be: frozenset[BatchState] = frozenset()
        self.sent = 0
        self.limits: bytes | None = None
        self.findings: Counter[tuple[str | None, str]] = Counter()
        self.sealed = 0
        self.sealings: list[Sealing] = []
        self.items = 0
        self.seal: str | None = None
        self.spec: dict[str, str | None] = {}

    def take(self, said: Said) -> None:
        """The next event that is about the batch and not about the state of an item."""
        match said.type:
            case "sealed":
                self._seal(said)
                self.spec = {name: getattr(said, name) for name in _BOUND}
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
                self._seal(said)
            case _:
                pass

    def _seal(self, said: Said) -> None:
        """Sealed for the first time, or grown: a finished batch is open again then."""
        if not self.sealed:
            self.sealed, self.may_be = said.seq, frozenset({_B.SEALED})
        self.may_be = frozenset(_B.INTERRUPTED if s is _B.FINISHED else s for s in self.may_be)
        self.items += said.items
        # The first amendment of a batch that was never sealed begins with an empty seal.
        before = None if said.type == "sealed" else self.seal or ""
        self.sealings.append(Sealing(said.seq, said.items, said.seal or "", before, said.added))
        self.seal = said.seal

    def faults(self, row: BatchRow, findings: list[tuple[str | None, str]]) -> list[str]:
        """What of the stored batch its events do not explain, in words."""
        found = []
        if not self.sealed:
            return [f"batch {row.id} has no event that sealed it"]
        if row.state not in self.may_be:
            could = " or ".join(sorted(state.value for state in self.may_be))
            found.append(f"batch {row.id} is {row.state}, by its events it is {could}")
        if (row.seal, row.items) != (self.seal, self.items):
            found.append(f"the seal or the number of items of batch {row.id} is not that of its last sealing event")
        spec = load(row.spec)
        for name, value in self.spec.items():
            if spec.get(name) != value:
                found.append(f"batch {row.id} says {name} {spec.get(name)}, it was sealed with {value}")
        if bool(spec.get("targets")) != row.targets:
            found.append(f"batch {row.id} holds targets or does not, against what it was sealed with")
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
