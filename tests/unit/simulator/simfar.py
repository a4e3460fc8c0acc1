"""A world whose clock the test moves, and a client of it that says what a real one would see."""

from __future__ import annotations

from typing import Any

import orjson

from payonce.providers.simulator import Answer, Call, Plan, Wait, World, parse

T0 = 1_796_000_000_000_000


class Far:
    """A provider under the test's clock; every method is one HTTP exchange."""

    def __init__(self, **behaviours: Any) -> None:
        self.time = T0
        self.world = World(parse(behaviours), clock=lambda: self.time, seed=7)

    def pass_ms(self, milliseconds: int) -> None:
        """Moves the clock."""
        self.time += milliseconds * 1_000

    def post(
        self, path: str = "/v1/refunds", *, key: str | None = None, token: str | None = "sk_1", **fields: Any
    ) -> Plan:
        """The plan for a POST of JSON."""
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["idempotency-key"] = key
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        return self.world.handle(Call("POST", path, headers, orjson.dumps(fields)))

    def refund(self, ref: str = "r1", *, key: str | None = None, **fields: Any) -> Plan:
        """The plan for a refund of 12.50 on the item's own charge."""
        asked = {"charge": f"ch_{ref}", "amount": 1250, "currency": "usd", "metadata": {"ref": ref}}
        return self.post(key=key, **{**asked, **fields})

    def get(self, path: str, *, token: str = "sk_1") -> Any:
        """The decoded body of a GET, or its status where it is not 200."""
        plan = self.world.handle(Call("GET", path, {"authorization": f"Bearer {token}"}, b""))
        status, body, _ = answered(plan)
        return body if status == 200 else status

    def executed(self) -> list[tuple[str | None, int]]:
        """Reference and amount of every true effect, in order."""
        return [(effect.ref, effect.amount_minor) for effect in self.world.effects]


def answered(plan: Plan) -> tuple[int, Any, dict[str, str]]:
    """Status, decoded body and headers of a plan that answers; fails for any other plan."""
    assert isinstance(plan, Answer), plan
    body: Any = plan.reply.body
    if plan.reply.content_type == "application/json" and body:
        try:
            body = orjson.loads(body)
        except orjson.JSONDecodeError:
            pass
    return plan.reply.status, body, dict(plan.reply.headers)


def code_of(plan: Plan) -> tuple[int, str]:
    """Status and error code of a plan that answers with an error."""
    status, body, _ = answered(plan)
    return status, body["error"]["code"]


def waited(plan: Plan, far: Far) -> Plan:
    """The plan after its wait."""
    assert isinstance(plan, Wait), plan
    far.time = plan.until_us
    return far.world.resume(plan.ticket)
