"""Between SQLite's columns and the ledger's rows: the one place that knows the order of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from payonce.core.model import Actor, Request
from payonce.core.states import BatchState, ItemState, Settlement
from payonce.ledger.merkle import Head, unpack
from payonce.ledger.rows import BatchRow, ItemRow, OpenRow, Tallies, WorkerRow, actor_fields, dump
from payonce.ledger.trail_port import Opened

STATES: Final = tuple(ItemState)
SETTLEMENTS: Final = tuple(Settlement)
STATE_CODE: Final = {state: code for code, state in enumerate(STATES)}
SETTLEMENT_CODE: Final = {settlement: code for code, settlement in enumerate(SETTLEMENTS)}
SHIFT: Final = 32
MASK: Final = (1 << SHIFT) - 1


def place(number: int, n: int = 0) -> int:
    """Where item ``n`` of a batch lives; of the batch itself for 0."""
    return number << SHIFT | n


def to_head(row: Sequence[Any]) -> Head:
    """The head of the trail from its columns."""
    size, last_us, last_leaf, peaks = row
    return Head(size, unpack(peaks), last_leaf, last_us)


def to_item(row: Sequence[Any]) -> ItemRow:
    """An item from the columns of ``rows``, ``planned_after`` and ``items``."""
    n, item, target, minor, currency, fields, state, settlement, *rest = row
    return ItemRow(n, item, target, minor, currency, fields, STATES[state], SETTLEMENTS[settlement], *rest)


def item_columns(row: ItemRow, base: int) -> tuple[Any, ...]:
    """The parameters of ``save_item``. Texts that are not there go as empty ones, which the statement turns into NULL:
    the driver looks for an adapter for every None and every bytes it binds, which costs more than the row."""
    return (
        STATE_CODE[row.state],
        SETTLEMENT_CODE[row.settlement],
        row.generation,
        row.step,
        row.attempts,
        row.spent,
        row.not_before_us,
        row.reference or "",
        row.billed_minor,
        row.billed_currency or "",
        row.code or "",
        row.message or "",
        "" if row.carry == "{}" else row.carry,
        row.first_sent_us,
        row.updated_us,
        base | row.n,
    )


def to_open(row: Sequence[Any]) -> OpenRow:
    """An open intent from the columns of ``opens``."""
    return OpenRow(*row)


def to_opened(row: Sequence[Any]) -> Opened:
    """An open intent with its request and its item's target, from the columns of ``opens`` of the trail."""
    opened = to_open(row[:18])
    opened.request = to_request(row[18:22])
    return Opened(opened, row[22])


def open_columns(row: OpenRow, *, base: int, targets: bool) -> tuple[Any, ...]:
    """The parameters of ``open_intent``; the target only where a batch has targets, so that it is held."""
    assert row.request is not None, "a new intent comes with its request"
    return (
        base | row.n,
        row.target or "" if targets else "",
        row.fence,
        row.key,
        bytearray(row.digest),
        row.first_sent_us,
        row.sent_us,
        row.send_by_us,
        row.deadline_us,
        row.hold_minor,
        row.hold_currency,
        *request_columns(row.request),
    )


def change_columns(row: OpenRow, base: int) -> tuple[Any, ...]:
    """The parameters of ``change_intent``."""
    return (
        row.fence,
        row.first_sent_us,
        row.sent_us,
        row.send_by_us,
        row.deadline_us,
        row.seen_us,
        row.flags,
        row.code,
        row.message,
        row.lookups,
        row.lookup_failures,
        row.retry_at_us,
        row.hold_minor,
        row.hold_currency,
        base | row.n,
    )


def request_columns(request: Request) -> tuple[str, str, str, bytearray]:
    """Method, path, headers and body as stored."""
    headers = "[]" if not request.headers else dump(request.headers)
    return request.method, request.path, headers, bytearray(request.body)


def to_request(row: Sequence[Any]) -> Request:
    """The inverse of ``request_columns``."""
    method, path, headers, body = row
    return Request(method, path, body, tuple((name, value) for name, value in orjson.loads(headers)))


def to_batch(row: Sequence[Any]) -> BatchRow:
    """A batch from its columns."""
    number, name, targets, *middle = row
    spec, seal, items, created_us, first_seq, state, reason, reason_code, hold, *rest = middle
    return BatchRow(
        number,
        name,
        bool(targets),
        spec,
        seal,
        items,
        created_us,
        first_seq,
        BatchState(state),
        reason,
        reason_code,
        bool(hold),
        *rest,
    )


def batch_columns(row: BatchRow) -> tuple[Any, ...]:
    """The parameters of ``save_batch``, without the number at the end."""
    return (
        row.spec,
        row.seal,
        row.items,
        row.state.value,
        row.reason,
        row.reason_code,
        int(row.hold),
        row.limits,
        row.started_us,
        row.ended_us,
        row.sent,
        row.lookups,
        row.rate_limited,
        row.refusals,
        row.consecutive,
        row.cursor,
        row.next_slot_ns,
        row.slow_until_us,
        row.pace_per_ks,
        row.control,
    )


def new_batch_columns(row: BatchRow) -> tuple[Any, ...]:
    """The parameters of ``add_batch``."""
    spec, seal, items, *mutable = batch_columns(row)
    return (row.id, int(row.targets), spec, seal, items, row.created_us, row.first_seq, *mutable)


def to_worker(row: Sequence[Any]) -> WorkerRow:
    """A worker from its columns."""
    fence, batch, actor, *times = row
    return WorkerRow(fence, batch, Actor(**{"program": "", **orjson.loads(actor)}), *times)


def worker_columns(row: WorkerRow) -> tuple[Any, ...]:
    """The parameters of ``add_worker``."""
    return row.batch, dump(actor_fields(row.actor)), row.joined_us, row.lease_until_us, row.left_us


def to_tallies(rows: Sequence[Sequence[Any]]) -> Tallies:
    """Tallies from their columns."""
    return {(STATES[state], currency): [items, minor] for state, currency, items, minor in rows}


def json_list(values: Sequence[Any]) -> str:
    """Values as the JSON list that statements take them in."""
    return orjson.dumps(list(values)).decode()
