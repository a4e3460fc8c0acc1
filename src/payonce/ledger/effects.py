"""What becomes of an item, its open intent, its batch and the trail when a change lands. Called by the rules only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payonce.core.commands import Change, StopBatch
from payonce.core.events import iso, plain
from payonce.core.keys import digest
from payonce.core.money import format_minor
from payonce.core.states import BatchState, ItemEvent, ItemState, Settlement
from payonce.ledger import again, findings
from payonce.ledger.desk import Desk, share
from payonce.ledger.findings import Stamp
from payonce.ledger.rows import (
    ALREADY_DONE,
    BURNT,
    FINAL,
    IN_PROGRESS,
    NO_INTENT,
    UNKNOWN,
    ItemRow,
    OpenRow,
    OutputRow,
    dump,
    load,
)

_S, _E = ItemState, ItemEvent


def move(
    desk: Desk,
    row: ItemRow,
    held: OpenRow | None,
    change: Change,
    after: ItemState,
    stamp: Stamp,
    *,
    carry: str | None = None,
) -> None:
    """Makes a change that the rules have let through: row, intent, tallies, event, findings, stop. ``carry`` is what the
    item carried before, where the rules have changed that already."""
    before = share(row, held)
    carried = row.carry if carry is None else carry
    attempt = (row.generation, row.step, None if held is None or held.flags & NO_INTENT else held.key)
    row.state = after
    row.spent += change.spent
    row.updated_us = desk.log.now_us
    if change.code is not None:
        row.code, row.message = change.code or None, change.message or None
    opened = again.hold(desk, row) if held is None and after is _S.UNKNOWN else None
    if opened is not None:
        opened.code, opened.message = row.code, row.message
    if held is not None:
        if after.holds_money:
            _keep_open(desk, row, held, change)
        else:
            desk.close(row)
    _settle_row(row, held, change)
    desk.batch.lookups += change.lookups
    if change.data.get("sent") is False:
        desk.batch.sent -= 1  # counted with its intent, but no byte of it left
    desk.batch.rate_limited += change.rate_limited
    desk.shift(row, before)
    more = {} if after is _S.COMMITTED else _learned(desk, row, change, opened)
    if row.carry is not carried:
        more["carry"] = digest(row.carry.encode())
    _emit(desk, row, change, attempt, stamp, more)
    if change.output is not None or change.kept:
        desk.returned(OutputRow(row.n, change.output, dump(change.kept) if change.kept else None))
    for finding in change.findings:
        findings.find(desk, row, finding.kind, finding.data, stamp)
    if row.step and (change.code == again.HALF_DONE or after in (_S.REFUSED, _S.SKIPPED)):
        findings.find_half_done(desk, row, stamp)
    if change.stop is not None:
        stop(desk, change.stop, stamp)
    if after is _S.PLANNED:
        _back_to_planned(desk, row, stamp)


def _keep_open(desk: Desk, row: ItemRow, held: OpenRow, change: Change) -> None:
    """The item stays pending or becomes unknown: what was learned is kept with its open intent."""
    if change.event is _E.STEP_DONE:
        row.step += 1
        held.flags = NO_INTENT
        held.seen_us = held.code = held.message = None
        held.lookup_failures = 0
    else:
        held.flags |= (
            change.burnt * BURNT
            | change.final * FINAL
            | change.already_done * ALREADY_DONE
            | change.in_progress * IN_PROGRESS
        )
        if change.event is _E.UNRESOLVED and not change.in_progress:
            held.flags &= ~IN_PROGRESS
        # What a call answered stays, whatever becomes of look-ups; why one failed is on the item alone.
        if change.code is not None and change.event is not _E.LOOKUP:
            held.code, held.message = change.code, change.message
        held.lookups += change.lookups
        held.lookup_failures += change.lookup_failures
    if change.event is _E.UNDECIDED:
        held.flags |= UNKNOWN
    if change.seen:
        # By the worker's clock: the ledger's may stand still for as long as it was set back, and waits would end early.
        held.seen_us = max(change.seen_us, desk.log.now_us)
    held.retry_at_us = change.retry_at_us
    desk.change(held)


def _settle_row(row: ItemRow, held: OpenRow | None, change: Change) -> None:
    """The columns of the item that an event of its kind decides."""
    if change.carry is not None:
        row.carry = dump({**load(row.carry), **change.carry})
    match change.event:
        case _E.COMMIT:
            row.reference = change.reference or None
            billed = change.billed
            row.billed_minor = row.minor if billed is None else billed.minor
            row.billed_currency = row.currency if billed is None else billed.currency
            row.settlement = change.settlement or Settlement.NONE
            row.code, row.message = change.code or None, change.message or None
        case _E.SETTLE:
            assert change.settlement is not None, "a settlement is what SETTLE is about"
            row.settlement = change.settlement
        case _E.NOT_EXECUTED:
            row.not_before_us = change.not_before_us
            renewed = change.generation is not None
            used = held is not None and not held.flags & NO_INTENT
            row.first_sent_us = held.first_sent_us if held is not None and used and not renewed else 0
        case _E.PAY_AGAIN:
            row.not_before_us, row.first_sent_us = change.not_before_us, 0
            if held is not None:
                again.mark(row, held)
        case _E.RETRY:
            row.not_before_us, row.spent, row.first_sent_us = change.not_before_us, 0, 0
            if change.generation is None and row.attempts:
                row.generation += 1
            row.code, row.message = change.code or None, change.message or None
        case _:
            pass
    if change.generation is not None:
        row.generation = change.generation


def _emit(
    desk: Desk,
    row: ItemRow,
    change: Change,
    attempt: tuple[int, int, str | None],
    stamp: Stamp,
    more: Mapping[str, Any],
) -> None:
    body: dict[str, Any] = {
        "type": change.event,
        "batch": desk.batch.id,
        "item": row.id,
        "attempt": row.attempts,
        "generation": attempt[0],
        "step": attempt[1],
        **stamp,
    }
    if attempt[2] is not None:
        body["key"] = attempt[2]
    if change.code is not None:
        body["code"] = change.code
    if change.message:
        body["message"] = change.message
    if change.reference is not None:
        body["reference"] = change.reference
    if change.settlement is not None and (change.settlement is not Settlement.NONE or change.event is _E.SETTLE):
        body["settlement"] = change.settlement.value
    _amounts(body, row)
    if row.generation != attempt[0]:
        body["new_generation"] = row.generation
    if wait_us := change.retry_at_us if row.state.holds_money else change.not_before_us:
        body["wait_until"] = iso(wait_us)
    if change.kept:
        body["kept"] = plain(change.kept)
    if change.output is not None:
        body["output"] = digest(change.output)
    if change.data:
        body["data"] = plain(change.data)
    if change.spent:
        body["spent"] = change.spent
    if change.lookups:
        body["lookups"] = change.lookups
    if change.rate_limited:
        body["rate_limited"] = change.rate_limited
    if more:
        body.update(more)
    desk.log.emit(body, batch=desk.batch.number, n=row.n, payloads=change.payloads)


def _learned(desk: Desk, row: ItemRow, change: Change, opened: OpenRow | None) -> dict[str, Any]:
    """What else the event of a call that was not simply executed says, so that the events alone explain every column: what
    is kept with the open intent, and since when its key is in use."""
    if opened is not None:
        return again.said(desk, opened)
    more: dict[str, Any] = {}
    for name in ("seen", "burnt", "final", "in_progress", "already_done", "lookup_failures"):
        if value := getattr(change, name):
            more[name] = value
    if change.seen and change.seen_us > desk.log.now_us:
        more["seen_at"] = iso(change.seen_us)
    if change.event is _E.NOT_EXECUTED and row.first_sent_us:
        more["first_sent"] = iso(row.first_sent_us)
    return more


def _amounts(body: dict[str, Any], row: ItemRow) -> None:
    """What was asked and what was billed, the latter with its own currency where that differs."""
    if row.minor is not None and row.currency is not None:
        body["amount"] = format_minor(row.minor, row.currency)
        body["currency"] = row.currency
    if row.billed_minor is not None and row.billed_currency is not None:
        same = (row.billed_minor, row.billed_currency) == (row.minor, row.currency)
        body["billed"] = body["amount"] if same else format_minor(row.billed_minor, row.billed_currency)
        if row.billed_currency != row.currency:
            body["billed_currency"] = row.billed_currency


def _back_to_planned(desk: Desk, row: ItemRow, stamp: Stamp) -> None:
    """An item came back: a cancelled batch takes nothing back, a finished one is open again."""
    batch = desk.batch
    if batch.state is BatchState.CANCELLED:
        skip(desk, row, code="cancelled", message="the batch was cancelled", stamp=stamp)
    elif batch.state is BatchState.FINISHED:
        batch.state, batch.ended_us = BatchState.INTERRUPTED, None
        batch.reason_code, batch.reason = "reopened", f"item {row.id} is planned again"
        batch.control += 1
        body = {"type": "interrupted", "batch": batch.id, "code": "reopened", "message": batch.reason, **stamp}
        desk.log.emit(body, batch=batch.number)


def skip(desk: Desk, row: ItemRow, *, code: str, message: str, stamp: Stamp) -> None:
    """A planned item is skipped, with its event. One of whose calls some were executed, or that was paid again, is unknown
    instead: money may have moved."""
    change = again.in_doubt(row, Change(row.n, _E.SKIP, code=code, message=message))
    move(desk, row, None, change, _S.SKIPPED if change.event is _E.SKIP else _S.UNKNOWN, stamp)


def trip(desk: Desk, change: Change, stamp: Stamp) -> None:
    """Counts refusals since the start, in all and in a row, and stops the batch where a limit is reached."""
    batch = desk.batch
    if change.event is _E.COMMIT:
        batch.consecutive = 0
    if change.event is not _E.REFUSE:
        return
    batch.refusals += 1
    batch.consecutive += 1
    for name, count, what in (
        ("stop_after_consecutive", batch.consecutive, "refusals in a row"),
        ("stop_after_refusals", batch.refusals, "refusals since the start"),
    ):
        limit = desk.limits.get(name)
        if limit is not None and count >= limit and batch.state is BatchState.RUNNING:
            stop(desk, StopBatch(name, f"{count} {what}; the limit is {limit}"), stamp)


def stop(desk: Desk, order: StopBatch, stamp: Stamp) -> None:
    """Stops the batch: no later intent lands. One that is paused stays paused, one that is over stays over."""
    batch = desk.batch
    if batch.state not in (BatchState.CANCELLED, BatchState.FINISHED):
        if batch.state is not BatchState.PAUSED:
            batch.state = BatchState.STOPPED
        batch.reason, batch.reason_code = order.message, order.code
        batch.hold = batch.hold or order.hold
        batch.control += 1
    body: dict[str, Any] = {"type": "stopped", "batch": batch.id, "code": order.code, "message": order.message, **stamp}
    if order.hold:
        body["hold"] = True
    body["state"] = batch.state.value
    desk.log.emit(body, batch=batch.number)
