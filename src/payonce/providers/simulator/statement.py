"""The provider's own account of what it billed, as a CSV file or as JSON. Pure.

Oldest first; every execution that moves money is a row, and money that came back later is a second row with the same
id and a negative amount. Amounts are in minor units. Where calls are among the rows, four more columns give their cost
in USDC (major units), the official price, the multiplier and the contributor's credit.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from payonce.providers.simulator.behaviours import Config
from payonce.providers.simulator.objects import usdc
from payonce.providers.simulator.store import Effect, Store

COLUMNS = ("refund_id", "type", "charge", "amount", "currency", "created", "idempotency_key", "reference")
CALL_COLUMNS = ("cost", "official_price", "multiplier", "credit")
_MOVES_MONEY = frozenset({"refund", "payout", "transfer", "invoice", "call"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(at_us: int) -> str:
    """The time in UTC with microseconds, from microseconds since the epoch."""
    return (_EPOCH + timedelta(microseconds=at_us)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def statement_csv(store: Store, *, config: Config, account: str, asked: dict[str, Any], now: int) -> str:
    """The statement as CSV with a header line. `asked`: type, from and to (ISO 8601, compared as text)."""
    rows = list(_rows(store, config=config, account=account, asked=asked, now=now))
    columns = COLUMNS + CALL_COLUMNS if any("cost" in row for row in rows) else COLUMNS
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def statement_json(store: Store, *, config: Config, account: str, asked: dict[str, Any], now: int) -> dict[str, Any]:
    """The statement as one JSON document with the period that it covers."""
    return {
        "object": "statement",
        "account": account,
        "from": asked.get("from"),
        "to": asked.get("to") or iso(now - config.statement_lag_us),
        "data": list(_rows(store, config=config, account=account, asked=asked, now=now)),
    }


def _rows(store: Store, *, config: Config, account: str, asked: dict[str, Any], now: int) -> Iterator[dict[str, Any]]:
    last = now - config.statement_lag_us
    made: list[tuple[int, dict[str, Any]]] = []
    for effect in store.effects:
        if effect.account != account or effect.operation not in _MOVES_MONEY or effect.executed_at > last:
            continue
        made.append((effect.executed_at, _row(effect, config=config)))
        if store.came_back(effect):
            status, at = store.statuses[effect.id]
            row = _row(effect, config=config, at=at)
            name = f"{effect.operation}_{'failure' if status == 'failed' else status}"
            made.append((at, {**row, "type": name, "amount": -effect.amount_minor}))
    for at, row in sorted(made, key=lambda entry: entry[0]):
        if at <= last and _inside(row, asked):
            yield row


def _inside(row: dict[str, Any], asked: dict[str, Any]) -> bool:
    if asked.get("type") not in (None, row["type"]):
        return False
    start, end = asked.get("from"), asked.get("to")
    return (not start or row["created"] >= start) and (not end or row["created"] < end)


def _row(effect: Effect, *, config: Config, at: int | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "refund_id": effect.id,
        "type": effect.operation,
        "charge": effect.target,
        "amount": effect.amount_minor,
        "currency": effect.currency,
        "created": iso(effect.executed_at if at is None else at),
        "idempotency_key": (effect.key or "") if config.keys == "honoured" else "",
        "reference": effect.ref or "",
    }
    if effect.operation == "call":
        detail = effect.detail
        row |= {"cost": usdc(effect.amount_minor), "official_price": detail["official_price"]}
        row |= {"multiplier": detail["multiplier"], "credit": detail["credit"]}
    return row
