"""The part of the trail that one transaction appends: events get their number, time and hash here and nowhere else."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from payonce.core.events import iso
from payonce.ledger.merkle import Head, Node, mark_of
from payonce.ledger.rows import Entry

_SORTED = orjson.OPT_SORT_KEYS


class Log:
    """Events of one transaction over the head it began with.

    All of them carry the transaction's time, which is never before the last event's: ``max(clock, last event)``.
    """

    __slots__ = ("_at", "entries", "head", "nodes", "now_us")

    def __init__(self, head: Head, *, clock_us: int) -> None:
        self.head = head
        self.now_us = max(clock_us, head.last_us)
        self.entries: list[Entry] = []
        self.nodes: list[Node] = []
        self._at = iso(self.now_us)

    def emit(self, body: dict[str, Any], *, batch: int | None = None, n: int | None = None) -> int:
        """Appends an event; ``body`` must hold no None and gets ``seq`` and ``at``. Returns its sequence number."""
        head = self.head
        seq = head.size + 1
        body["seq"] = seq
        body["at"] = self._at
        raw = orjson.dumps(body, option=_SORTED)
        leaf = hashlib.sha256(b"\x00" + raw).digest()
        self.entries.append(Entry(seq, batch, n, raw, mark_of(leaf)))
        done = head.append(leaf)
        head.last_us = self.now_us
        if done:
            self.nodes += done
        return seq
