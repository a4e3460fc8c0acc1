"""The reading side of a JSON Lines ledger: each answer is of one instant, between two transactions.

Who writes and who reads share the rows in memory, so a reading waits for the transaction under way, an fsync at most.
A ledger that is open for reading only takes in what its writer has appended meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from payonce.core.model import Event, Finding, Item, OpenIntent
from payonce.core.overlap import Acting
from payonce.core.states import ItemState
from payonce.ledger.audit import check_batch, check_trail
from payonce.ledger.jsonl_file import FORMAT, JsonlFile
from payonce.ledger.jsonl_tables import JsonlTables
from payonce.ledger.merkle import Node
from payonce.ledger.protocol import LedgerInfo, Output
from payonce.ledger.rows import BatchRow
from payonce.ledger.tables import Standing

T = TypeVar("T")


class JsonlReads:
    """What is durable, as ``ledger.tables`` asks for it. ``fresh`` gives the rows as they are now, under ``lock``."""

    def __init__(self, fresh: Callable[[], JsonlTables], *, lock: AbstractContextManager[object]) -> None:
        self._fresh = fresh
        self._lock = lock

    def _read(self, look: Callable[[JsonlTables], T]) -> T:
        with self._lock:
            return look(self._fresh())

    def info(self) -> LedgerInfo:
        """See ledger.tables."""
        return self._read(_info)

    def meta(self) -> Mapping[str, str]:
        """See ledger.tables."""
        return self._read(lambda t: dict(t.meta()))

    def batches(self, batch: str | None) -> list[BatchRow]:
        """See ledger.tables."""
        return self._read(lambda t: t.batches(batch))

    def standing(self, batch: str) -> Standing | None:
        """See ledger.tables."""
        return self._read(lambda t: t.standing(batch))

    def items(self, number: int, *, states: Sequence[ItemState], after_n: int, limit: int) -> list[Item]:
        """See ledger.tables."""
        return self._read(lambda t: t.items(number, states=states, after_n=after_n, limit=limit))

    def item(self, number: int, item: str) -> Item | None:
        """See ledger.tables."""
        return self._read(lambda t: t.item(number, item))

    def open_intents(self, number: int, ns: Sequence[int]) -> list[OpenIntent]:
        """See ledger.tables."""
        return self._read(lambda t: t.open_intents(number, ns))

    def events(self, number: int | None, *, n: int | None, after_seq: int, limit: int) -> list[Event]:
        """See ledger.tables."""
        return self._read(lambda t: t.events(number, n=n, after_seq=after_seq, limit=limit))

    def billing(self, number: int) -> Iterator[str]:
        """See ledger.protocol."""
        return iter(self._read(lambda t: list(t.billing(number))))

    def outputs(self, number: int, *, after_n: int, limit: int) -> list[Output]:
        """See ledger.tables."""
        return self._read(lambda t: t.outputs(number, after_n=after_n, limit=limit))

    def findings(self, number: int) -> list[Finding]:
        """See ledger.tables."""
        return self._read(lambda t: t.findings(number))

    def extents(self) -> dict[int, int]:
        """See ledger.overlap_port."""
        return self._read(lambda t: t.extents())

    def acted_targets(self, number: int) -> Iterator[list[str]]:
        """See ledger.overlap_port."""
        return iter(self._read(lambda t: list(t.acted_targets(number))))

    def acting_on(self, number: int, targets: Sequence[str]) -> list[Acting]:
        """See ledger.overlap_port."""
        return self._read(lambda t: t.acting_on(number, targets))

    def check(self) -> list[str]:
        """See ledger.tables. The file is read once more from its start: every digest, and the same rows again."""
        return self._read(_check)


def _info(tables: JsonlTables) -> LedgerInfo:
    head = tables.head()
    return LedgerInfo(
        id=tables.meta()["id"],
        url=f"jsonl:{tables.path}",
        schema=FORMAT,
        events=head.size,
        root=head.root().hex(),
        durable=True,
        one_process=True,
        one_host=True,
    )


def _check(tables: JsonlTables) -> list[str]:
    with JsonlFile.reading(tables.path) as file:
        again = JsonlTables(file)
        again.catch_up()
        if again.head() != tables.head():
            return ["the file does not hold what this process has written to it"]
        faults = check_trail(
            again.trail.bodies(), again.head(), [Node(*key, value) for key, value in again.nodes.items()]
        )
        for row in again.batches(None):
            opens = again.open_rows(row.number)
            faults += check_batch(row, again.item_rows(row.number), opens, again.tallies(row.number))
        return faults
