"""The JSON shapes that other programs read: status, items, events, plans. Fixed names, which only grow.

Amounts are text in major units, times ISO 8601 in UTC with microseconds; nothing is ever a float but a duration in
seconds. docs/reference/json.md is the written contract and is checked against these functions.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, assert_never

import orjson

from payonce.core.events import iso
from payonce.core.model import Batch, Event, Item, OpenIntent, Status
from payonce.core.money import format_minor
from payonce.core.states import BatchState, ItemState


def is_open(batch: Batch) -> bool:
    """Whether items are added to the batch one by one, from Python: it was never sealed as a whole, with no provider settings bound."""
    return batch.spec.provider == "python" and "provider_digest" not in batch.spec.config


def shown_state(status: Status) -> str:
    """The batch's state as people should read it: running only where a process works on it.

    A batch whose process was killed is ``interrupted``. A batch that items are added to one by one, from Python, has no
    process of its own and stays ``running``.
    """
    if status.batch.state is BatchState.RUNNING and not status.live_workers and not is_open(status.batch):
        return BatchState.INTERRUPTED.value
    return status.batch.state.value


def status_json(status: Status) -> dict[str, Any]:
    """A batch's counts, money and calls, as ``payonce status --json`` and the end of ``payonce run --json`` show them."""
    batch = status.batch
    counts = {state.value: status.count(state) for state in ItemState}
    return {
        "batch": batch.spec.id,
        "state": shown_state(status),
        "open": is_open(batch),
        "items": {"total": batch.items, **counts},
        "money": {currency: _money(status, currency) for currency in currencies(status)},
        "calls": {"sent": status.calls_sent, "lookups": status.lookups, "rate_limited": status.rate_limited},
        "reason": batch.reason,
        "reason_code": batch.reason_code,
        "operation": batch.spec.operation,
        "provider": batch.spec.provider,
        "account": batch.spec.account,
        "mode": batch.spec.mode,
        "sealed_at": time_text(batch.created_us),
        "started_at": time_text(batch.started_us),
        "ended_at": time_text(batch.ended_us),
    }


def currencies(status: Status) -> tuple[str, ...]:
    """The currencies that a batch's money is in or is limited in, sorted."""
    return tuple(sorted({*status.currencies, *_sealed_totals(status.batch), *_budget(status.batch)}))


def planned_minor(status: Status, currency: str) -> int:
    """What the sealed items come to in minor units.

    Taken from the seal where it says so; the tallies hold what was billed for committed items, which may differ.
    """
    sealed = _sealed_totals(status.batch).get(currency)
    return status.minor(currency, *ItemState) if sealed is None else int(sealed)


def budget_minor(batch: Batch, currency: str) -> int | None:
    """The budget in minor units, or None where the currency has none."""
    limit = _budget(batch).get(currency)
    return None if limit is None else int(limit)


def item_json(item: Item) -> dict[str, Any]:
    """One item, as ``payonce items --json`` shows it, one a line."""
    return {
        "item": item.id,
        "target": item.target,
        "amount": item.money.text if item.money else None,
        "currency": item.money.currency if item.money else None,
        "state": item.state.value,
        "settlement": item.settlement.value,
        "reference": item.reference,
        "billed": item.billed.text if item.billed else None,
        "billed_currency": item.billed.currency if item.billed else None,
        "attempts": item.attempts,
        "generation": item.generation,
        "code": item.code,
        "message": item.message,
        "updated_at": time_text(item.updated_us),
        "n": item.n,
    }


def intent_json(intent: OpenIntent) -> dict[str, Any]:
    """An open intent: its key, when its call left if it did, and what resolving it waits for."""
    return {
        "key": intent.key,
        "sent": time_text(intent.sent_us),
        "send_by": time_text(intent.send_by_us),
        "deadline": time_text(intent.deadline_us),
        "seen": time_text(intent.seen_us),
        "retry_at": time_text(intent.retry_at_us),
        "lookups": intent.lookups,
    }


def next_step(item: Item, batch: str) -> str | None:
    """What has to be done with an item, in words; None where nothing has."""
    match item.state:
        case ItemState.PLANNED:
            return (
                f"payonce run sends it; not before {iso(item.not_before_us)}"
                if item.not_before_us
                else "payonce run sends it"
            )
        case ItemState.PENDING:
            return "payonce run resolves it: it is looked up or sent again under the same key, as the provider allows"
        case ItemState.UNKNOWN:
            return (
                f"find out at the provider, then payonce resolve {shlex.quote(batch)} {shlex.quote(item.id)} "
                "--as committed|refused|planned --reason TEXT"
            )
        case ItemState.REFUSED | ItemState.SKIPPED:
            return f"payonce retry {shlex.quote(batch)} {shlex.quote(item.id)} --reason TEXT puts it back, if it is to be tried again"
        case ItemState.COMMITTED:
            return None
        case _:
            assert_never(item.state)


def event_json(event: Event) -> dict[str, Any]:
    """One entry of the trail: its body with its sequence number."""
    body = orjson.loads(event.body)
    return {"seq": event.seq, **body} if isinstance(body, dict) else {"seq": event.seq, "body": body}


def time_text(us: int | None) -> str | None:
    """Microseconds since the epoch as ISO 8601 in UTC; None for no time."""
    return iso(us) if us else None


def _money(status: Status, currency: str) -> dict[str, str | None]:
    budget = budget_minor(status.batch, currency)
    reserved = status.minor(currency, ItemState.PENDING, ItemState.UNKNOWN)
    return {
        "planned": format_minor(planned_minor(status, currency), currency),
        "committed": format_minor(status.minor(currency, ItemState.COMMITTED), currency),
        "reserved": format_minor(reserved, currency),
        "budget": None if budget is None else format_minor(budget, currency),
    }


def _sealed_totals(batch: Batch) -> Mapping[str, Any]:
    found = batch.spec.config.get("totals")
    return found if isinstance(found, Mapping) else {}


def _budget(batch: Batch) -> Mapping[str, Any]:
    found = batch.limits.get("budget")
    return found if isinstance(found, Mapping) else {}
