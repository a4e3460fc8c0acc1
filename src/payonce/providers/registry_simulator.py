"""Builds providers of kind ``simulator``: the HTTP provider with the simulator's facts filled in.

It speaks to a running simulator (``url``) or to a world in this process (``state``, the file that keeps its books).
``keys = false`` and ``lookup = false`` say that the adapter must do without, so that every line of the guarantees can
be tried out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from payonce.core.errors import ConfigError
from payonce.core.model import Declaration
from payonce.providers.http import HttpProvider
from payonce.providers.http_config import configure
from payonce.providers.registry import Wanted
from payonce.providers.registry_http import make_transport
from payonce.providers.settings_values import bad_setting
from payonce.providers.simulator import Config, parse
from payonce.providers.simulator.values import ConfigError as BehaviourError
from payonce.providers.transport import Transport, TransportSettings
from payonce.providers.transport_simulator import WorldTransport

# Settings of the adapter; every other one is a behaviour of the world.
_ADAPTER: Final = frozenset({"kind", "url", "api_key", "timeout", "max_execution", "transport", "mode", "read_targets"})
# Behaviours that are also promises, and so may be stated of a simulator that runs elsewhere.
_PROMISES: Final = frozenset({"keys", "key_retention", "key_max_length", "stores_errors", "lookup", "lookup_lag"})
_PATHS: Final = {
    "refund": ("/v1/refunds", "charge"),
    "payout": ("/v1/payouts", "destination"),
    "invoice": ("/v1/invoices", "customer"),
    "call": ("/v1/calls", "model"),
}
OPERATIONS: Final = tuple(_PATHS)
_ANSWERS: Final[list[dict[str, Any]]] = [
    {"status": 400, "when": "error.code == 'charge_already_refunded'", "outcome": "already_done"},
    {"status": 400, "when": "error.code == 'invoice_already_paid'", "outcome": "already_done"},
    {"status": 400, "when": "error.type == 'idempotency_error'", "outcome": "unresolved", "final": True},
    {"status": 409, "when": "error.code == 'idempotency_key_in_use'", "outcome": "unresolved", "in_progress": True},
    {"status": [400, 402, 404, 422], "when": "error.code", "outcome": "refused"},
]
_PREFLIGHT: Final = {
    "path": "/v1/charges/{target}",
    "currency": "currency",
    "amount": "amount",
    "used": "amount_refunded",
    "refused_when": "disputed",
}


def build(table: Mapping[str, Any], wanted: Wanted) -> HttpProvider:
    """The provider of the table. Raises ConfigError."""
    behaviours, keys = _behaviours(table)
    url, state = table.get("url"), behaviours.state
    if (url is None) == (state is None):
        raise bad_setting(
            "[provider] of kind simulator needs either url or state",
            hint='url = "http://127.0.0.1:8080" of a running simulator, or state = "simulator.jsonl" to run it here',
        )
    if url is not None:
        foreign = sorted(set(table) - _ADAPTER - _PROMISES - {"account"})
        if foreign:
            raise bad_setting(
                f"[provider] {foreign[0]} is a behaviour of the simulator at url, not of this batch",
                hint="give it to that simulator when it is started",
            )
    config = configure(
        _as_http(table, behaviours, wanted, keys=keys),
        operation=wanted.operation,
        batch=wanted.batch,
        environ={"PAYONCE_SIMULATOR_KEY": "simulator-key", **wanted.environ},
        mapped=wanted.mapped,
        concurrency=wanted.concurrency,
    )
    # A run reads no target unless it is told to, so that it makes one call an item; plan --check always can.
    reads = config.declaration.preflight if _reads_targets(table) else ""
    config = replace(config, declaration=replace(config.declaration, kind="simulator", preflight=reads))

    def make(settings: TransportSettings) -> Transport:
        if state is not None:
            return WorldTransport(settings, config=behaviours, state=Path(wanted.base) / state)
        return make_transport(settings, name=config.transport_name)

    return HttpProvider(config, make_transport=make)


def _reads_targets(table: Mapping[str, Any]) -> bool:
    wanted = table.get("read_targets", False)
    if not isinstance(wanted, bool):
        raise bad_setting("[provider] read_targets is neither true nor false", hint="read_targets = true")
    return wanted


def _behaviours(table: Mapping[str, Any]) -> tuple[Config, bool]:
    """The world's behaviours, and whether the adapter relies on keys."""
    stated = {name: value for name, value in table.items() if name not in _ADAPTER}
    if isinstance(stated.get("account"), str):
        stated["account"] = {"account": stated["account"]}
    keys = stated.get("keys", True)
    if isinstance(keys, bool):
        stated.pop("keys", None)
    try:
        config = parse(stated)
    except BehaviourError as error:
        raise bad_setting(f"[provider] {error}", hint="docs/reference/simulator.md lists the behaviours") from None
    return config, keys if isinstance(keys, bool) else config.keys == "honoured"


def _as_http(table: Mapping[str, Any], behaviours: Config, wanted: Wanted, *, keys: bool) -> dict[str, Any]:
    path, target = _PATHS.get(wanted.operation, _PATHS["call"])
    http: dict[str, Any] = {
        "kind": "http",
        "base_url": table.get("url", "http://localhost"),
        "headers": {"Authorization": f"Bearer {table.get('api_key', '${PAYONCE_SIMULATOR_KEY}')}"},
        "request_id_header": "request-id",
        "call": {"path": path, "json": _body(target, wanted), "reference": "id", **_billed(wanted)},
        "answers": _ANSWERS,
        "identity": {"path": "/v1/account", "account": "id", "mode": "livemode"},
    }
    for name in ("timeout", "max_execution", "transport", "mode"):
        if name in table:
            http[name] = table[name]
    if "account" in table:
        http["account"] = behaviours.account.id
    if wanted.operation in ("refund", "payout"):
        http["call"] |= {"status": "status", "status_pending": ["pending"], "status_succeeded": ["succeeded", "paid"]}
    if wanted.operation == "refund":
        http["preflight"] = _PREFLIGHT
    if keys:
        http["key"] = {
            "header": "Idempotency-Key",
            "max_length": behaviours.key_max_length,
            "retention": f"{behaviours.key_retention_us}us",
            "stores_errors": behaviours.stores_errors,
            "replay_header": "Idempotent-Replayed",
        }
    if behaviours.lookup:
        http["lookup"] = _lookup(path, target, behaviours, wanted)
    return http


def _has_money(wanted: Wanted) -> bool:
    """Whether the items state amounts; a paid call may leave its price to the provider."""
    return wanted.operation in ("refund", "payout", "invoice") or bool(
        {"amount", "amount_minor"} & set(wanted.mapped.values())
    )


def _body(target: str, wanted: Wanted) -> dict[str, Any]:
    body: dict[str, Any] = {target: "{target}", "metadata": {"ref": "{id}"}}
    if _has_money(wanted):
        body |= {"amount": "{amount_minor}", "currency": "{currency_lower}"}
    if target == "model":
        body |= {"user": "{id}", "input": "{id}"}
    return body


def _billed(wanted: Wanted) -> dict[str, str]:
    if wanted.operation in ("refund", "payout", "invoice"):
        return {"billed": "amount", "billed_currency": "currency"}
    return {"billed": "cost", "billed_unit": "major", "billed_currency": "currency"}


def _lookup(path: str, target: str, behaviours: Config, wanted: Wanted) -> dict[str, Any]:
    found: dict[str, Any] = {
        "path": f"{path}?{target}={{target}}&limit=100",
        "found": "data",
        "reference": "id",
        "amount": "amount" if target != "model" else "cost",
        "amount_unit": "minor" if target != "model" else "major",
        "currency": "currency",
        "time": "created",
        "own_reference": "metadata.ref",
        "lag": f"{behaviours.lookup_lag_us}us",
        "next": "data[-1].id",
        "cursor_param": "starting_after",
        "more": "has_more",
    }
    if wanted.operation in ("refund", "payout"):
        found |= {"status": "status", "status_pending": ["pending"], "status_succeeded": ["succeeded", "paid"]}
        found["status_failed"] = ["failed", "canceled"]
    return found


def describe() -> Declaration:
    """What the simulator declares as it is delivered, for refunds."""
    try:
        return build({"kind": "simulator", "url": "http://localhost"}, Wanted("refund", "any")).declaration
    except ConfigError as error:
        raise AssertionError("the simulator's own settings are not valid") from error
