"""What the events of a batch come to, from the events alone: items by state, committed money by currency."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from payonce.core.errors import MoneyError
from payonce.core.money import format_minor, parse_minor
from payonce.trail.explain import EDGES, STATES
from payonce.trail.said import DECODER


class Totals:
    """The totals of all batches whose events are taken, in sequence."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str], int] = {}
        self._sealed: Counter[str] = Counter()
        self._billed: dict[tuple[str, str], tuple[int, str]] = {}
        self.unreadable = 0

    def take(self, body: bytes) -> None:
        """The next event."""
        try:
            said = DECODER.decode(body)
        except msgspec.MsgspecError:
            self.unreadable += 1
            return
        if said.batch is None:
            return
        if said.item is None:
            if said.type in ("sealed", "amended"):
                self._sealed[said.batch] += msgspec.json.decode(body).get("items", 0)
            return
        key = (said.batch, said.item)
        after = EDGES.get((self._states.get(key, 0), said.type))
        if after is None:
            return
        self._states[key] = after
        if said.type == "commit" and said.billed is not None:
            currency = said.billed_currency or said.currency or ""
            try:
                self._billed[key] = (parse_minor(said.billed, currency), currency)
            except MoneyError:
                self.unreadable += 1

    def as_json(self) -> dict[str, Any]:
        """By batch: items in all and by state, and committed money in major units."""
        shown: dict[str, Any] = {}
        for batch in sorted({name for name, _ in self._states} | set(self._sealed)):
            states = Counter(STATES[code].value for (name, _), code in self._states.items() if name == batch)
            states["planned"] += max(0, self._sealed[batch] - sum(states.values()))
            money: Counter[str] = Counter()
            for (name, _), (minor, currency) in self._billed.items():
                if name == batch:
                    money[currency] += minor
            committed = {currency: format_minor(minor, currency) for currency, minor in sorted(money.items())}
            counts = {state.value: states[state.value] for state in STATES}
            shown[batch] = {"items": {"total": sum(states.values()), **counts}, "committed": committed}
        return shown
