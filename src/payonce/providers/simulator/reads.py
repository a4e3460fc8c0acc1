"""What the provider shows of its books: single objects, lists with cursors, charges, the usage log, the account.

An execution shows up only `lookup_lag` after it happened, and not at all where the provider offers no look-up. Lists
are newest first, as Stripe's are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from payonce.providers.simulator import dialects
from payonce.providers.simulator.activity import activity_csv, activity_json
from payonce.providers.simulator.behaviours import Account, Config
from payonce.providers.simulator.objects import charge_object, effect_object, usage_entry
from payonce.providers.simulator.plan import Reply
from payonce.providers.simulator.requests import OPERATIONS, charge_of, error, parse_form
from payonce.providers.simulator.rules import charge_at
from payonce.providers.simulator.statement import statement_csv, statement_json
from payonce.providers.simulator.store import Effect, Store

_TARGETS = ("charge", "destination", "customer", "model")
_COMPARE = {
    "gte": lambda value, limit: value >= limit,
    "gt": lambda value, limit: value > limit,
    "lte": lambda value, limit: value <= limit,
    "lt": lambda value, limit: value < limit,
}


@dataclass(frozen=True, slots=True)
class View:
    """What one read may see: the books, the behaviours, who asks, and when (microseconds)."""

    store: Store
    config: Config
    account: Account
    now: int

    def visible(self, effect: Effect) -> bool:
        """Whether look-ups show the effect already."""
        return effect.executed_at + self.config.lookup_lag_us <= self.now

    def show(self, effect: Effect) -> dict[str, Any]:
        """The effect as an object."""
        return effect_object(effect, store=self.store, config=self.config, now=self.now)


def read(view: View, *, path: str, query: str) -> Reply:
    """The answer to a GET. 404 for what does not exist, is not visible yet, or is not offered."""
    asked = parse_form(query)
    match path:
        case "/v1/account":
            return _ok({"id": view.account.id, "object": "account", "livemode": view.account.livemode})
        case "/v1/statement.csv" if view.config.statement:
            text = statement_csv(view.store, config=view.config, account=view.account.id, asked=asked, now=view.now)
            return Reply(200, text.encode(), content_type="text/csv; charset=utf-8")
        case "/v1/statement.json" if view.config.statement:
            return _ok(
                statement_json(view.store, config=view.config, account=view.account.id, asked=asked, now=view.now)
            )
        case "/v1/activity.csv" if view.config.statement:
            text = activity_csv(view.store, config=view.config, account=view.account.id, now=view.now)
            return Reply(200, text.encode(), content_type="text/csv; charset=utf-8")
        case "/api/v1/activity" if view.config.statement:
            return _ok(activity_json(view.store, config=view.config, account=view.account.id, now=view.now))
        case _:
            pass
    if path.startswith("/v1/charges/"):
        return _charge(view, path.removeprefix("/v1/charges/"))
    if not view.config.lookup:
        return error(404, "url_unrecognized", f"Unrecognized request URL (GET: {path}).")
    if path in OPERATIONS:
        return _list(view, operation=OPERATIONS[path], path=path, asked=asked)
    if path == "/api/v1/generation":
        effect = view.store.find(str(asked.get("id")), account=view.account.id)
        if effect is None or effect.operation != "call" or not view.visible(effect):
            return error(404, "resource_missing", "Generation not found")
        return _ok(dialects.generation(effect))
    if path == "/v1/usage":
        return _list(view, operation="call", path=path, asked=asked)
    return _single(view, path)


def _ok(shown: dict[str, Any]) -> Reply:
    return Reply(200, orjson.dumps(shown))


def _single(view: View, path: str) -> Reply:
    collection, _, effect_id = path.rpartition("/")
    operation = OPERATIONS.get(collection)
    effect = view.store.find(effect_id, account=view.account.id)
    if operation is None:
        return error(404, "url_unrecognized", f"Unrecognized request URL (GET: {path}).")
    if effect is None or effect.operation != operation or not view.visible(effect):
        return error(404, "resource_missing", f"No such {operation}: '{effect_id}'")
    return _ok(dialects.document(effect, view.show(effect)))


def _charge(view: View, charge_id: str) -> Reply:
    charge = charge_at(charge_id, store=view.store, config=view.config)
    if charge is None:
        return error(404, "resource_missing", f"No such charge: '{charge_id}'")
    refunded = sum(
        effect.amount_minor
        for effect in view.store.newest_first(view.account.id, "refund", "target", charge_id)
        if view.visible(effect) and not view.store.came_back(effect)
    )
    return _ok(charge_object(charge_id, charge=charge, refunded_minor=refunded))


def _list(view: View, *, operation: str, path: str, asked: dict[str, Any]) -> Reply:
    limit = str(asked.get("limit", "10"))
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit) <= 100):
        return error(400, "parameter_invalid_integer", "limit is a whole number from 1 to 100.")
    after = asked.get("starting_after")
    if after is not None and view.store.find(str(after), account=view.account.id) is None:
        return error(400, "resource_missing", f"No such {operation}: '{after}'")
    try:
        wanted = _created_filter(asked.get("created"))
    except ValueError:
        return error(400, "parameter_invalid", "created takes [gte], [gt], [lte], [lt] in whole seconds.")
    found: list[dict[str, Any]] = []
    more = False
    for effect in _candidates(view, operation=operation, asked=asked, after=after):
        if not view.visible(effect) or not all(
            _COMPARE[name](effect.executed_at // 1_000_000, value) for name, value in wanted
        ):
            continue
        if len(found) == int(limit):
            more = True
            break
        found.append(usage_entry(effect) if path == "/v1/usage" else view.show(effect))
    return _ok({"object": "list", "url": path, "has_more": more, "data": found})


def _candidates(view: View, *, operation: str, asked: dict[str, Any], after: str | None) -> Iterator[Effect]:
    """Effects under the narrowest index there is for the filters, then the other filters."""
    intent = asked.get("payment_intent")
    target = next((str(asked[name]) for name in _TARGETS if asked.get(name)), None)
    if target is None and intent:
        target = view.store.by_intent.get(str(intent)) or charge_of(intent)
    ref = asked.get("user") or asked.get("reference")
    place: tuple[str, ...] = (view.account.id, operation)
    if target is not None:
        place += ("target", target)
    elif ref is not None:
        place += ("ref", str(ref))
    for effect in view.store.newest_first(*place, before=after):
        if ref is None or effect.ref == ref:
            yield effect


def _created_filter(asked: object) -> list[tuple[str, int]]:
    if asked is None:
        return []
    if not isinstance(asked, dict):
        return [("gte", int(str(asked))), ("lte", int(str(asked)))]
    if not set(asked) <= set(_COMPARE):
        raise ValueError("unknown comparison")
    return [(str(name), int(str(value))) for name, value in asked.items()]
