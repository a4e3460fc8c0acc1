"""Verdicts written down: how each becomes the change, with its evidence, that the ledger applies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from payonce.core.commands import Change, StopBatch
from payonce.core.decide import Commit, Doubt, GiveUp, LeaveOut, NextStep, PayAgain, PlanAgain, Refuse, Verdict
from payonce.core.events import iso, plain, well_formed
from payonce.core.keys import digest
from payonce.core.model import Finding, Item, Request
from payonce.core.outcome import Executed, Found, LookupFailed, Reply
from payonce.core.payloads import PayloadPolicy
from payonce.core.states import ItemEvent

MESSAGE_LIMIT = 500
NOTHING_KEPT: Mapping[str, bytes] = {}


def evidence_of_reply(reply: Reply) -> dict[str, Any]:
    """What the trail keeps of an answer: times, status, the body's digest, the provider's own id of the call."""
    data: dict[str, Any] = {"start": iso(reply.started_us), "end": iso(reply.ended_us)}
    if reply.status is not None:
        data["status"] = reply.status
    if reply.response is not None:
        data["response"] = digest(reply.response)
    if reply.request_id:
        data["request_id"] = reply.request_id
    if reply.replayed:
        data["replayed"] = True
    if reply.truncated:
        data["truncated"] = True
    if not reply.sent:
        data["sent"] = False
    return data


def is_of_call(change: Change) -> bool:
    """Whether a change says what became of a call, not of a look-up nor of a decision without either."""
    return "start" in change.data


def evidence_of_found(found: Found) -> dict[str, Any]:
    """What the trail keeps of a look-up that was answered."""
    shown = [
        {
            "reference": e.reference,
            "amount": e.money.text if e.money else None,
            "currency": e.money.currency if e.money else None,
            "own": e.own_reference,
            "failed": e.failed,
        }
        for e in found.executions[:20]
    ]
    data: dict[str, Any] = {"shown": len(found.executions), "executions": plain(shown)}
    if found.response is not None:
        data["response"] = digest(found.response)
    return {"lookup": data}


def kept_request(policy: PayloadPolicy, request: Request) -> Mapping[str, bytes]:
    """What the policy keeps of a request's body besides its digest."""
    kept = policy.kept(request.body) if policy.requests else None
    return NOTHING_KEPT if kept is None else {"request": kept}


def kept_response(policy: PayloadPolicy, response: bytes | None) -> Mapping[str, bytes]:
    """What the policy keeps of an answer besides its digest."""
    kept = policy.kept(response)
    return NOTHING_KEPT if kept is None else {"response": kept}


def cut(text: str) -> str:
    """A message short enough to keep."""
    return well_formed(text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…")


def change_for(
    verdict: Verdict,
    *,
    item: Item,
    data: Mapping[str, Any],
    now_us: int,
    wait_us: int = 0,
    lookups: int = 0,
    rate_limited: int = 0,
    seen: bool = True,
    stop: StopBatch | None = None,
) -> Change:
    """The change that records a verdict. ``wait_us`` is the backoff before the item may be looked at again."""
    common: dict[str, Any] = {"data": data, "lookups": lookups, "rate_limited": rate_limited, "stop": stop}
    match verdict:
        case Commit(executed, mismatch):
            return _commit(item, executed, mismatch, common)
        case NextStep(executed):
            common["data"] = {**data, "reference": executed.reference}
            carry = {**item.carry, **executed.carry, f"step_{item.step}": executed.reference}
            return Change(item.n, ItemEvent.STEP_DONE, carry=carry, **common)
        case Refuse(code, message):
            return Change(item.n, ItemEvent.REFUSE, code=code, message=cut(message), spent=1, **common)
        case PlanAgain(code, message):
            return Change(
                item.n,
                ItemEvent.NOT_EXECUTED,
                code=code,
                message=cut(message),
                spent=0 if verdict.load or not verdict.spends else 1,
                generation=item.generation + 1 if verdict.new_generation else None,
                not_before_us=now_us + wait_us,
                **common,
            )
        case Doubt():
            return Change(
                item.n,
                ItemEvent.UNRESOLVED,
                code=verdict.code,
                message=cut(verdict.message),
                spent=1 if verdict.spends else 0,
                seen=seen,
                seen_us=now_us if seen else 0,
                burnt=verdict.burnt,
                final=verdict.final,
                in_progress=verdict.in_progress,
                already_done=verdict.already_done,
                retry_at_us=now_us + wait_us,
                **common,
            )
        case GiveUp(code, message, mismatch, executed):
            findings = _mismatched(item, executed, mismatch, common)
            return Change(item.n, ItemEvent.UNDECIDED, code=code, message=cut(message), findings=findings, **common)
        case PayAgain(code, message):
            spent = 1 if verdict.spends else 0
            return Change(item.n, ItemEvent.PAY_AGAIN, code=code, message=cut(message), spent=spent, **common)
        case LeaveOut(code, message, references):
            finding = Finding("already_done", item.id, {"references": list(references)})
            return Change(item.n, ItemEvent.SKIP, code=code, message=cut(message), findings=(finding,), **common)


def _mismatched(
    item: Item, executed: Executed | None, mismatch: str | None, common: dict[str, Any]
) -> tuple[Finding, ...]:
    """Another amount was executed than was asked: a finding, and the batch stops until a person has looked."""
    if mismatch is None or executed is None:
        return ()
    asked, billed = item.money, executed.billed
    text = f"item {item.id}: asked {asked}, the provider executed {billed} ({executed.reference})"
    common["stop"] = StopBatch(mismatch, text, hold=True)
    facts = {"reference": executed.reference, "asked": str(asked), "billed": str(billed)}
    return (Finding(mismatch, item.id, facts),)


def _commit(item: Item, executed: Executed, mismatch: str | None, common: dict[str, Any]) -> Change:
    findings = _mismatched(item, executed, mismatch, common)
    output = None if executed.output is None else as_json(executed.output)
    return Change(
        item.n,
        ItemEvent.COMMIT,
        reference=well_formed(executed.reference),
        billed=executed.billed or item.money,
        settlement=executed.settlement,
        kept=plain(executed.kept) if executed.kept else None,
        output=output,
        findings=findings,
        **common,
    )


def as_json(value: Any) -> bytes:
    """What a call returned as JSON. It was executed: nothing it returned may keep its commit from being written."""
    try:
        return orjson.dumps(value, default=str)
    except TypeError:  # keys that are no text, integers beyond 64 bits, half characters
        try:
            return orjson.dumps(plain(value))
        except (TypeError, ValueError, RecursionError):
            return orjson.dumps({"not_json": type(value).__name__})


def failed_lookup(failed: LookupFailed, *, item: Item, now_us: int, wait_us: int) -> Change:
    """A look-up that was not answered: it proves nothing and is repeated within the bounds of a call."""
    return Change(
        item.n,
        ItemEvent.LOOKUP,
        data={"lookup": {"failed": failed.code}},
        code=failed.code,
        message=cut(failed.message),
        lookups=1,
        lookup_failures=0 if failed.load else 1,
        rate_limited=1 if failed.load else 0,
        retry_at_us=now_us + wait_us,
        stop=StopBatch(failed.code, failed.message) if failed.stop else None,
    )
