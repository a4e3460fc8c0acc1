"""From bytes to a request that means something: routes, JSON and form bodies, references, amounts.

Validation answers (400, 401, 404 without a code that speaks of state) are given here, before the idempotency layer, so
they are never stored under a key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import orjson

from payonce.providers.simulator.plan import Call, Reply

OPERATIONS: dict[str, str] = {
    "/v1/refunds": "refund",
    "/v1/payouts": "payout",
    "/v1/transfers": "transfer",
    "/v1/invoices": "invoice",
    "/v1/calls": "call",
    "/api/v1/chat/completions": "call",
    "/v1/chat/completions": "call",
    "/v1/messages": "call",
}
_INVOICE_STEP = re.compile(r"/v1/invoices/([^/]+)/(finalize|pay)")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_TARGET_FIELD = {"payout": "destination", "transfer": "destination", "invoice": "customer", "call": "model"}
_MAX_AMOUNT_MINOR = 10**15


@dataclass(frozen=True, slots=True)
class Request:
    """A valid request to execute something; `amount_minor` is None where the provider is left to choose it.

    `target` is a charge, a payee, an invoice or a model; `digest` is the SHA-256 of method, path and exact body.
    """

    operation: str
    path: str
    account: str
    key: str | None
    ref: str | None
    target: str
    amount_minor: int | None
    currency: str | None
    digest: str
    fields: Mapping[str, Any]


def error(status: int, code: str, message: str, *, kind: str = "invalid_request_error") -> Reply:
    """An error answer in the provider's shape."""
    return Reply(status, orjson.dumps({"error": {"type": kind, "code": code, "message": message}}))


def bearer(headers: Mapping[str, str]) -> str | None:
    """The token of a Bearer header, the user name of a Basic one, or an X-Api-Key; None without any."""
    if headers.get("x-api-key"):
        return headers["x-api-key"]
    scheme, _, token = headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "bearer":
            return token.strip() or None
        case "basic":
            try:
                return base64.b64decode(token).decode("utf-8").partition(":")[0] or None
            except (binascii.Error, UnicodeDecodeError):
                return None
        case _:
            return None


def parse_request(
    call: Call, *, path: str, account: str, key_max_length: int, intents: Mapping[str, str]
) -> Request | Reply:
    """The request, or the 400 or 404 that says what is wrong with it; `intents` has the charges of payment intents."""
    operation, invoice = _route(path)
    if operation is None:
        return error(404, "url_unrecognized", f"Unrecognized request URL ({call.method}: {path}).")
    fields = parse_body(call)
    if fields is None:
        return error(400, "body_unreadable", "The body is neither a JSON object nor a form.")
    target = invoice or _target(operation, fields, intents)
    if target is None:
        return error(400, "parameter_missing", f"Missing required param: {_TARGET_FIELD.get(operation, 'charge')}.")
    amount = _amount(fields.get("amount"))
    if isinstance(amount, Reply):
        return amount
    currency = fields.get("currency")
    if operation in ("payout", "transfer", "invoice") and (amount is None or not currency):
        return error(400, "parameter_missing", f"Missing required param: {'amount' if amount is None else 'currency'}.")
    key = call.headers.get("idempotency-key")
    return Request(
        operation=operation,
        path=path,
        account=account,
        key=key[:key_max_length] if key else None,
        ref=reference(fields),
        target=target,
        amount_minor=amount,
        currency=str(currency).lower() if currency else None,
        digest=hashlib.sha256(b"%s %s\n%s" % (call.method.encode(), path.encode(), call.body)).hexdigest(),
        fields=fields,
    )


def reference(fields: Mapping[str, Any]) -> str | None:
    """The caller's own reference: metadata.ref, .payonce_item or .user_id, reference or user, the first that is there."""
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        found = metadata.get("ref") or metadata.get("payonce_item") or metadata.get("user_id")
        if found:
            return str(found)
    found = fields.get("reference") or fields.get("user")
    return str(found) if found else None


def parse_body(call: Call) -> dict[str, Any] | None:
    """The fields of a JSON or a form body; None where it is neither. An empty body has no fields."""
    body = call.body
    if not body:
        return {}
    if body.lstrip()[:1] == b"{":
        try:
            found = orjson.loads(body)
        except orjson.JSONDecodeError:
            return None
        return found if isinstance(found, dict) else None
    if "json" in call.headers.get("content-type", ""):
        return None
    try:
        return parse_form(body.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def parse_form(text: str) -> dict[str, Any]:
    """The fields of a form or a query, with `metadata[ref]=x` nested as {"metadata": {"ref": "x"}}."""
    found: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        head, bracket, _ = name.partition("[")
        place = found
        if bracket:
            for part in _BRACKETS.findall(name):
                inner = place.setdefault(head, {})
                if not isinstance(inner, dict):
                    break
                place, head = inner, part
        place[head] = value
    return found


def _route(path: str) -> tuple[str | None, str | None]:
    operation = OPERATIONS.get(path)
    if operation is not None:
        return operation, None
    step = _INVOICE_STEP.fullmatch(path)
    return (f"invoice_{step[2]}", step[1]) if step else (None, None)


def _target(operation: str, fields: Mapping[str, Any], intents: Mapping[str, str]) -> str | None:
    if operation == "refund":
        intent = fields.get("payment_intent")
        found = fields.get("charge") or intents.get(str(intent)) or charge_of(intent)
        return str(found) if found else None
    found = fields.get(_TARGET_FIELD[operation])
    if found:
        return str(found)
    # A payee or a customer may be left out, as at Stripe, where the account has a default one.
    return None if operation == "call" else "default"


def charge_of(payment_intent: object) -> str | None:
    """The charge that a payment intent has where the configuration names none: pi_1 has ch_1."""
    if not payment_intent:
        return None
    return "ch_" + str(payment_intent).removeprefix("pi_")


def _amount(value: object) -> int | Reply | None:
    if value is None:
        return None
    text = str(value)
    if isinstance(value, int | str) and text.isascii() and text.isdigit() and 0 < int(text) <= _MAX_AMOUNT_MINOR:
        return int(text)
    return error(400, "parameter_invalid_integer", f"Invalid positive integer: {text[:40]}")
