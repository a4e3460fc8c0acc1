"""The rules of a ledger: what a command does to one item, or why it does not land. The same code for every store.

Nothing here reads or writes a store: the desk has laid the rows out. A command either lands whole, with its event, its
tallies and its counters, or changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from payonce.core.commands import Change, Command, Intend, Landed
from payonce.core.events import iso, plain
from payonce.core.money import Money, format_minor
from payonce.core.states import TRANSITIONS, BatchState, ItemEvent, ItemState
from payonce.core.values import value
from payonce.ledger import again, costs, effects
from payonce.ledger.desk import Desk, share
from payonce.ledger.requests import request_digest
from payonce.ledger.rows import BURNT, NO_INTENT, UNKNOWN, ItemRow, OpenRow
from payonce.ledger.usual import Usual

_S, _E = ItemState, ItemEvent
_LANDED, _STALE = Landed.LANDED, Landed.STALE

# What a worker may say of an item. Putting a refused or skipped one back is for operators, taking over a verb of its own.
WORKERS_EVENTS: Final = frozenset(
    {
        _E.UNRESOLVED,
        _E.LOOKUP,
        _E.STEP_DONE,
        _E.COMMIT,
        _E.REFUSE,
        _E.NOT_EXECUTED,
        _E.PAY_AGAIN,
        _E.UNDECIDED,
        _E.SKIP,
        _E.SETTLE,
    }
)
OPERATORS_EVENTS: Final = (WORKERS_EVENTS - {_E.PAY_AGAIN}) | {_E.RETRY}


@value
class Author:
    """Who gives a command: a worker with its fence, or an operator (fence 0) with a reason.

    ``stamp`` goes into each event. ``may_send`` is False for a worker whose lease is over: what it learned still
    counts while nobody took its items over, but no new call may start. ``busy`` are the fences of live workers, whose
    pending items an operator must leave alone.
    """

    fence: int
    stamp: Mapping[str, Any]
    may_send: bool = True
    busy: frozenset[int] = field(default_factory=frozenset)

    @property
    def is_worker(self) -> bool:
        """Whether this is a worker, bound by its fence, the batch's state and the budget."""
        return self.fence > 0

    def owns(self, held: OpenRow) -> bool:
        """Whether an open intent may be changed: a worker its own ones, an operator those nobody is working on."""
        if self.fence > 0:
            return held.fence == self.fence
        return bool(held.flags & UNKNOWN) or held.fence not in self.busy


def apply_all(desk: Desk, commands: Sequence[Command], author: Author) -> tuple[Landed, ...]:
    """Applies commands in order, each to its item, which must be laid out."""
    if not author.is_worker or not author.may_send:
        return tuple([apply(desk, command, author) for command in commands])
    usual, rows, landed = Usual(desk, author.fence), desk.rows, []
    for command in commands:
        row = rows.get(command.n)
        if row is not None and (
            usual.intend(row, command) if type(command) is Intend else usual.commit(row, command)  # type: ignore[arg-type]
        ):
            landed.append(_LANDED)
        else:
            usual.settle()
            landed.append(apply(desk, command, author))
    usual.settle()
    return tuple(landed)


def apply(desk: Desk, command: Command, author: Author) -> Landed:
    """Applies one command to its item, which must be laid out."""
    row = desk.rows.get(command.n)
    if row is None:
        return _STALE
    if type(command) is Intend:
        return _intend(desk, row, command, author)
    assert isinstance(command, Change)
    return _change(desk, row, command, author)


def _intend(desk: Desk, row: ItemRow, command: Intend, author: Author) -> Landed:
    assert command.event in (_E.INTENT, _E.RESEND), f"{command.event} is no intent"
    if (row.state, command.event) not in TRANSITIONS or not author.may_send:
        return _STALE
    if command.event is _E.RESEND and not author.is_worker:
        return _STALE  # a person decides; only a worker sends
    if row.generation != command.generation or row.step != command.step:
        return _STALE
    worker = author.is_worker
    held = desk.opens.get(row.n)
    if held is not None and not author.owns(held):
        return _STALE
    if worker and desk.batch.state is not BatchState.RUNNING:
        return Landed.NOT_RUNNING
    if held is None and _is_busy(desk, row):
        return Landed.TARGET_BUSY
    hold = _hold(row, held, command.reserve)
    if worker and costs.over_budget(desk, held, *hold):
        return Landed.OVER_BUDGET
    before = share(row, held)
    if held is None:
        held = _first_intent(desk, row, command, author, hold)
    else:
        _send_again(desk, held, command, hold)
    row.state = _S.PENDING
    row.code = row.message = None
    row.updated_us = desk.log.now_us
    if worker:
        row.attempts += 1
        desk.batch.sent += 1
    desk.shift(row, before, begun=worker)
    _emit_intent(desk, row, held, command, author)
    return _LANDED


def _is_busy(desk: Desk, row: ItemRow) -> bool:
    """Whether another pending or unknown item is on the target."""
    return desk.batch.targets and desk.holders.get(row.target) is not None


def _hold(row: ItemRow, held: OpenRow | None, reserve: Money | None) -> tuple[int | None, str | None]:
    """What the item holds while it is pending: the reserve named, what it held before, or its own amount."""
    if reserve is not None:
        return reserve.minor, reserve.currency
    if held is not None:
        return held.hold_minor, held.hold_currency
    return row.minor, row.currency


def _first_intent(
    desk: Desk, row: ItemRow, command: Intend, author: Author, hold: tuple[int | None, str | None]
) -> OpenRow:
    now_us = _sent_us(desk, command)
    held = OpenRow(
        row.n,
        row.target,
        author.fence,
        command.key,
        request_digest(command.request),
        row.first_sent_us or now_us,  # the window starts with the first intent under this very key
        now_us,
        command.send_by_us,
        command.deadline_us,
        hold_minor=hold[0],
        hold_currency=hold[1],
        request=command.request,
    )
    desk.open_up(row, held)
    return held


def _sent_us(desk: Desk, command: Intend) -> int:
    """The time of an intent: the ledger's, but where that is after its call may leave, when its worker asked for it. A
    clock that was set forward since the worker joined would make the key look younger than it is."""
    now_us = desk.log.now_us
    return now_us if now_us <= command.send_by_us else command.asked_us or command.send_by_us


def _send_again(desk: Desk, held: OpenRow, command: Intend, hold: tuple[int | None, str | None]) -> None:
    now_us = _sent_us(desk, command)
    digest = request_digest(command.request)
    if held.flags & NO_INTENT:
        held.key, held.digest, held.request = command.key, digest, command.request
        held.first_sent_us, held.flags = now_us, 0
    else:
        # A resend under one key with other bytes is the fault this program exists to rule out.
        assert digest == held.digest and command.key == held.key, "a resend must repeat the stored key and request"
        held.flags &= BURNT
    held.sent_us, held.send_by_us, held.deadline_us = now_us, command.send_by_us, command.deadline_us
    held.seen_us = held.code = held.message = None
    held.lookup_failures = held.retry_at_us = 0
    held.hold_minor, held.hold_currency = hold
    desk.change(held)


def _emit_intent(desk: Desk, row: ItemRow, held: OpenRow, command: Intend, author: Author) -> None:
    body: dict[str, Any] = {
        "type": command.event,
        "batch": desk.batch.id,
        "item": row.id,
        "attempt": row.attempts,
        "generation": row.generation,
        "step": row.step,
        "request": held.digest.hex(),
        **author.stamp,
    }
    if held.key is not None:
        body["key"] = held.key
    if row.minor is not None and row.currency is not None:
        body["amount"] = format_minor(row.minor, row.currency)
        body["currency"] = row.currency
    if command.reserve is not None:
        body["reserve"] = {"amount": command.reserve.text, "currency": command.reserve.currency}
    if held.sent_us != desk.log.now_us:
        body["sent"] = iso(held.sent_us)
    if command.data:
        body["data"] = plain(command.data)
    desk.log.emit(body, batch=desk.batch.number, n=row.n, payloads=command.payloads)


def _change(desk: Desk, row: ItemRow, change: Change, author: Author) -> Landed:
    if author.is_worker or row.state is _S.PLANNED:
        change = again.in_doubt(row, change)
    after = TRANSITIONS.get((row.state, change.event))
    if after is None or change.event not in (WORKERS_EVENTS if author.is_worker else OPERATORS_EVENTS):
        return _STALE
    held = desk.opens.get(row.n)
    if held is not None and not author.owns(held):
        return _STALE
    if change.event is _E.RETRY and desk.batch.state is BatchState.CANCELLED:
        return Landed.NOT_RUNNING
    assert change.generation is None or (after is _S.PLANNED and change.generation > row.generation), (
        "a new generation is for an item that is planned again, and higher than the last"
    )
    if change.event is _E.PAY_AGAIN and (allowed := costs.may_pay_again(desk, held)) is not _LANDED:
        return allowed
    waits = author.is_worker and not again.was_paid_again(row)
    if held is None and after is _S.UNKNOWN and waits and _is_busy(desk, row):
        return Landed.TARGET_BUSY
    carry = row.carry
    if not author.is_worker:
        again.decided(row, change)
    effects.move(desk, row, held, change, after, author.stamp, carry=carry)
    if change.event is _E.COMMIT or change.event is _E.PAY_AGAIN:
        costs.after(desk, row, held, change, author.stamp)
    if author.is_worker:
        effects.trip(desk, change, author.stamp)
    return _LANDED
