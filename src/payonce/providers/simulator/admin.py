"""The side door under /_sim/: what auditors, benchmarks and tests see and set. Not part of the simulated API.

No authentication: the simulator moves no money, and its server listens on the loopback interface only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from payonce.providers.simulator.behaviours import parse, parse_charge
from payonce.providers.simulator.plan import Call, Reply
from payonce.providers.simulator.requests import error, parse_form
from payonce.providers.simulator.store import Effect, Transaction
from payonce.providers.simulator.values import ConfigError, text

if TYPE_CHECKING:
    from payonce.providers.simulator.world import World


def answer(world: World, call: Call, *, path: str, query: str) -> Reply:
    """The answer to an administrative call. 404 for an unknown one, 400 for one that cannot be understood."""
    match call.method, path:
        case "GET", "/_sim/effects":
            return _json(effects(world, asked=parse_form(query)))
        case "GET", "/_sim/stats":
            return _json(stats(world))
        case "POST", "/_sim/reset":
            world.reset()
            return _json({"reset": True})
        case "POST", ("/_sim/config" | "/_sim/charges" | "/_sim/settle"):
            return _change(world, call, path=path)
        case _:
            return error(404, "url_unrecognized", f"Unrecognized request URL ({call.method}: {path}).")


def effects(world: World, *, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """True effects in order, all of them or those of a `ref`, an `operation` or a `target`."""
    return [
        asdict(effect)
        for effect in world.effects
        if all(getattr(effect, name) == asked[name] for name in ("ref", "operation", "target") if name in asked)
    ]


def stats(world: World) -> dict[str, Any]:
    """What the door counted, what was executed, and which own references were executed more than once."""
    made = world.effects
    again = duplicates(made)
    executed = Counter(effect.operation for effect in made)
    return {
        **world.stats.as_dict(),
        "executed": len(made),
        "executed_by_operation": dict(executed),
        "duplicates": sum(again.values()),
        "duplicate_references": again,
        "without_reference": sum(1 for effect in made if effect.ref is None),
    }


def duplicates(made: tuple[Effect, ...]) -> dict[str, int]:
    """Own references that were executed more than once by one operation, with how often too many."""
    counts = Counter((effect.operation, effect.ref) for effect in made if effect.ref is not None)
    found: Counter[str] = Counter()
    for (_, ref), count in counts.items():
        if count > 1:
            found[str(ref)] += count - 1
    return dict(found)


def _change(world: World, call: Call, *, path: str) -> Reply:
    try:
        asked = orjson.loads(call.body)
        if not isinstance(asked, dict):
            raise ConfigError("the body is not a JSON object")
        if path == "/_sim/config":
            world.configure(parse(asked, base=world.config))
        elif path == "/_sim/charges":
            charge_id = text(asked.pop("id", None), where="id")
            world.commit(Transaction(charge=(charge_id, parse_charge(asked, where=charge_id))))
        else:
            _settle(world, asked)
    except (orjson.JSONDecodeError, ConfigError) as problem:
        return error(400, "config_invalid", str(problem))
    return _json({"changed": True})


def _settle(world: World, asked: dict[str, Any]) -> None:
    """Gives an execution another settlement, as when a bank returns it days later."""
    effect_id = text(asked.get("id"), where="id")
    status = text(asked.get("status"), where="status")
    if all(effect.id != effect_id for effect in world.effects):
        raise ConfigError(f"id: nothing was executed as {effect_id!r}")
    world.commit(Transaction(status=(effect_id, status, world.now())))


def _json(shown: object) -> Reply:
    return Reply(200, orjson.dumps(shown))
