"""The writing side of a PostgreSQL ledger: one connection, explicit transactions, a few round trips each.

A transaction starts with the lock on the head of the trail, so writers come one after the other and no two ever wait for
each other. With the lock come, in the same round trip, the server's time and what is known to be needed next (the last
batch, its tallies and workers). Writes are gathered and go with the commit. Every statement is in sql/postgres/write.sql.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy

from payonce.core.errors import LedgerError
from payonce.core.model import Finding, OpenIntent
from payonce.ledger import postgres_save
from payonce.ledger.log import Log
from payonce.ledger.merkle import Head, pack
from payonce.ledger.newcomers import Block
from payonce.ledger.postgres_bulk import add_items
from payonce.ledger.postgres_clock import ServerClock
from payonce.ledger.postgres_link import Link, Statement
from payonce.ledger.postgres_near import Laid, Near
from payonce.ledger.postgres_rows import batch_columns, new_batch_columns, to_batch, to_item, to_open, to_open_intent
from payonce.ledger.postgres_values import bigints, held, texts, told
from payonce.ledger.queries import queries
from payonce.ledger.rows import BatchRow, ItemRow, OpenRow, Saved, Tallies, WorkerRow, load
from payonce.ledger.sqlite_rows import STATE_CODE, place, to_head, to_tallies, to_worker, worker_columns
from payonce.ledger.trail_port import SealedRow

_SEALED_AT_ONCE = 5000


class PostgresTables:
    """The rows of a ledger in PostgreSQL, as ``ledger.tables`` asks for them.

    ``after`` is called with the head once a commit is durable.
    """

    def __init__(self, link: Link, *, clock: ServerClock, after: Callable[[Head], None]) -> None:
        self._link = link
        self._sql = queries("postgres", "write")
        self._reads = queries("postgres", "read")
        self._clock = clock
        self._after = after
        self._head: Head | None = None
        self._turn = -1
        self._unchanged = False
        self._appended = False
        self._last: str | None = None  # the batch that the next transaction will most likely be about
        self._near: Near | None = None
        self._laid = Laid()
        self._targets: dict[int, bool] = {}

    # transactions

    def begin(self) -> Head:
        """See ledger.tables."""
        sql = self._sql
        start: list[Statement] = [(sql["begin"], ()), (sql["head"], ()), (sql["clock"], ())]
        _, head, clock, *near = self._link.ask_all(*start, *self._about(self._last))
        (*columns, turn), now_us = head[0], clock[0][0]
        self._clock.heard(now_us)
        self._unchanged = turn == self._turn and self._head is not None
        if self._head is None or not self._unchanged:
            self._head = to_head(columns)
        self._turn = turn
        self._appended = False
        self._take_near(near)
        return self._head

    def _about(self, batch: str | None) -> list[Statement]:
        if batch is None:
            return []
        return [(self._sql[name], (batch,)) for name in ("batch", "tallies_of", "workers_of")]

    def _take_near(self, found: list[list[tuple[object, ...]]]) -> None:
        self._near, self._laid = None, Laid()
        if found and found[0]:
            row = to_batch(found[0][0])
            self._targets[row.number] = row.targets
            self._near = Near(row, to_tallies(found[1]), [to_worker(worker) for worker in found[2]])

    def unchanged(self) -> bool:
        """See ledger.tables."""
        return self._unchanged

    def append(self, log: Log) -> None:
        """See ledger.tables."""
        for sql, parameters in postgres_save.of_log(log):
            self._link.later(sql, *parameters)
        self._head = log.head
        self._appended = True

    def commit(self) -> None:
        """See ledger.tables. Everything that was gathered goes in one round trip with the commit itself.

        A connection that breaks in it leaves open whether the transaction is there: what waits for it counts as not
        written, and the next start finds out.
        """
        head = self._head
        assert head is not None, "a commit has a transaction"
        if self._appended:
            self._link.later(self._sql["save_head"], head.size, head.last_us, head.last_leaf, pack(head.peaks))
        else:
            self._link.later(self._sql["take_turn"])
        try:
            self._link.ask("COMMIT")
        except LedgerError as fault:
            if fault.code == "ledger_unreachable":
                raise LedgerError(
                    f"{fault.message}; it was lost during a commit, which may or may not have been made",
                    code=fault.code,
                    hint=fault.hint,
                ) from fault
            raise
        self._turn += 1
        if self._appended:
            self._after(head)

    def rollback(self) -> None:
        """See ledger.tables."""
        self._head = None
        self._near, self._laid = None, Laid()
        self._link.roll_back()

    # batches and items

    def batch(self, batch: str) -> BatchRow | None:
        """See ledger.tables."""
        if self._near is None or self._near.row.id != batch:
            self._take_near(self._link.ask_all(*self._about(batch)))
        if self._near is None:
            return None
        self._last = batch
        return copy(self._near.row)

    def extents(self) -> dict[int, int]:
        """See ledger.tables."""
        return dict(self._link.ask(self._sql["extents"]))

    def add_batch(self, row: BatchRow) -> int:
        """See ledger.tables."""
        number = int(self._link.ask(self._sql["add_batch"], *new_batch_columns(row))[0][0])
        self._targets[number] = row.targets
        return number

    def add_items(self, number: int, blocks: Iterable[Block]) -> None:
        """See ledger.tables."""
        add_items(self._link, number, blocks)

    def save_batch(self, row: BatchRow) -> None:
        """See ledger.tables."""
        self._link.later(self._sql["save_batch"], *batch_columns(row), row.number)

    def tallies(self, number: int) -> Tallies:
        """See ledger.tables."""
        near = self._near
        if near is not None and near.row.number == number:
            return {key: list(tally) for key, tally in near.tallies.items()}
        return to_tallies(self._link.ask(self._sql["tallies"], number))

    def save_tallies(self, number: int, changed: Tallies) -> None:
        """See ledger.tables."""
        states, currencies = zip(*changed, strict=True) if changed else ((), ())
        counts = list(changed.values())
        self._link.later(
            self._sql["save_tallies"],
            number,
            bigints([STATE_CODE[state] for state in states]),
            texts(currencies),
            bigints([items for items, _ in counts]),
            bigints([minor for _, minor in counts]),
        )

    def rows(self, number: int, ns: Sequence[int]) -> list[ItemRow]:
        """See ledger.tables. Open intents and holders of the targets come along, since they are asked for next."""
        places = bigints([place(number, n) for n in ns])
        statements: list[Statement] = [(self._sql["rows"], (places,)), (self._sql["opens"], (places,))]
        if self._targets.get(number):
            statements.append((self._sql["holders_of"], (number, places)))
        items, opens, *holders = self._link.ask_all(*statements)
        found = [to_item(row) for row in items]
        self._laid = Laid(
            frozenset(ns),
            {row[0]: to_open(row) for row in opens},
            frozenset(row.target for row in found) if holders else frozenset(),
            dict(holders[0]) if holders else {},
        )
        return found

    def number_of(self, number: int, item: str) -> int | None:
        """See ledger.tables."""
        found = self._link.ask(self._sql["number_of"], number, held(item))
        return int(found[0][0]) if found else None

    def sealed(self, number: int, *, first: int, last: int) -> Iterator[SealedRow]:
        """See ledger.tables."""
        for start in range(first, last + 1, _SEALED_AT_ONCE):
            end = min(start + _SEALED_AT_ONCE - 1, last)
            yield from self._link.ask(self._sql["sealed"], place(number, start), place(number, end))

    def planned_after(self, number: int, after_n: int, limit: int) -> list[ItemRow]:
        """See ledger.tables."""
        rows = self._link.ask(self._sql["planned_after"], place(number), place(number, after_n), limit)
        return [to_item(row) for row in rows]

    def opens(self, number: int, ns: Sequence[int]) -> list[OpenRow]:
        """See ledger.tables."""
        laid = self._laid
        if laid.ns.issuperset(ns):
            return [laid.opens[n] for n in ns if n in laid.opens]
        return [to_open(row) for row in self._link.ask(self._sql["opens"], bigints([place(number, n) for n in ns]))]

    def open_intents(self, number: int, ns: Sequence[int]) -> list[OpenIntent]:
        """See ledger.tables."""
        rows = self._link.ask(self._reads["open_intents"], bigints([place(number, n) for n in ns]))
        return [to_open_intent(row) for row in rows]

    def holders(self, number: int, targets: Sequence[str]) -> dict[str, int]:
        """See ledger.tables."""
        if self._laid.targets.issuperset(targets):
            return self._laid.holders
        return dict(self._link.ask(self._sql["holders"], number, texts(targets)))

    def orphans(self, number: int, living: Collection[int], limit: int) -> list[int]:
        """See ledger.tables."""
        return [row[0] for row in self._link.ask(self._sql["orphans"], number, bigints(sorted(living)), limit)]

    def save(self, number: int, saved: Saved) -> None:
        """See ledger.tables."""
        self._laid = Laid()
        for sql, parameters in postgres_save.of_saved(number, saved, targets=self._targets[number]):
            self._link.later(sql, *parameters)

    def erase(self, number: int, n: int, *, fields: str, seq: int) -> None:
        """See ledger.tables."""
        where = place(number, n)
        self._link.later(self._sql["erase_fields"], None if fields == "{}" else fields, where)
        self._link.later(self._sql["erase_payloads"], seq, where)
        self._link.later(self._sql["erase_output"], where)

    # workers

    def add_worker(self, row: WorkerRow) -> int:
        """See ledger.tables."""
        self._forget_workers()
        return int(self._link.ask(self._sql["add_worker"], *worker_columns(row))[0][0])

    def worker(self, fence: int) -> WorkerRow | None:
        """See ledger.tables."""
        near = self._near.workers if self._near is not None else None
        for row in near or ():
            if row.fence == fence:
                return copy(row)
        found = self._link.ask(self._sql["worker"], fence)
        return to_worker(found[0]) if found else None

    def workers(self, number: int) -> list[WorkerRow]:
        """See ledger.tables."""
        near = self._near
        if near is not None and near.row.number == number and near.workers is not None:
            return [copy(row) for row in near.workers]
        return [to_worker(row) for row in self._link.ask(self._sql["workers"], number)]

    def save_worker(self, row: WorkerRow) -> None:
        """See ledger.tables."""
        self._forget_workers()
        self._link.later(self._sql["save_worker"], row.lease_until_us, row.left_us, row.fence)

    def _forget_workers(self) -> None:
        if self._near is not None:
            self._near.workers = None

    def findings(self, number: int) -> list[Finding]:
        """See ledger.tables."""
        rows = self._link.ask(self._reads["findings"], number)
        return [Finding(kind, item, load(data), state, id_, opened) for id_, item, kind, data, state, opened in rows]

    def claimed(self, references: Sequence[str]) -> frozenset[str]:
        """See ledger.tables."""
        rows = self._link.ask(self._sql["claimed"], texts([held(reference) for reference in references]))
        return frozenset(told(row[0]) or "" for row in rows)

    def claimed_on(self, references: Sequence[str], target: str) -> list[tuple[str, str]]:
        """See ledger.tables."""
        rows = self._link.ask(
            self._sql["claimed_on"], texts([held(reference) for reference in references]), held(target)
        )
        return [(told(reference) or "", told(spec) or "") for reference, spec in rows]

    def meta(self) -> Mapping[str, str]:
        """See ledger.tables."""
        return dict(self._link.ask(self._reads["meta"]))

    def save_meta(self, name: str, value: str) -> None:
        """See ledger.tables."""
        self._link.later(self._sql["save_meta"], name, value)
