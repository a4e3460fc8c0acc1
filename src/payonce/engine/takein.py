"""Taking the spool in: answers of an earlier process that its ledger would not take decide their items first.

No call is made here, and no look-up. A run takes the spool in as it begins; a start that sends nothing (its batch is over, or
held by a person) does so too, since an answer may tell what became of an item that nobody could decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from payonce.core.commands import BatchCommand, Change, Command, Control, Landed
from payonce.core.model import Actor, Batch, Finding, Item, Worker
from payonce.core.states import ItemEvent, ItemState
from payonce.engine.clock import SystemClock
from payonce.engine.ports import Clock, EngineLedger
from payonce.engine.spool import Spool, Spooled
from payonce.ledger.outputs import OutputFiles

# What stays true whatever was sent since. Any other answer speaks of its own attempt alone: "not executed" of an earlier
# call says nothing of a later one under the same generation.
_FACTS: Final = frozenset({ItemEvent.COMMIT, ItemEvent.STEP_DONE})
_REASON: Final = "an answer from the spool"
_TAKE_OVER: Final = 1000


class Taker(Protocol):
    """Who takes the spool in, as a worker of the batch: a session, or a start that sends nothing."""

    @property
    def ledger(self) -> EngineLedger: ...
    @property
    def batch(self) -> Batch: ...
    @property
    def actor(self) -> Actor: ...
    @property
    def worker(self) -> Worker: ...
    @property
    def ledger_id(self) -> str: ...
    @property
    def outputs(self) -> OutputFiles: ...

    def now_us(self) -> int:
        """The ledger's time as the worker carries it."""
        ...


@dataclass(frozen=True, slots=True)
class _Visit:
    """A worker that has come for the spool alone."""

    ledger: EngineLedger
    batch: Batch
    actor: Actor
    worker: Worker
    ledger_id: str
    outputs: OutputFiles

    def now_us(self) -> int:
        """When it came: it does not stay."""
        return self.worker.now_us


async def take_in_only(
    ledger: EngineLedger,
    *,
    batch: Batch,
    actor: Actor,
    lease_us: int,
    spool: Spool,
    ledger_id: str,
    outputs: OutputFiles,
    clock: Clock | None = None,
) -> bool:
    """Takes in what the spool holds for a batch of which nothing is sent now. Whether it held anything; where not,
    nothing is written. A crash half-way leaves the rest to the next start."""
    name = batch.spec.id
    if not any(record.batch == name for _, records, _ in spool.waiting() for record in records):
        return False
    # Items pass through its hands: its steady clock goes with it, so that whoever takes them from it can tell how far
    # the other clock was set.
    actor = replace(actor, steady_us=(clock or SystemClock()).steady_us())
    worker = await ledger.join(name, actor=actor, lease_us=lease_us)
    try:
        while len(await ledger.take_over(worker, limit=_TAKE_OVER)) == _TAKE_OVER:
            pass
        await take_in_spool(_Visit(ledger, batch, actor, worker, ledger_id, outputs), spool)
    finally:
        await ledger.leave(worker)
    return True


async def take_in_spool(taker: Taker, spool: Spool) -> int:
    """Applies every whole record that earlier processes left and removes the files that are used up.

    A record whose item belongs to a live worker stays where it is. An execution that the ledger holds for no item (its
    item was decided otherwise, or sent again since) becomes a finding: it is proof of a duplicate. Returns how many
    were applied. A crash half-way leaves the file; applying a record twice is harmless, since the second time its item
    is decided already.
    """
    applied = 0
    for path, records, torn in tuple(spool.waiting()):
        kept = 0
        if torn:
            text = (
                f"the last record of {path.name} is torn: it never was complete, and its item is resolved as any other"
            )
            await _note(taker, Control(BatchCommand.NOTE, code="spool_torn", reason=text))
        for record in records:
            if record.ledger != taker.ledger_id or record.batch != taker.batch.spec.id:
                kept += 1
                continue
            change = record.change
            if change.seen:  # by the clock of a process that is gone: from now on is the careful way
                change = replace(change, seen_us=taker.now_us())
            record = replace(record, change=taker.outputs.set_aside(change))
            landed = await _apply(taker, record)
            if landed is False:
                await _keep_proof(taker, record)
            applied += landed is True
            kept += landed is None
        if not kept:
            path.unlink(missing_ok=True)
    return applied


async def _apply(taker: Taker, record: Spooled) -> bool | None:
    """True: it decided its item. False: the item is decided already. None: the item is another live worker's."""
    found = await taker.ledger.open_intents(taker.batch.spec.id, [record.n])
    if not found:
        return await _decide_planned(taker, record)
    intent = found[0]
    if (intent.item.generation, intent.item.step) != (record.generation, record.step):
        return False
    if record.change.event not in _FACTS and record.attempt != intent.item.attempts:
        return False
    if intent.item.state is ItemState.UNKNOWN:
        if record.change.event is ItemEvent.STEP_DONE and await _unaware(taker, record) is None:
            return False
        return await _operate(taker, record, [_of_unknown(record)])
    if intent.fence != taker.worker.fence:
        return None
    landed = await taker.ledger.write(taker.worker, record.change)
    return landed is Landed.LANDED


async def _decide_planned(taker: Taker, record: Spooled) -> bool:
    """An item that is planned (again) although it was executed must not be sent: the execution decides it. Where one of
    several calls was executed, it is left to a person."""
    item = await _unaware(taker, record)
    if item is None or item.state is not ItemState.PLANNED:
        return False
    text = f"{_reference(record.change)} was executed, as an answer in the spool shows"
    left = Change(record.n, ItemEvent.UNDECIDED, code="late_answer", message=text)
    whole = record.change.event is ItemEvent.COMMIT and item.step == record.step
    return await _operate(taker, record, [left, record.change if whole else _of_unknown(record)])


async def _unaware(taker: Taker, record: Spooled) -> Item | None:
    """The item of an answer that shows an execution; None where it shows none, or the ledger has this one already."""
    reference = _reference(record.change)
    if reference is None:
        return None
    item = await taker.ledger.item(record.batch, record.item)
    if item is None or reference in (item.reference, item.carry.get(f"step_{record.step}")):
        return None
    known = await taker.ledger.claimed_references(record.batch, [reference], target=item.target)
    return None if known else item


def _reference(change: Change) -> str | None:
    """What the provider calls the execution that an answer shows."""
    if change.event is ItemEvent.STEP_DONE:
        return str(change.data.get("reference") or "a call")
    return change.reference if change.event is ItemEvent.COMMIT else None


def _of_unknown(record: Spooled) -> Change:
    """The change of an unknown item. One executed call of several does not decide it: a finding tells whoever does."""
    change = record.change
    if change.event is not ItemEvent.STEP_DONE:
        return change
    carry: dict[str, Any] = dict(change.carry or {})
    finding = Finding("half_done", record.item, {"steps": record.step + 1, "carry": carry})
    return Change(record.n, ItemEvent.LOOKUP, data=change.data, carry=carry, findings=(finding,))


async def _operate(taker: Taker, record: Spooled, changes: Sequence[Command]) -> bool:
    landed = await taker.ledger.operate(record.batch, record.item, changes, actor=taker.actor, reason=_REASON)
    return landed is Landed.LANDED


async def _keep_proof(taker: Taker, record: Spooled) -> None:
    """An answer that decides nothing any more: what it found goes on being a finding, and so does an execution that no item
    of the ledger accounts for."""
    change, findings = record.change, record.change.findings
    if await _unaware(taker, record) is not None:
        facts: dict[str, Any] = {"reference": _reference(change), "seen": "late, in the spool"}
        if change.billed is not None:
            facts["amount"] = str(change.billed)
        findings += (Finding("duplicate", record.item, facts),)
    if findings:
        text = f"item {record.item}: an answer from the spool came too late to decide it"
        await _note(taker, Control(BatchCommand.NOTE, code="late_answer", reason=text, findings=findings))


async def _note(taker: Taker, control: Control) -> None:
    await taker.ledger.control(taker.batch.spec.id, control, actor=taker.actor, worker=taker.worker)
