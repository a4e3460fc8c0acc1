"""The rows of a ledger in memory and the reading side of them, as ``ledger.tables`` asks for it; changed by ``ledger.memory``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from payonce.core.model import Event, Finding, Item, OpenIntent, Request
from payonce.core.overlap import ACTING, Acting
from payonce.core.states import ItemState
from payonce.ledger.audit import check_batch, check_trail
from payonce.ledger.merkle import Head
from payonce.ledger.protocol import LedgerInfo, Output
from payonce.ledger.rows import (
    BatchRow,
    ItemRow,
    OpenRow,
    OutputRow,
    PayloadRow,
    Tallies,
    WorkerRow,
    as_item,
    as_open,
    copy_of,
    load,
    money,
)
from payonce.ledger.tables import Standing
from payonce.ledger.trail_port import SealedRow


class MemoryRows:
    """Every row in plain dictionaries."""

    def __init__(self, ledger_id: str) -> None:
        self._id = ledger_id
        self._head = Head()
        self._events: list[Event] = []
        self._findings: list[tuple[int, Finding]] = []
        self._batches: dict[int, BatchRow] = {}
        self._tallies: dict[int, Tallies] = {}
        self._items: dict[int, dict[int, ItemRow]] = {}
        self._opens: dict[int, dict[int, OpenRow]] = {}
        self._requests: dict[tuple[int, int], Request] = {}
        self._outputs: dict[tuple[int, int], OutputRow] = {}
        self._workers: dict[int, WorkerRow] = {}
        self._meta: dict[str, str] = {"id": ledger_id}
        self._payloads: dict[tuple[int, str], PayloadRow] = {}
        self.erased: dict[tuple[int, str], int] = {}
        self.nodes: dict[tuple[int, int], bytes] = {}

    def info(self) -> LedgerInfo:
        """See ledger.tables."""
        return LedgerInfo(
            id=self._id,
            url="memory:",
            schema=1,
            events=self._head.size,
            root=self._head.root().hex(),
            durable=False,
            one_process=True,
            one_host=True,
        )

    def batch(self, batch: str) -> BatchRow | None:
        """See ledger.tables."""
        return next((copy_of(row) for row in self._batches.values() if row.id == batch), None)

    def extents(self) -> dict[int, int]:
        """See ledger.tables."""
        return {number: row.items for number, row in self._batches.items()}

    def tallies(self, number: int) -> Tallies:
        """See ledger.tables."""
        return {key: list(tally) for key, tally in self._tallies[number].items()}

    def number_of(self, number: int, item: str) -> int | None:
        """See ledger.tables."""
        return next((row.n for row in self._items[number].values() if row.id == item), None)

    def open_intents(self, number: int, ns: Sequence[int]) -> list[OpenIntent]:
        """See ledger.tables."""
        table, items = self._opens[number], self._items[number]
        return [as_open(table[n], items[n], self._requests[number, n]) for n in sorted(set(ns)) if n in table]

    def workers(self, number: int) -> list[WorkerRow]:
        """See ledger.tables."""
        return [copy_of(row) for row in self._workers.values() if row.batch == number and row.left_us is None]

    def meta(self) -> Mapping[str, str]:
        """See ledger.tables."""
        return self._meta

    def batches(self, batch: str | None) -> list[BatchRow]:
        """See ledger.tables."""
        return [copy_of(row) for row in reversed(self._batches.values()) if batch is None or row.id == batch]

    def standing(self, batch: str) -> Standing | None:
        """See ledger.tables."""
        row = self.batch(batch)
        return None if row is None else (row, self.tallies(row.number), self.workers(row.number))

    def items(self, number: int, *, states: Sequence[ItemState], after_n: int, limit: int) -> list[Item]:
        """See ledger.tables."""
        rows = [row for n, row in sorted(self._items[number].items()) if n > after_n]
        return [as_item(row) for row in rows if not states or row.state in states][:limit]

    def billing(self, number: int) -> Iterator[str]:
        """See ledger.protocol."""
        for _, row in sorted(self._items[number].items()):
            minor = "" if row.billed_minor is None else str(row.billed_minor)
            cells = (str(row.n), row.id, row.reference or "", row.state.value, row.settlement.value, minor,
                     row.billed_currency or "", row.target, ".")  # fmt: skip
            yield "\x1f".join(cells) + "\n"

    def item(self, number: int, item: str) -> Item | None:
        """See ledger.tables."""
        n = self.number_of(number, item)
        return None if n is None else as_item(self._items[number][n])

    def events(self, number: int | None, *, n: int | None, after_seq: int, limit: int) -> list[Event]:
        """See ledger.tables."""
        batch = self._batch_id(number)
        later = self._events[max(0, after_seq) :]
        return [e for e in later if (number is None or e.batch == batch) and (n is None or (e.n or 0) == n)][:limit]

    def outputs(self, number: int, *, after_n: int, limit: int) -> list[Output]:
        """See ledger.tables."""
        items = self.items(number, states=(), after_n=after_n, limit=limit)
        none = OutputRow(0, None, None)
        rows = ((item, self._outputs.get((number, item.n), none)) for item in items)
        return [Output(item, row.output, load(row.kept or "{}")) for item, row in rows]

    def findings(self, number: int) -> list[Finding]:
        """See ledger.tables."""
        return [finding for batch, finding in self._findings if batch == number]

    def acted_targets(self, number: int) -> Iterator[list[str]]:
        """See ledger.overlap_port."""
        yield [row.target for row in self._items[number].values() if row.state in ACTING]

    def acting_on(self, number: int, targets: Sequence[str]) -> list[Acting]:
        """See ledger.overlap_port."""
        batch, asked = self._batches[number].id, set(targets)
        return [
            Acting(batch, row.id, row.target, row.state, money(row.minor, row.currency))
            for _, row in sorted(self._items[number].items())
            if row.state in ACTING and row.target in asked
        ]

    def check(self) -> list[str]:
        """See ledger.tables."""
        faults = check_trail(((e.seq, e.body) for e in self._events), self._head)
        for number, row in self._batches.items():
            faults += check_batch(row, self._items[number].values(), self._opens[number], self._tallies[number])
        return faults

    def _batch_id(self, number: int | None) -> str | None:
        return None if number is None else self._batches[number].id

    # rows as they are: not to be changed

    def head(self) -> Head:
        """The head of the trail."""
        return self._head.copy()

    def item_rows(self, number: int, *, first: int = 1, last: int | None = None) -> Iterator[ItemRow]:
        """A batch's items from ``first`` to ``last``, in input order."""
        table = self._items[number]
        end = len(table) if last is None else min(last, len(table))
        return (table[n] for n in range(first, end + 1))

    def sealed(self, number: int, *, first: int = 1, last: int | None = None) -> Iterator[SealedRow]:
        """See ledger.tables."""
        rows = self.item_rows(number, first=first, last=last)
        return ((r.id, r.target, r.minor, r.currency, r.fields) for r in rows)

    def open_rows(self, number: int) -> dict[int, OpenRow]:
        """All open intents of a batch, without their requests."""
        return dict(self._opens[number])

    def request_of(self, number: int, n: int) -> Request | None:
        """The request of an open intent."""
        return self._requests.get((number, n))

    def payload_rows(self) -> list[PayloadRow]:
        """All kept payloads, by event; of those that were erased, the digest."""
        return [kept for _, kept in sorted(self._payloads.items())]

    def output_rows(self, number: int) -> dict[int, OutputRow]:
        """What the calls of a batch's items returned."""
        return {n: row for (batch, n), row in self._outputs.items() if batch == number}

    def worker_rows(self) -> list[WorkerRow]:
        """All workers of all batches, by fence."""
        return [row for _, row in sorted(self._workers.items())]

    def event_rows(self) -> list[Event]:
        """All events, in sequence."""
        return self._events

    def strangers(self) -> list[str]:
        """Names of tables in which a row belongs to none of the batches."""
        known = self._batches.keys()
        of_batches = {
            "items": self._items.keys(),
            "intents": self._opens.keys(),
            "tallies": self._tallies.keys(),
            "outputs": {number for number, _ in self._outputs},
            "workers": {row.batch for row in self._workers.values()},
            "findings": {number for number, _ in self._findings},
            "payloads": {row.batch for row in self._payloads.values()},
        }
        return [table for table, numbers in of_batches.items() if not numbers <= known]
