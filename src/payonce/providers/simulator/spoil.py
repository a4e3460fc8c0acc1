"""What a fault makes of a call: the plan it enforces before the execution, and what it does to an answer. Pure."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import format_datetime

from payonce.providers.simulator.faults import Fault, Kind
from payonce.providers.simulator.plan import Abort, Answer, Close, Plan, Reply, Silence
from payonce.providers.simulator.requests import error

_GARBAGE = b"<html><body>\x00\xff upstream said something else</body>"
_SECOND_US = 1_000_000


def before_the_key(fault: Fault, *, ticket: int, now: int) -> Plan | None:
    """The plan for a fault that is met before the idempotency layer; None for every other kind."""
    match fault.kind:
        case Kind.UNREACHABLE:
            return Abort(ticket, sent=False)
        case Kind.RESET_BEFORE:
            return Abort(ticket)
        case Kind.CLOSE_BEFORE:
            return Close(ticket)
        case Kind.HANG:
            return Silence(ticket)
        case Kind.STOP_401:
            return Answer(ticket, unauthorised())
        case Kind.RATE_LIMITED:
            return Answer(ticket, rate_limited(fault.retry_after_us, retry_as=fault.retry_as, now=now))
        case Kind.LOCK_TIMEOUT:
            text = "This object cannot be accessed right now because another request is using it."
            return Answer(ticket, error(429, "lock_timeout", text))
        case _:
            return None


def instead_of_executing(fault: Fault | None) -> Reply | None:
    """The answer that a fault gives in place of an execution; None for every other kind."""
    match fault.kind if fault is not None else Kind.OK:
        case Kind.ERROR_500_BEFORE:
            return server_error()
        case Kind.ALREADY_REFUNDED:
            return error(400, "charge_already_refunded", "Charge has already been refunded.")
        case Kind.ERROR_IN_200:
            return Reply(200, b'{"error":{"code":502,"message":"The upstream provider failed."}}')
        case Kind.REFUSE if fault is not None:
            kind = "card_error" if fault.status == 402 else "invalid_request_error"
            return error(fault.status, fault.code, fault.message or f"Refused: {fault.code}.", kind=kind)
        case _:
            return None


def given_answer(true_answer: Reply, *, fault: Fault | None) -> Reply:
    """The answer that the provider composes for an execution, as its fault will have it."""
    match fault.kind if fault is not None else Kind.OK:
        case Kind.ERROR_500_AFTER:
            return server_error()
        case Kind.ODD_SUCCESS if fault is not None and fault.shape == "empty":
            return Reply(204, b"")
        case Kind.ODD_SUCCESS:
            return Reply(200, b'{"result":"done"}')
        case _:
            return true_answer


def deliver(reply: Reply, *, fault: Fault | None, ticket: int, after_us: int) -> Plan:
    """How an answer, first or replayed, travels back."""
    match fault.kind if fault is not None else Kind.OK:
        case Kind.SILENT_AFTER:
            return Silence(ticket)
        case Kind.RESET_AFTER:
            return Abort(ticket)
        case Kind.CLOSE_AFTER:
            return Close(ticket)
        case Kind.CUT_AFTER:
            return Answer(ticket, reply, after_us, cut=True)
        case Kind.TRICKLE if fault is not None:
            return Answer(ticket, reply, after_us, trickle_us=fault.after_us)
        case Kind.GARBAGE:
            return Answer(ticket, Reply(200, _GARBAGE), after_us)
        case Kind.HUGE if fault is not None:
            return Answer(ticket, Reply(200, b'{"padding":"' + b"x" * fault.size + b'"}'), after_us)
        case _:
            return Answer(ticket, reply, after_us)


def read_plan(fault: Fault, reply: Reply, *, ticket: int, now: int, after_us: int) -> Plan:
    """The plan for a look-up that meets a fault: nothing executes, so 'before' and 'after' are the same."""
    if fault.kind is Kind.SLOW:
        return Answer(ticket, reply, fault.after_us)
    if fault.kind is Kind.ERROR_500_AFTER:
        return Answer(ticket, server_error(), after_us)
    instead = instead_of_executing(fault)
    early = before_the_key(fault, ticket=ticket, now=now)
    return early or deliver(instead or given_answer(reply, fault=fault), fault=fault, ticket=ticket, after_us=after_us)


def unauthorised() -> Reply:
    """401, as for a missing or unknown token."""
    return error(401, "api_key_invalid", "Invalid API key provided.", kind="authentication_error")


def server_error() -> Reply:
    """500, which says nothing about whether anything was executed."""
    return error(500, "internal_error", "An unknown error occurred.", kind="api_error")


def rate_limited(retry_after_us: int | None, *, retry_as: str, now: int) -> Reply:
    """429 with Retry-After as whole seconds or as an HTTP date (rounded up), or without it."""
    reply = error(429, "rate_limit", "Too many requests.", kind="rate_limit_error")
    if retry_after_us is None or retry_as == "none":
        return reply
    if retry_as == "seconds":
        value = str(max(1, math.ceil(retry_after_us / _SECOND_US)))
    else:
        at = math.ceil((now + retry_after_us) / _SECOND_US)
        value = format_datetime(datetime.fromtimestamp(at, tz=UTC), usegmt=True)
    return Reply(reply.status, reply.body, headers=(("Retry-After", value),))
