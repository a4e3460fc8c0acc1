"""The part of the trail that one transaction appends: events get their number, time and hash here and nowhere else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from payonce.core.events import iso, leaf_hashes
from payonce.ledger.forms import Form, escaped, is_safe
from payonce.ledger.merkle import Head, Node, mark_of, marks_of
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

    __slots__ = ("_at", "_said", "_texts", "at", "entries", "head", "nodes", "now_us", "payloads")

    def __init__(self, head: Head, *, clock_us: int) -> None:
        self.head = head
        self.now_us = max(clock_us, head.last_us)
        self.entries: list[Entry] = []
        self.nodes: list[Node] = []
        self.payloads: list[PayloadRow] = []
        self.at = iso(self.now_us)
        self._said: list[tuple[Form, tuple[Any, ...], int, int]] = []
        self._texts: list[str] = []

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
        if self._said:
            self.settle()
        head = self.head
        seq = head.size + 1
        if payloads:
            self._keep(seq, body, payloads, batch or 0, n or 0)
        body["seq"] = seq
        body["at"] = self.at
        raw = orjson.dumps(body, option=_SORTED)
        leaf_sha256 = _LEAF.copy()
        leaf_sha256.update(raw)
        leaf = leaf_sha256.digest()
        self.entries.append(_made(Entry, (seq, batch, n, raw, mark_of(leaf), None, ())))
        if done := head.append(leaf):
            self.nodes += done
        head.last_us = self.now_us
        return seq

    def say(self, form: Form, values: tuple[Any, ...], texts: Sequence[str], batch: int, n: int) -> None:
        """Appends an event of a known form about an item: what ``emit`` writes for the same, at a fraction of its price.

        ``values`` are those of the form but for the number, which is the last one; ``texts`` are those of them that may hold
        any character. The events said so far get their numbers and hashes together, with ``settle``."""
        self._said.append((form, values, batch, n))
        self._texts += texts

    def next_seq(self) -> int:
        """The number of the next event."""
        self.settle()
        return self.head.size + 1

    def settle(self) -> None:
        """Numbers and hashes what was said. Called before anything that asks for the head or the entries."""
        said, texts, self._said, self._texts = self._said, self._texts, [], []
        if not said:
            return
        if len(said) == 1:
            self._settle_one(*said[0], texts)
            return
        if not is_safe(texts):
            said = [(form, escaped(values), batch, n) for form, values, batch, n in said]
        head = self.head
        first = head.size + 1
        filled = [(*values, seq) for seq, (_, values, _, _) in enumerate(said, first)]
        bodies = [form.fill(*values).encode() for (form, _, _, _), values in zip(said, filled, strict=True)]
        leaves = leaf_hashes(bodies)
        self.entries += [
            _made(Entry, (seq, batch, n, raw, mark, form, values))
            for seq, (form, _, batch, n), values, raw, mark in zip(
                range(first, first + len(said)), said, filled, bodies, marks_of(leaves), strict=True
            )
        ]
        self.nodes += head.extend(leaves)
        head.last_us = self.now_us

    def _settle_one(self, form: Form, values: tuple[Any, ...], batch: int, n: int, texts: list[str]) -> None:
        """The same for a single event, without what only pays for many."""
        head = self.head
        seq = head.size + 1
        filled = (*(values if is_safe(texts) else escaped(values)), seq)
        raw = form.fill(*filled).encode()
        leaf_sha256 = _LEAF.copy()
        leaf_sha256.update(raw)
        leaf = leaf_sha256.digest()
        self.entries.append(_made(Entry, (seq, batch, n, raw, mark_of(leaf), form, filled)))
        if done := head.append(leaf):
            self.nodes += done
        head.last_us = self.now_us

    def _keep(self, seq: int, body: dict[str, Any], payloads: Mapping[str, bytes], batch: int, n: int) -> None:
        for kind, kept in payloads.items():
            digest = hashlib.sha256(kept).digest()
            body[f"{kind}_kept"] = digest.hex()
            self.payloads.append(PayloadRow(seq, kind, batch, n, digest, kept))
