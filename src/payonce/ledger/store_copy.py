"""The verbs of a copy: a ledger says that another store goes on with its batches, and hands everything over."""

from __future__ import annotations

from collections.abc import Callable

from payonce.core.errors import UsageError
from payonce.ledger.copying import Fill, Source, copy_ledger
from payonce.ledger.place import MOVED_TO
from payonce.ledger.store import StoreBase
from payonce.ledger.tables import Tables
from payonce.ledger.trail_port import TrailReads


class CopyVerbs(StoreBase):
    """How a ledger leaves for another store. The order makes it safe: first this one is closed, then the other is made."""

    def moved_to(self) -> str | None:
        """Where the batches went, if they did."""
        return self._reads.meta().get(MOVED_TO) or None

    def refuse_busy(self) -> None:
        """Raises UsageError ``ledger_busy`` while a worker lives. Writes nothing."""
        with self._transaction() as log:
            self._refuse_living(log.now_us)

    def _refuse_living(self, now_us: int) -> None:
        for row in self._reads.batches(None):
            living = self._living(row, now_us=now_us)
            if living:
                who = living[0].actor
                raise UsageError(
                    f"batch {row.id!r} is being run by process {who.pid} on host {who.host}",
                    code="ledger_busy",
                    hint="pause the batch or wait for the run to end; a dead one's lease is over within a minute",
                )

    def leave_for(self, url: str) -> None:
        """Closes the ledger for everything but reading: the store at ``url`` goes on with its batches.

        Raises UsageError ``ledger_busy`` while a worker lives. No event is written, so both trails are the same.
        """
        with self._transaction() as log:
            self._refuse_moved()
            self._refuse_living(log.now_us)
            self._tables.save_meta(MOVED_TO, url)

    def stay(self) -> None:
        """Takes ``leave_for`` back."""
        with self._transaction():
            self._tables.save_meta(MOVED_TO, "")

    def hand_over(self, build: Callable[[Fill], None], *, trail: TrailReads) -> None:
        """Everything, into the empty store that ``build`` makes. Nobody writes here meanwhile.

        ``trail`` is this ledger's trail as it is on disk, which is copied byte for byte."""
        with self._transaction(), trail.snapshot():
            source = Source(self._tables, self._reads, trail)
            build(lambda target: _fill(source, target))


def _fill(source: Source, target: Tables) -> None:
    copy_ledger(source, target)
