"""Taking the spool in: answers of an earlier process that its ledger would not take decide their items first."""

from __future__ import annotations

from payonce.core.commands import Landed
from payonce.core.states import ItemState
from payonce.engine.session import Session
from payonce.engine.spool import Spool, Spooled


async def take_in_spool(session: Session, spool: Spool) -> int:
    """Applies every whole record that earlier processes left and removes the files that are used up.

    A record whose item belongs to a live worker stays where it is. Returns how many were applied. A crash half-way
    leaves the file; applying a record twice is harmless, since the second time its item is decided already.
    """
    applied = 0
    for path, records, _torn in tuple(spool.waiting()):
        kept = 0
        for record in records:
            if record.ledger != session.ledger_id or record.batch != session.batch.spec.id:
                kept += 1
                continue
            landed = await _apply(session, record)
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
