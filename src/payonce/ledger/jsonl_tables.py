"""The rows of a JSON Lines ledger: in memory, rebuilt from the file at open, each change written down as it is made.

What is written down here is taken in again by ``jsonl_replay``; that both come to the same is tested with random histories.
Bodies of events stay in the file; memory keeps where each is.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from payonce.core.errors import LedgerError
from payonce.core.events import leaf_hash
from payonce.core.model import Event
from payonce.ledger import jsonl_rows as cells
from payonce.ledger.jsonl_events import JsonlEvents
from payonce.ledger.jsonl_file import JsonlFile
from payonce.ledger.jsonl_frames import ROWS, damaged
from payonce.ledger.jsonl_replay import settle, take_in
from payonce.ledger.log import Log
from payonce.ledger.memory_indexed import IndexedTables
from payonce.ledger.merkle import Head, Node
from payonce.ledger.newcomers import Block
from payonce.ledger.rows import BatchRow, Saved, Tallies, WorkerRow


class JsonlTables(IndexedTables):
    """What ``ledger.tables`` asks for, over a file that is open for writing or for reading only."""

    def __init__(self, file: JsonlFile, *, after: Callable[[Head], None] | None = None) -> None:
        super().__init__("")
        self.path = file.path
        self.said_only: dict[tuple[int, int], dict[str, Any]] = {}
        self._file = file
        self._after = after
        self._damage: LedgerError | None = None
        self._appended = False
        self._ops: list[list[Any]] = []
        self.trail = JsonlEvents(file)

    # from the file

    def name(self, ledger: str) -> None:
        """What the first line of the file says: the ledger's identity."""
        self._id = self._meta["id"] = ledger

    def catch_up(self) -> None:
        """Takes in the groups that the file has and memory does not. Raises LedgerError where one is damaged; nothing
        can be read from here any more then."""
        if self._damage is not None:
            raise self._damage
        try:
            for group in self._file.fresh():
                take_in(self, group)
            settle(self)
        except LedgerError as error:
            self._damage = error
            raise
        if not self._id:
            raise damaged(str(self.path), 1, "is not closed")

    # transactions

    def begin(self) -> Head:
        """See ledger.tables."""
        self._ops, self._appended = [], False
        self._new_nodes: list[Node] = []
        self._new_places: list[tuple[int | None, list[int]]] = []
        return super().begin()

    def append(self, log: Log) -> None:
        """See ledger.tables. Rows that were changed so far come before the events, in a line of their own."""
        for p in log.payloads:
            self._put(self._payloads, (p.seq, p.kind), p)
            self._ops.append(["payload", cells.as_payload(p)])
        self._write_rows()
        for e in log.entries:
            assert not e.body.startswith(b'{"$'), "no field of an event begins with a dollar sign"
            self.trail.add(self._file.add(e.body), len(e.body))
            if not self._new_places or self._new_places[-1][0] != e.batch:
                self._new_places.append((e.batch, []))
            self._new_places[-1][1].append(e.n or 0)
            self.trail.file_under(e.batch, [e.n or 0])
        for node in log.nodes:
            self._put(self.nodes, (node.level, node.index), node.hash)
            self._new_nodes.append(node)
        self._head = log.head.copy()
        self._appended = True

    def commit(self) -> None:
        """See ledger.tables. A transaction that changed nothing writes nothing."""
        self._write_rows()
        if self._appended:
            head = self._head
            said = [head.size, head.last_us, head.last_leaf.hex(), [peak.hex() for peak in head.peaks]]
            nodes = [[node.level, node.index, node.hash.hex()] for node in self._new_nodes]
            self._file.commit({"head": said, "places": self._new_places, "nodes": nodes})
        elif self._file.has_open_group:
            self._file.commit({})
        super().commit()
        if self._appended and self._after is not None:
            self._after(self._head)

    def rollback(self) -> None:
        """See ledger.tables."""
        self._file.rollback()
        super().rollback()
        self.trail.cut(self._head.size)

    def _write_rows(self) -> None:
        if self._ops:
            self._file.add(ROWS + orjson.dumps(self._ops) + b"}")
            self._ops = []

    def _say(self, *op: Any) -> None:
        """Writes a change down; ``jsonl_replay`` knows each of them."""
        self._ops.append(list(op))

    # changes

    def add_batch(self, row: BatchRow) -> int:
        """See ledger.tables."""
        self._say("batch", cells.changes(row, None))
        return super().add_batch(row)

    def add_items(self, number: int, blocks: Iterable[Block]) -> None:
        """See ledger.tables. A line for each block, so that a batch of millions passes through."""
        for block in blocks:
            rows = list(block.rows())
            self._add_rows(number, rows)
            said = [[row.id, row.target, row.minor, row.currency, row.fields] for row in rows]
            self._say("items", number, rows[0].n if rows else 0, rows[0].updated_us if rows else 0, said)
            self._write_rows()

    def save_batch(self, row: BatchRow) -> None:
        """See ledger.tables."""
        said = cells.changes(row, self._batches[row.number])
        if said:
            self._say("batch=", row.number, said)
            super().save_batch(row)

    def save_tallies(self, number: int, changed: Tallies) -> None:
        """See ledger.tables."""
        self._say("tallies", number, cells.as_tallies(changed))
        super().save_tallies(number, changed)

    def save(self, number: int, saved: Saved) -> None:
        """See ledger.tables."""
        self._say("save", number, self._difference(number, saved))
        super().save(number, saved)

    def _difference(self, number: int, saved: Saved) -> dict[str, Any]:
        items = self._items[number]
        # One that is opened and changed at once is opened first.
        opens = ChainMap({row.n: row for row in saved.opened}, self._opens[number])
        begun = saved.begun
        said = {
            # One intent of a worker each, which changes the same of all of them.
            "begun": [begun[0].updated_us, *[row.n for row in begun]] if begun else [],
            "items": [[row.n, cells.changes(row, items[row.n])] for row in saved.moved()],
            "closed": saved.closed,
            "opened": [cells.as_open(row) for row in saved.opened],
            "changed": [[row.n, _but_request(cells.changes(row, opens[row.n]))] for row in saved.changed],
            "outputs": [cells.as_output(row) for row in saved.outputs],
            "findings": [cells.as_finding(row) for row in saved.findings],
        }
        return {name: value for name, value in said.items() if value}

    def erase(self, number: int, n: int, *, fields: str, seq: int) -> None:
        """See ledger.tables. The file is written anew afterwards, without what is erased (``JsonlLedger``)."""
        self._say("erase", number, n, fields, seq)
        super().erase(number, n, fields=fields, seq=seq)

    def add_worker(self, row: WorkerRow) -> int:
        """See ledger.tables."""
        self._say("worker", cells.as_worker(row))
        return super().add_worker(row)

    def save_worker(self, row: WorkerRow) -> None:
        """See ledger.tables."""
        self._say("worker=", row.fence, row.lease_until_us, row.left_us)
        super().save_worker(row)

    def save_meta(self, name: str, value: str) -> None:
        """See ledger.tables."""
        self._say("meta", name, value)
        super().save_meta(name, value)

    # reading

    def events(self, number: int | None, *, n: int | None, after_seq: int, limit: int) -> list[Event]:
        """See ledger.tables."""
        found: list[Event] = []
        for seq in islice(self.trail.seqs(number, n, after_seq=after_seq), limit):
            place = self.trail.place_of(seq)
            batch, item = (None, None) if place is None else (self._batches[place[0]].id, place[1] or None)
            found.append(Event(seq, batch, item, self.trail.body(seq) or b""))
        return found

    def present_workers(self) -> list[WorkerRow]:
        """All workers of all batches that have not left."""
        return [row for row in self._workers.values() if row.left_us is None]

    def trust_head(self) -> None:
        """The head and the last event agree. Raises LedgerError ``ledger_corrupt``."""
        last = self.trail.body(self._head.size)
        if (b"" if last is None else leaf_hash(last)) != self._head.last_leaf:
            raise damaged(str(self._file.path), self._head.size, "is not what the head of the trail says", word="event")


def meta_of(path: Path) -> dict[str, str]:
    """The facts that a ledger keeps about itself; none where it is no ledger or cannot be read. Changes nothing."""
    try:
        with JsonlFile.reading(path) as file:
            rows = JsonlTables(file)
            rows.catch_up()
            return dict(rows.meta())
    except LedgerError:
        return {}


def _but_request(said: dict[str, Any]) -> dict[str, Any]:
    """A stored row has no request, so its lack is no change: it is said only where there is a new one."""
    if said.get("request", ...) is None:
        del said["request"]
    return said
