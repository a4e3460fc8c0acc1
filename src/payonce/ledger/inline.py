"""A ledger for coroutines without a thread: every verb happens in place, in the order it is asked for.

For deterministic simulation and for the memory store. It fails like the threaded one: after the first LedgerError of a
write, nothing is written any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from payonce.core.commands import Command
from payonce.core.errors import LedgerError
from payonce.core.model import Worker
from payonce.ledger.group import as_fault, failure, is_refusal
from payonce.ledger.store_reads import StoreLedger
from payonce.ledger.verbs import AsyncVerbs, Kind

T = TypeVar("T")


class InlineLedger(AsyncVerbs):
    """A ledger for coroutines over a store, in the caller's thread."""

    def __init__(self, store: StoreLedger) -> None:
        self._store = store
        self.failed: LedgerError | None = None

    async def _write(self, worker: Worker, commands: tuple[Command, ...]) -> Any:
        return await self._call("group", lambda s: s.write(worker, commands))

    async def _call(self, kind: Kind, call: Callable[[StoreLedger], T]) -> T:
        if kind == "read":
            return call(self._store)
        if self.failed is not None:
            raise failure(self.failed)
        try:
            return call(self._store)
        except Exception as error:
            if is_refusal(error):
                raise
            self.failed = as_fault(error)
            raise failure(self.failed) from error

    async def close(self) -> None:
        """Closes the store."""
        self._store.close()
