"""The part of the trail that one transaction appends: events get their number, time and hash here and nowhere else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from payonce.core.events import iso
from payonce.ledger.merkle import Head, Node, mark_of
from payonce.ledger.rows import Entry, PayloadRow

_SORTED = orjson.OPT_SORT_KEYS
# Copying a started hash is cheaper than starting one: the prefix of a leaf (RFC 6962) is in it already.
_LEAF = hashlib.sha256(b"\x00")
# A named tuple of as many fields as it has, without the call of its own that counts them.
_made = tuple.__new__


class Log:
    """Events of one transaction over the head it began with.

    All of them carry the transaction's time, which is never before the last event's: ``max(clock, last event)``.
    """

    __slots__ = ("_at", "entries", "head", "nodes", "now_us", "payloads")

    def __init__(self, head: Head, *, clock_us: int) -> None:
        self.head = head
        self.now_us = max(clock_us, head.last_us)
        self.entries: list[Entry] = []
        self.nodes: list[Node] = []
        self.payloads: list[PayloadRow] = []
        self._at = iso(self.now_us)

    def emit(
        self,
        body: dict[str, Any],
        *,
        batch: int | None = None,
        n: int | None = None,
        payloads: Mapping[str, bytes] | None = None,
    ) -> int:
        """Appends an event; ``body`` must hold no None and gets ``seq`` and ``at``. Returns its sequence number.

        ``payloads`` are stored beside the event, by kind, so that they can be erased; their digests are in it."""
        head = self.head
        seq = head.size + 1
        if payloads:
            self._keep(seq, body, payloads, batch or 0, n or 0)
        body["seq"] = seq
        body["at"] = self._at
        raw = orjson.dumps(body, option=_SORTED)
        leaf_sha256 = _LEAF.copy()
        leaf_sha256.update(raw)
        leaf = leaf_sha256.digest()
        self.entries.append(_made(Entry, (seq, batch, n, raw, mark_of(leaf))))
        if done := head.append(leaf):
            self.nodes += done
        head.last_us = self.now_us
        return seq

    def _keep(self, seq: int, body: dict[str, Any], payloads: Mapping[str, bytes], batch: int, n: int) -> None:
        for kind, kept in payloads.items():
            digest = hashlib.sha256(kept).digest()
            body[f"{kind}_kept"] = digest.hex()
            self.payloads.append(PayloadRow(seq, kind, batch, n, digest, kept))
