"""Replaying the events about a batch as a whole: what it was sealed as, its states, its limits, its calls, its findings.

Events of an earlier payonce do not say whether an interruption changed the state, which depends on who else was working
on the batch; for these the replay follows every state that is possible, and a stored state outside of these is a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import orjson

from payonce.core.events import from_iso, plain
from payonce.core.keys import digest
from payonce.core.states import BatchState
from payonce.ledger.rows import BatchRow, load
from payonce.ledger.sealing import Sealings
from payonce.ledger.trail_port import FoundRow
from payonce.trail.explain_course import Counts, Course
from payonce.trail.said import Said

_B = BatchState
_OVER: Final = frozenset({_B.CANCELLED, _B.FINISHED})
# What binds a batch, and is in the event that sealed it.
_BOUND: Final = ("operation", "provider", "namespace", "account", "mode")


class _Found(NamedTuple):
    item: str | None
    kind: str
    data: bytes
    opened_us: int


class BatchStory:
    """What the events say of one batch. ``sealed`` is its first event, once it has passed."""

    __slots__ = (
        "bound",
        "counts",
        "course",
        "created_us",
        "exact",
        "findings",
        "limits",
        "may_be",
        "name",
        "sealed",
        "sealings",
        "spec",
    )

    def __init__(self, row: BatchRow, *, exact: bool) -> None:
        self.name, self.exact = row.id, exact
        self.may_be: frozenset[BatchState] = frozenset()
        self.course, self.counts = Course(), Counts()
        self.limits: bytes | None = None
        self.findings: list[_Found] = []
        self.sealed = self.created_us = 0
        self.sealings = Sealings()
        self.bound: dict[str, str | None] = {}
        self.spec: str | None = None

    def take(self, said: Said) -> None:
        """The next event that is about the batch and not about the state of an item."""
        match said.type:
            case "sealed" | "amended":
                self._seal(said)
            case "resealed":
                self.sealings.resealed(said.seq, of=said.event, seal=said.seal, unchecked=said.unchecked)
            case "configured":
                self.limits = bytes(said.limits)
            case "finding":
                self.findings.append(_Found(said.item, said.cls or "", bytes(said.data), from_iso(said.at)))
            case _:
                pass
        if self.exact:
            self.course.take(said)
        else:
            self._follow(said)

    def _follow(self, said: Said) -> None:
        """The states that are possible by the events of an earlier payonce."""
        match said.type:
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
            case _:
                pass

    def _seal(self, said: Said) -> None:
        """Sealed for the first time, or grown: a finished batch is open again then."""
        if not self.sealed:
            self.sealed, self.created_us, self.may_be = said.seq, from_iso(said.at), frozenset({_B.SEALED})
        self.may_be = frozenset(_B.INTERRUPTED if s is _B.FINISHED else s for s in self.may_be)
        self.sealings.sealed(
            said.seq,
            first=said.type == "sealed",
            items=said.items,
            seal=said.seal,
            added=said.added,
            at_us=from_iso(said.at),
        )
        if said.type == "sealed":
            self.bound = {name: getattr(said, name) for name in _BOUND}
        self.spec = said.spec or self.spec

    def faults(self, row: BatchRow, findings: Sequence[FoundRow]) -> list[str]:
        """What of the stored batch its events do not explain, in words."""
        if not self.sealed:
            return [f"batch {row.id} has no event that sealed it"]
        found = [*self._sealed_as(row), *self._limits(row), *self._findings(findings)]
        if self.exact:
            found += self.course.faults(row, self.counts)
        elif row.state not in self.may_be:
            could = " or ".join(sorted(state.value for state in self.may_be))
            found.append(f"batch {row.id} is {row.state}, by its events it is {could}")
        if row.sent != self.counts.sent:
            found.append(f"batch {row.id} counts {row.sent} calls, its events {self.counts.sent}")
        return found

    def _sealed_as(self, row: BatchRow) -> Iterator[str]:
        if (row.seal, row.items) != (self.sealings.seal, self.sealings.items):
            yield f"the seal or the number of items of batch {row.id} is not that of its last sealing event"
        if (row.first_seq, row.created_us) != (self.sealed, self.created_us):
            yield f"batch {row.id} says that another event than {self.sealed} sealed it, or at another time"
        spec = load(row.spec)
        for name, value in self.bound.items():
            if spec.get(name) != value:
                yield f"batch {row.id} says {name} {spec.get(name)}, it was sealed with {value}"
        if self.spec is not None and digest(row.spec.encode()) != self.spec:
            yield f"the settings of batch {row.id} are not those that it was sealed with"
        if bool(spec.get("targets")) != row.targets:
            yield f"batch {row.id} holds targets or does not, against what it was sealed with"

    def _limits(self, row: BatchRow) -> Iterator[str]:
        stored = _sorted(plain(load(row.limits)))
        if self.limits is not None and stored != _sorted(orjson.loads(self.limits)):
            yield f"the limits of batch {row.id} are not those of its last event that set them"
        elif self.limits is None and load(row.limits):
            yield f"batch {row.id} has limits that no event set"

    def _findings(self, rows: Sequence[FoundRow]) -> Iterator[str]:
        """Findings are opened in order, and stay as they were: one that says it is closed is none that the ledger wrote."""
        stored = [_Found(f.item, f.kind, _sorted(plain(load(f.data))), f.opened_us) for f in rows if f.state == "open"]
        lost, extra = Counter(self.findings), Counter(stored)
        lost.subtract(stored)
        extra.subtract(self.findings)
        for found, count in (+lost).items():
            yield f"batch {self.name} lost {count} finding {found.kind} of {found.item or 'the batch'}, or it was changed"
        for found, count in (+extra).items():
            about = found.item or "the batch"
            yield f"batch {self.name} has {count} finding {found.kind} of {about} that no event opened"
        if stored != self.findings and not +lost and not +extra:
            yield f"the findings of batch {self.name} are not in the order in which they were opened"


def _sorted(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
