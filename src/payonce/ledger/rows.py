"""The rows a ledger keeps, as plain mutable records: what the rules read and change and every store loads and saves.

JSON columns stay text here (a write never parses what it does not need); amounts are minor units and a currency, times
microseconds since the epoch. Nothing here leaves the package: callers get the frozen values of core.model.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from payonce.core.events import plain
from payonce.core.model import Actor, Batch, BatchSpec, Item, OpenIntent, Request, Worker
from payonce.core.money import Money
from payonce.core.states import BatchState, ItemState, Settlement
from payonce.ledger.forms import Form

Row = TypeVar("Row", "ItemRow", "OpenRow", "BatchRow", "WorkerRow")

# What was known of an open intent's latest call, and whether its item waits for a person (UNKNOWN).
BURNT: Final = 1
FINAL: Final = 2
IN_PROGRESS: Final = 4
ALREADY_DONE: Final = 8
NO_INTENT: Final = 16
UNKNOWN: Final = 32


@dataclass(slots=True)
class ItemRow:
    """One item. ``first_sent_us`` is kept only while the item is planned again under a key that was used before."""

    n: int
    id: str
    target: str
    minor: int | None
    currency: str | None
    fields: str
    state: ItemState = ItemState.PLANNED
    settlement: Settlement = Settlement.NONE
    generation: int = 0
    step: int = 0
    attempts: int = 0
    spent: int = 0
    not_before_us: int = 0
    reference: str | None = None
    billed_minor: int | None = None
    billed_currency: str | None = None
    code: str | None = None
    message: str | None = None
    carry: str = "{}"
    first_sent_us: int = 0
    updated_us: int = 0


@dataclass(slots=True)
class OpenRow:
    """The open intent of a pending or unknown item. ``request`` is set only where it is new and has to be stored."""

    n: int
    target: str | None
    fence: int
    key: str | None
    digest: bytes
    first_sent_us: int
    sent_us: int
    send_by_us: int
    deadline_us: int
    seen_us: int | None = None
    flags: int = 0
    code: str | None = None
    message: str | None = None
    lookups: int = 0
    lookup_failures: int = 0
    retry_at_us: int = 0
    hold_minor: int | None = None
    hold_currency: str | None = None
    request: Request | None = None


@dataclass(slots=True)
class BatchRow:
    """One batch, its counters and its place in the sweep and in the rate."""

    number: int
    id: str
    targets: bool
    spec: str
    seal: str
    items: int
    created_us: int
    first_seq: int
    state: BatchState = BatchState.SEALED
    reason: str | None = None
    reason_code: str | None = None
    hold: bool = False
    limits: str = "{}"
    started_us: int | None = None
    ended_us: int | None = None
    sent: int = 0
    lookups: int = 0
    rate_limited: int = 0
    refusals: int = 0
    consecutive: int = 0
    cursor: int = 0
    next_slot_ns: int = 0
    slow_until_us: int = 0
    pace_per_ks: int | None = None
    control: int = 0


@dataclass(slots=True)
class WorkerRow:
    """One worker. ``left_us`` is set when it left or was declared dead; its fence is worthless from then on."""

    fence: int
    batch: int
    actor: Actor
    joined_us: int
    lease_until_us: int
    left_us: int | None = None


@dataclass(slots=True)
class FindingRow:
    """One discrepancy about to be stored; the store numbers it."""

    batch: int
    n: int | None
    item: str | None
    kind: str
    data: str
    opened_us: int


@dataclass(slots=True)
class OutputRow:
    """What a committed call returned, and the answer fields kept with it."""

    n: int
    output: bytes | None
    kept: str | None


@dataclass(frozen=True, slots=True)
class PayloadRow:
    """What is kept of a payload by policy; ``seq`` is the event that holds its digest."""

    seq: int
    kind: str
    batch: int
    n: int
    digest: bytes
    body: bytes


class Entry(NamedTuple):
    """One event about to be appended: sequence, batch and item number (for the indexes), canonical bytes, mark; of one that
    was said in a known form, the form and what was put into it."""

    seq: int
    batch: int | None
    n: int | None
    body: bytes
    mark: int
    form: Form | None = None
    values: tuple[Any, ...] = ()


# Amounts by state and currency ("" for none): [items, minor units].
Tallies = dict[tuple[ItemState, str], list[int]]


_COLUMNS: Final = {
    kind: attrgetter(*(f.name for f in fields(kind))) for kind in (ItemRow, OpenRow, BatchRow, WorkerRow)
}


def columns_of(row: Row) -> tuple[Any, ...]:
    """A row's columns as they are now."""
    columns: tuple[Any, ...] = _COLUMNS[type(row)](row)
    return columns


def copy_of(row: Row) -> Row:
    """An independent copy: every column is a value that is never changed itself. A third of what ``copy.copy`` costs."""
    return type(row)(*_COLUMNS[type(row)](row))


def dump(value: Any) -> str:
    """A JSON value as compact text with sorted keys; what JSON cannot hold exactly becomes text."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str).decode()
    except TypeError:  # integers beyond 64 bits
        return orjson.dumps(plain(value), option=orjson.OPT_SORT_KEYS).decode()


def load(text: str) -> Any:
    """The value of a JSON column."""
    return {} if text == "{}" else orjson.loads(text)


def money(minor: int | None, currency: str | None) -> Money | None:
    """Money of two columns, None where there is none."""
    return None if minor is None or currency is None else Money.of_minor(minor, currency)


def as_item(row: ItemRow) -> Item:
    """The public value of an item's row. By position, in the order of ``Item``: names would double its price."""
    minor, billed = row.minor, row.billed_minor
    return Item(
        row.n,
        row.id,
        row.target,
        None if minor is None else money(minor, row.currency),
        load(row.fields),
        row.state,
        row.settlement,
        row.generation,
        row.step,
        row.attempts,
        row.spent,
        row.not_before_us,
        row.reference,
        None if billed is None else money(billed, row.billed_currency),
        row.code,
        row.message,
        load(row.carry),
        row.updated_us,
    )


def as_open(row: OpenRow, item: ItemRow, request: Request | None) -> OpenIntent:
    """The public value of an open intent; without key and request where the step has had no intent yet."""
    intended = not row.flags & NO_INTENT
    return OpenIntent(
        item=as_item(item),
        key=row.key if intended else None,
        request=request if intended else None,
        first_sent_us=row.first_sent_us,
        sent_us=row.sent_us,
        send_by_us=row.send_by_us,
        deadline_us=row.deadline_us,
        fence=row.fence,
        seen_us=row.seen_us,
        burnt=bool(row.flags & BURNT),
        final=bool(row.flags & FINAL),
        in_progress=bool(row.flags & IN_PROGRESS),
        already_done=bool(row.flags & ALREADY_DONE),
        code=row.code,
        message=row.message,
        lookups=row.lookups,
        lookup_failures=row.lookup_failures,
        retry_at_us=row.retry_at_us,
        intent=intended,
    )


def as_batch(row: BatchRow) -> Batch:
    """The public value of a batch's row."""
    return Batch(
        spec=BatchSpec(**orjson.loads(row.spec)),
        number=row.number,
        state=row.state,
        seal=row.seal,
        items=row.items,
        reason=row.reason,
        reason_code=row.reason_code,
        held=row.hold,
        limits=load(row.limits),
        created_us=row.created_us,
        started_us=row.started_us,
        ended_us=row.ended_us,
    )


def as_worker(row: WorkerRow, batch: BatchRow, *, now_us: int, others: int, steady_us: int = 0) -> Worker:
    """The public value of a worker: its lease, and what its batch asks of it now."""
    return Worker(
        batch=batch.id,
        fence=row.fence,
        lease_until_us=row.lease_until_us,
        now_us=now_us,
        state=batch.state,
        reason=batch.reason,
        limits=load(batch.limits),
        control=batch.control,
        slow_until_us=batch.slow_until_us,
        pace_per_ks=batch.pace_per_ks,
        others=others,
        steady_us=steady_us,
    )


def actor_fields(actor: Actor) -> dict[str, Any]:
    """An actor with everything that is known of it: how a worker is stored, and named when it joins."""
    more = (("boot", actor.boot), ("pid_start", actor.pid_start), ("steady_us", actor.steady_us))
    return signature(actor) | {name: value for name, value in more if value}


def signature(actor: Actor) -> dict[str, Any]:
    """An actor as it signs events: who, where, with what."""
    known = (("user", actor.user), ("host", actor.host), ("pid", actor.pid), ("program", actor.program))
    return {name: value for name, value in known if value}


@dataclass(slots=True)
class Saved:
    """What a flush hands to a store: rows to write, intents to open, change and close, and what hangs on them.

    ``begun`` items became pending by one intent of a worker each, the most frequent write: they have one attempt more,
    no code and message, and all the same time; nothing else of them has changed.
    ``committed`` items were executed over the amount asked: they have a reference and a settlement, what was billed is
    what was asked, no code and message, and the time; nothing else of them has changed.
    """

    begun: list[ItemRow] = field(default_factory=list)
    committed: list[ItemRow] = field(default_factory=list)
    items: list[ItemRow] = field(default_factory=list)
    opened: list[OpenRow] = field(default_factory=list)
    changed: list[OpenRow] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    outputs: list[OutputRow] = field(default_factory=list)
    findings: list[FindingRow] = field(default_factory=list)
    payloads: list[PayloadRow] = field(default_factory=list)

    def moved(self) -> list[ItemRow]:
        """All items but those that have only begun: for a store that writes every column of them anyway."""
        return [*self.committed, *self.items]
