"""What paid calls come to, as such providers export it: a row a call, or totals a day and model. Pure.

The layouts are OpenRouter's activity export and activity endpoint. Costs are exact, as the provider counts them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import orjson

from payonce.providers.simulator.behaviours import Config
from payonce.providers.simulator.statement import iso
from payonce.providers.simulator.store import Effect, Store

COLUMNS = (
    "generation_id", "created_at", "cost_total", "tokens_prompt", "tokens_completion", "model_permaslug", "provider_name",
    "cancelled", "streamed", "user",
)  # fmt: skip


def activity_csv(store: Store, *, config: Config, account: str, now: int) -> str:
    """A row a call, oldest first."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for effect in _calls(store, config=config, account=account, now=now):
        detail = effect.detail
        at = iso(effect.executed_at)[:23].replace("T", " ")
        writer.writerow(
            [effect.id, at, f"{Decimal(detail['exact_cost']):f}", detail["prompt_tokens"], detail["completion_tokens"],
             effect.target, "Simulated", "false", "false", effect.ref or ""]
        )  # fmt: skip
    return out.getvalue()


def activity_json(store: Store, *, config: Config, account: str, now: int) -> dict[str, Any]:
    """Totals a UTC day and model."""
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for effect in _calls(store, config=config, account=account, now=now):
        day = iso(effect.executed_at)[:10]
        row = sums.setdefault(
            (day, effect.target),
            {"date": day, "model": effect.target, "requests": 0, "usage": Decimal(0), "prompt_tokens": 0,
             "completion_tokens": 0},
        )  # fmt: skip
        row["requests"] += 1
        row["usage"] += Decimal(effect.detail["exact_cost"])
        row["prompt_tokens"] += effect.detail["prompt_tokens"]
        row["completion_tokens"] += effect.detail["completion_tokens"]
    return {"data": [{**row, "usage": orjson.Fragment(f"{row['usage']:f}")} for row in sums.values()]}


def _calls(store: Store, *, config: Config, account: str, now: int) -> Iterator[Effect]:
    last = now - config.statement_lag_us
    for effect in store.effects:
        if effect.account == account and effect.operation == "call" and effect.executed_at <= last:
            yield effect
