"""What is asked of a ledger: the commands that move items, and what became of each.

A command names the event of the transition table it stands for; a store applies it only if the table has that edge
from the item's present state and, for a worker's command, if the item's fence is still the worker's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from payonce.core.model import Finding, Request
from payonce.core.money import Money
from payonce.core.states import ItemEvent, Settlement
from payonce.core.values import value


class Landed(StrEnum):
    """What became of a command. Anything but LANDED means that nothing was written for it."""

    LANDED = "landed"
    STALE = "stale"  # the item is in another state, generation or step, or belongs to another worker
    TARGET_BUSY = "target_busy"  # another pending or unknown item of the batch is on the same target
    OVER_BUDGET = "over_budget"  # committed + reserved + this would exceed the budget
    NOT_RUNNING = "not_running"  # the batch is paused, stopped or cancelled: no new intent


@value
class Intend:
    """A call may be sent from now on: INTENT (from planned) or RESEND (pending: same key and bytes, or a next step).

    ``reserve`` is the money held while it is pending; None means the item's own amount. For a RESEND of the same step
    the stored key and request stand, and ``key`` and ``request`` repeat them; for a next step they are new and start
    a new window. The window of a key starts at the ledger's time of the first intent with that key, or where its clock was
    set forward at ``asked_us``: its time as the worker's steady clock carries it on.
    """

    n: int
    event: ItemEvent
    generation: int
    step: int
    key: str | None
    request: Request
    send_by_us: int
    deadline_us: int
    asked_us: int = 0
    reserve: Money | None = None
    new_key: bool = True
    data: Mapping[str, Any] = field(default_factory=dict)
    payloads: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopBatch:
    """Stops the batch in the same transaction: no later intent lands. ``hold``: only an operator may resume it."""

    code: str
    message: str
    hold: bool = False


@value
class Change:
    """Anything that becomes of an item other than an intent.

    ``data`` goes into the event's body (canonical JSON values; no secrets, no floats). ``spent`` is added to the
    attempts that count. ``generation`` is the new generation where proof allows one. For UNRESOLVED and LOOKUP the
    flags are kept with the open intent (see OpenIntent); ``seen`` marks that an answer or error was seen: now, or at
    ``seen_us`` by the ledger's time as the worker carries it on, where that is later.
    ``not_before_us`` delays a planned item, ``retry_at_us`` a pending one. ``output`` is stored with the commit.
    ``payloads`` are what the policy keeps of the call's bodies, by kind: stored beside the event, which holds their digests.
    """

    n: int
    event: ItemEvent
    data: Mapping[str, Any] = field(default_factory=dict)
    spent: int = 0
    code: str | None = None
    message: str | None = None
    reference: str | None = None
    billed: Money | None = None
    settlement: Settlement | None = None
    kept: Mapping[str, Any] | None = None
    carry: Mapping[str, Any] | None = None
    output: bytes | None = None
    generation: int | None = None
    not_before_us: int = 0
    seen: bool = False
    seen_us: int = 0
    burnt: bool = False
    final: bool = False
    in_progress: bool = False
    already_done: bool = False
    retry_at_us: int = 0
    lookups: int = 0
    lookup_failures: int = 0
    rate_limited: int = 0
    findings: tuple[Finding, ...] = ()
    stop: StopBatch | None = None
    payloads: Mapping[str, bytes] = field(default_factory=dict)


Command = Intend | Change


class BatchCommand(StrEnum):
    """What moves a batch. Each is an event of the same meaning in the trail."""

    START = "started"
    PAUSE = "paused"
    RESUME = "resumed"
    CANCEL = "cancelled"
    STOP = "stopped"
    INTERRUPT = "interrupted"
    HALT = "halted"
    FINISH = "finished"
    CONFIGURE = "configured"
    SLOW = "slowed"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Control:
    """A change to a batch as a whole. ``limits`` with CONFIGURE; ``slow_until_us`` and ``pace_per_ks`` with SLOW;
    ``findings`` with NOTE, stored and in the trail in the same transaction."""

    command: BatchCommand
    reason: str | None = None
    code: str | None = None
    hold: bool = False
    limits: Mapping[str, Any] | None = None
    slow_until_us: int = 0
    pace_per_ks: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
