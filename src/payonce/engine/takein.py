"""Taking the spool in: answers of an earlier process that its ledger would not take decide their items first."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from payonce.core.commands import BatchCommand, Control, Landed
from payonce.core.model import Finding
from payonce.core.states import ItemEvent, ItemState
from payonce.engine.session import Session
from payonce.engine.spool import Spool, Spooled

# What stays true whatever was sent since. Any other answer speaks of its own attempt alone: "not executed" of an earlier
# call says nothing of a later one under the same generation.
_FACTS: Final = frozenset({ItemEvent.COMMIT, ItemEvent.STEP_DONE})


async def take_in_spool(session: Session, spool: Spool) -> int:
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
            await _note(session, Control(BatchCommand.NOTE, code="spool_torn", reason=text))
        for record in records:
            if record.ledger != session.ledger_id or record.batch != session.batch.spec.id:
                kept += 1
                continue
            record = replace(record, change=session.outputs.set_aside(record.change))
            landed = await _apply(session, record)
            if landed is False:
                await _keep_proof(session, record)
            applied += landed is True
            kept += landed is None
        if not kept:
            path.unlink(missing_ok=True)
    return applied


async def _apply(session: Session, record: Spooled) -> bool | None:
    """True: it decided its item. False: the item is decided already. None: the item is another live worker's."""
    found = await session.ledger.open_intents(session.batch.spec.id, [record.n])
    if not found:
        return False
    intent = found[0]
    if (intent.item.generation, intent.item.step) != (record.generation, record.step):
        return False
    if record.change.event not in _FACTS and record.attempt != intent.item.attempts:
        return False
    if intent.item.state is ItemState.UNKNOWN:
        return await _decide_unknown(session, record)
    if intent.fence != session.worker.fence:
        return None
    landed = await session.ledger.write(session.worker, record.change)
    return landed is Landed.LANDED


async def _decide_unknown(session: Session, record: Spooled) -> bool:
    landed = await session.ledger.operate(
        record.batch, record.item, [record.change], actor=session.actor, reason="an answer from the spool"
    )
    return landed is Landed.LANDED


async def _keep_proof(session: Session, record: Spooled) -> None:
    """An answer that decides nothing any more, but shows an execution that no item of the ledger accounts for."""
    change = record.change
    if change.event is not ItemEvent.COMMIT or change.reference is None:
        return
    if await session.ledger.claimed_references(record.batch, [change.reference]):
        return
    facts = {"reference": change.reference, "amount": str(change.billed), "seen": "late, in the spool"}
    finding = Finding("duplicate", record.item, facts)
    text = f"item {record.item}: {change.reference} was executed as well"
    await _note(session, Control(BatchCommand.NOTE, code="late_answer", reason=text, findings=(finding,)))


async def _note(session: Session, control: Control) -> None:
    await session.ledger.control(session.batch.spec.id, control, actor=session.actor, worker=session.worker)
