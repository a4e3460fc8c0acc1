"""The reading side of a PostgreSQL ledger, on a connection of its own: it sees what is durable and never waits for a
write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final

from payonce.core.model import Event, Finding, Item, OpenIntent
from payonce.core.states import ItemState
from payonce.ledger.audit import check_batch, check_trail
from payonce.ledger.merkle import Head, Node
from payonce.ledger.postgres_clock import ServerClock
from payonce.ledger.postgres_link import Link, Statement
from payonce.ledger.postgres_overlap import PostgresOverlaps
from payonce.ledger.postgres_rows import to_batch, to_item, to_open, to_open_intent
from payonce.ledger.postgres_values import bigints, told
from payonce.ledger.protocol import LedgerInfo, Output
from payonce.ledger.queries import queries
from payonce.ledger.rows import BatchRow, ItemRow, as_item, load
from payonce.ledger.sqlite_rows import MASK, SHIFT, STATE_CODE, place, to_head, to_tallies, to_worker
from payonce.ledger.tables import Standing

# The names of meta's rows.
LEDGER_ID: Final = "id"
SCHEMA: Final = "schema"


class PostgresReads(PostgresOverlaps):
    """What is durable in a PostgreSQL ledger, as ``ledger.tables`` asks for it. ``open_link`` makes one more connection."""

    def __init__(self, link: Link, *, clock: ServerClock, open_link: Callable[[], Link]) -> None:
        self._link = link
        self._clock = clock
        self._open = open_link
        self._sql = queries("postgres", "read")

    def info(self) -> LedgerInfo:
        """See ledger.tables."""
        meta, head = self._link.ask_all((self._sql["meta"], ()), (self._sql["head"], ()))
        facts, top = dict(meta), to_head(head[0])
        return LedgerInfo(
            id=facts[LEDGER_ID],
            url=self._link.place,
            schema=int(facts[SCHEMA]),
            events=top.size,
            root=top.root().hex(),
            durable=True,
            one_process=False,
            one_host=False,
        )

    def meta(self) -> dict[str, str]:
        """Facts about the ledger itself."""
        return dict(self._ask("meta"))

    def head(self) -> Head:
        """The head of the trail."""
        return to_head(self._ask("head")[0])

    def batches(self, batch: str | None) -> list[BatchRow]:
        """See ledger.tables."""
        return [to_batch(row) for row in self._ask("batches", batch)]

    def standing(self, batch: str) -> Standing | None:
        """See ledger.tables. All of it is of one instant; the server's time comes along, for the leases."""
        sql = self._sql
        about: list[Statement] = [(sql[name], (batch,)) for name in ("batches", "tallies_of", "workers_of")]
        start: Statement = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
        try:
            _, found, tallies, workers, clock, _ = self._link.ask_all(start, *about, (sql["clock"], ()), ("COMMIT", ()))
        finally:
            self._link.roll_back()
        self._clock.heard(clock[0][0])
        if not found:
            return None
        return to_batch(found[0]), to_tallies(tallies), [to_worker(worker) for worker in workers]

    def items(self, number: int, *, states: Sequence[ItemState], after_n: int, limit: int) -> list[Item]:
        """See ledger.tables."""
        start = (place(number), place(number, after_n), limit)
        if not states:
            return [as_item(to_item(row)) for row in self._ask("items", *start)]
        # One ordered scan for each state, so that none of them reads through all items of the others.
        pages = self._link.ask_all(*(self._in_state(state, start) for state in dict.fromkeys(states)))
        return [as_item(to_item(row)) for row in islice(merge(*pages, key=lambda row: row[0]), limit)]

    def _in_state(self, state: ItemState, start: tuple[int, int, int]) -> Statement:
        match state:
            case ItemState.PLANNED:
                return self._sql["items_planned"], start
            case ItemState.COMMITTED:
                return self._sql["items_committed"], start
            case ItemState.PENDING:
                return self._sql["items_open"], (*start, STATE_CODE[state])
            case ItemState.REFUSED | ItemState.UNKNOWN | ItemState.SKIPPED:
                return self._sql["items_ended_otherwise"], (*start, STATE_CODE[state])

    def item(self, number: int, item: str) -> Item | None:
        """See ledger.tables."""
        rows = self._ask("item", place(number), item)
        return as_item(to_item(rows[0])) if rows else None

    def open_intents(self, number: int, ns: Sequence[int]) -> list[OpenIntent]:
        """See ledger.tables."""
        return [to_open_intent(row) for row in self._ask("open_intents", bigints([place(number, n) for n in ns]))]

    def events(self, number: int | None, *, n: int | None, after_seq: int, limit: int) -> list[Event]:
        """See ledger.tables."""
        if number is None:
            asked: Statement = (self._sql["events"], (after_seq, limit))
        elif n is None:
            asked = (self._sql["events_of_batch"], (after_seq, limit, place(number)))
        else:
            asked = (self._sql["events_of_item"], (after_seq, limit, place(number, n)))
        # Asked for in this order, every batch that an event is of is among the names.
        rows, names = self._link.ask_all(asked, (self._sql["batch_ids"], ()))
        ids = dict(names)
        return [_event(row, ids) for row in rows]

    def billing(self, number: int) -> Iterator[str]:
        """See ledger.protocol. Read as it is consumed, of one instant."""
        with self._streaming("billing", place(number)) as pages:
            for page in pages:
                yield told("".join([line for (line,) in page])) or ""

    def outputs(self, number: int, *, after_n: int, limit: int) -> list[Output]:
        """See ledger.tables."""
        items = self.items(number, states=(), after_n=after_n, limit=limit)
        if not items:
            return []
        bounds = (place(number, items[0].n), place(number, items[-1].n))
        found = {n: (output, kept) for n, output, kept in self._ask("outputs", *bounds)}
        rows = ((item, *found.get(item.n, (None, None))) for item in items)
        return [Output(item, output, load(kept or "{}")) for item, output, kept in rows]

    def findings(self, number: int) -> list[Finding]:
        """See ledger.tables."""
        rows = self._ask("findings", number)
        return [Finding(kind, item, load(data), state, id_, opened) for id_, item, kind, data, state, opened in rows]

    def body(self, seq: int) -> bytes | None:
        """The canonical bytes of one event."""
        rows = self._ask("event", seq)
        return rows[0][0].encode() if rows else None

    def ends(self) -> tuple[Head, tuple[int, bytes] | None, dict[str, str]]:
        """The head, the last event there is and the facts about the ledger, of one instant."""
        with self._link.snapshot():
            head, last, meta = self._link.ask_all(*((self._sql[name], ()) for name in ("head", "last_event", "meta")))
        return to_head(head[0]), (last[0][0], last[0][1].encode()) if last else None, dict(meta)

    def check(self) -> list[str]:
        """See ledger.tables. One view of the ledger from start to end, while others may go on writing."""
        link = self._open()
        try:
            with link.snapshot():
                head, nodes, batches = link.ask_all(
                    (self._sql["head"], ()), (self._sql["nodes"], ()), (self._sql["batches"], (None,))
                )
                events = _each(link.stream(self._sql["all_events"]))
                bodies = ((seq, body.encode()) for seq, body in events)
                faulty = check_trail(bodies, to_head(head[0]), [Node(*row) for row in nodes])
                for row in batches:
                    faulty += self._check_batch(link, to_batch(row))
                return faulty
        finally:
            link.close()

    def _check_batch(self, link: Link, batch: BatchRow) -> list[str]:
        base = place(batch.number)
        opens, tallies = link.ask_all((self._sql["all_opens"], (base,)), (self._sql["tallies"], (batch.number,)))
        items: Iterator[ItemRow] = (to_item(row) for row in _each(link.stream(self._sql["all_items"], base)))
        return check_batch(batch, items, {row[0]: to_open(row) for row in opens}, to_tallies(tallies))

    def _streaming(self, name: str, *parameters: Any) -> _Streaming:
        return _Streaming(self._open(), (self._sql[name], parameters))

    def _ask(self, name: str, *parameters: Any) -> list[Any]:
        return self._link.ask(self._sql[name], *parameters)


class _Streaming:
    """Pages of rows from a connection of their own, of one instant; it is closed with the block."""

    def __init__(self, link: Link, statement: Statement) -> None:
        self._link = link
        self._statement = statement

    def __enter__(self) -> Iterator[list[Any]]:
        try:
            self._link.ask("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        except BaseException:
            self._link.close()
            raise
        sql, parameters = self._statement
        return self._link.stream(sql, *parameters)

    def __exit__(self, *_: object) -> None:
        self._link.close()


def _each(pages: Iterator[list[Any]]) -> Iterator[Any]:
    for page in pages:
        yield from page


def _event(row: tuple[int, int | None, str], ids: dict[int, str]) -> Event:
    seq, where, body = row
    if where is None:
        return Event(seq, None, None, body.encode())
    return Event(seq, ids[where >> SHIFT], (where & MASK) or None, body.encode())
