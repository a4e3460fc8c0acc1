"""Evidence that comes before the answer: the provider's id of a call, kept as soon as its headers have arrived.

An answer may take minutes, and a crash in the middle of its body would leave a call that was paid for and that nothing
names. The id is written to the ledger with the item while the body is still on its way, and before anything that becomes
of the call is: what is looked up after a crash is this very call.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol, runtime_checkable

from payonce.core.commands import Change
from payonce.core.errors import LedgerError
from payonce.core.events import well_formed
from payonce.core.model import Item
from payonce.core.states import ItemEvent
from payonce.engine.crashpoints import hit
from payonce.engine.session import Session

# Where an item carries the id of the call that was answered last.
ANSWER_ID: Final = "answer_id"


class Witness(Protocol):
    """Told of the id of a call whose answer has begun."""

    def __call__(self, item: Item, answer_id: str) -> None: ...


@runtime_checkable
class Tells(Protocol):
    """A provider that tells such ids. ``witness`` is None where nobody wants to know."""

    witness: Witness | None


class Evidence:
    """Writes ids as they come. Each item's is durable before ``settled`` returns."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._writing: dict[int, asyncio.Task[None]] = {}

    def saw(self, item: Item, answer_id: str) -> None:
        """The headers of the item's answer have arrived."""
        before = self._writing.get(item.n)
        self._writing[item.n] = asyncio.create_task(self._write(item, answer_id, before))

    async def settled(self, item: Item) -> None:
        """Returns when what was seen of the item is durable, or the run halts."""
        task = self._writing.pop(item.n, None)
        if task is not None:
            await task

    async def _write(self, item: Item, answer_id: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        name = well_formed(answer_id)
        change = Change(
            item.n,
            ItemEvent.UNRESOLVED,
            data={ANSWER_ID: name},
            code="answer_begun",
            message=f"the answer to {name} has begun",
            carry={ANSWER_ID: name},
        )
        try:
            await self._session.ledger.write(self._session.worker, change)
        except LedgerError as fault:
            self._session.halt(fault)
        hit("after_answer_begun")


def watch(session: Session) -> Evidence | None:
    """Has the session's provider tell the ids of answers that begin; None where it tells none."""
    if not isinstance(session.provider, Tells):
        return None
    evidence = Evidence(session)
    session.provider.witness = evidence.saw
    return evidence
