"""Items that were paid for again or are half done, and planned items that may have been executed: what is never forgotten.

An item of several calls of which some were executed is neither refused nor left out: both say that nothing happened. A mark in the item's ``carry`` says since when and over how much an earlier call may have been executed. While it is there,
no refusal, no skip and no cancel ends the item as if nothing had happened: it becomes unknown and holds its money. Only a
person's decision, on evidence, takes the mark away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from payonce.core.commands import Change
from payonce.core.events import iso
from payonce.core.model import Request
from payonce.core.money import format_minor
from payonce.core.states import ItemEvent
from payonce.ledger.desk import Desk
from payonce.ledger.requests import request_digest
from payonce.ledger.rows import NO_INTENT, UNKNOWN, ItemRow, OpenRow, dump, load

HALF_DONE: Final = "half_done"
_MARK: Final = "$paid_again"
_NO_REQUEST: Final = Request("", "")
# A person says with these that nothing was executed, or that an item may be sent again.
_DECIDED: Final = (ItemEvent.REFUSE, ItemEvent.NOT_EXECUTED, ItemEvent.SKIP)


def mark(row: ItemRow, held: OpenRow) -> None:
    """Notes that the call of an open intent, which is about to be closed, may have been executed."""
    times = {"sent_us": held.sent_us, "send_by_us": held.send_by_us, "deadline_us": held.deadline_us}
    facts = {"minor": held.hold_minor, "currency": held.hold_currency, **times}
    row.carry = dump({**load(row.carry), _MARK: facts})


def was_paid_again(row: ItemRow) -> bool:
    """Whether an earlier call of the item may have been executed, although it is planned or has a call out again."""
    return _MARK in row.carry and _MARK in load(row.carry)


def in_doubt(row: ItemRow, change: Change) -> Change:
    """The change itself, or UNDECIDED in place of a refusal or a skip for an item that was paid again or is half done."""
    if change.event not in (ItemEvent.REFUSE, ItemEvent.SKIP):
        return change
    if row.step:
        text = f"{change.code}: {change.message}; {row.step} of its calls had been executed"
        return replace(change, event=ItemEvent.UNDECIDED, code=HALF_DONE, message=text)
    if not was_paid_again(row):
        return change
    code = "refused_after_unresolved" if change.event is ItemEvent.REFUSE else "skipped_after_unresolved"
    text = f"{change.code}: {change.message}; it was paid again, and its earlier call may have been executed"
    return replace(change, event=ItemEvent.UNDECIDED, code=code, message=text)


def decided(row: ItemRow, change: Change) -> None:
    """A person, on evidence, said that nothing was executed: the mark goes."""
    if change.event in _DECIDED and was_paid_again(row):
        row.carry = dump({name: value for name, value in load(row.carry).items() if name != _MARK})


def hold(desk: Desk, row: ItemRow) -> OpenRow:
    """An open intent for a planned item that becomes unknown: it holds the money of the call that may have been executed,
    and its target, unless another item has that. It has no key and no request: nothing can be sent under it."""
    facts: dict[str, Any] = load(row.carry).get(_MARK) or {}
    now_us = desk.log.now_us
    free = not desk.batch.targets or desk.holders.get(row.target) is None
    held = OpenRow(
        row.n,
        row.target if free else None,
        0,
        None,
        request_digest(_NO_REQUEST),
        facts.get("sent_us", now_us),
        facts.get("sent_us", now_us),
        facts.get("send_by_us", now_us),
        facts.get("deadline_us", now_us),
        flags=NO_INTENT | UNKNOWN,
        hold_minor=facts.get("minor", row.minor),
        hold_currency=facts.get("currency", row.currency),
        request=_NO_REQUEST,
    )
    desk.open_up(row, held)
    desk.change(held)  # what a new intent never has: its flags
    return held


def said(desk: Desk, held: OpenRow) -> dict[str, Any]:
    """What the event of such an intent says of it: what it holds, since when, and whether another item has its target."""
    found: dict[str, Any] = {}
    if held.hold_minor is not None and held.hold_currency is not None:
        amount = format_minor(held.hold_minor, held.hold_currency)
        found["reserve"] = {"amount": amount, "currency": held.hold_currency}
    if held.sent_us != desk.log.now_us:
        found["sent"] = iso(held.sent_us)
    if held.target is None:
        found["target_busy"] = True
    return found
