"""The provider's business rules: whether a request executes, and as what. Pure.

What a rule refuses is a coded answer, because the client sees nothing else; what it executes is an Effect that the
world still has to write into its books.
"""

from __future__ import annotations

import functools
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from payonce.providers.simulator import dialects
from payonce.providers.simulator.behaviours import Charge, Config
from payonce.providers.simulator.objects import invoice_status, usdc
from payonce.providers.simulator.plan import Reply
from payonce.providers.simulator.requests import Request, error
from payonce.providers.simulator.store import Effect, Store

_PREFIX = {
    "refund": "re",
    "payout": "po",
    "transfer": "tr",
    "invoice": "in",
    "invoice_finalize": "inf",
    "invoice_pay": "inp",
    "call": "call",
}
_MICRO = Decimal(1_000_000)
_LONGEST_OUTPUT = 128 * 1024 * 1024


def execute(
    request: Request, *, store: Store, config: Config, seed: int, at: int, delta: int = 0, credit_delta: int = 0
) -> Effect | Reply:
    """The effect of the request at `at` (microseconds), or the answer that refuses it.

    `delta` is added to the amount that was asked, `credit_delta` (millionths) to what the statement credits: both are
    faults of the provider. The store is not changed.
    """
    settled: tuple[int, str, dict[str, Any]] | Reply
    match request.operation:
        case "refund":
            settled = _refund(request, store=store, config=config)
        case "invoice_finalize" | "invoice_pay":
            settled = _invoice_step(request, store=store)
        case "call":
            settled = _call(request, config=config, credit_delta=credit_delta)
        case _:
            settled = request.amount_minor or 0, request.currency or "", {}
    if isinstance(settled, Reply):
        return settled
    amount, currency, detail = settled
    amount += delta
    refusal = _same_amount(request, amount, store=store, window_us=config.same_amount_window_us, at=at)
    if refusal is not None:
        return refusal
    metadata = request.fields.get("metadata")
    return Effect(
        id=store.unused_id(
            dialects.PREFIXES[detail["dialect"]] if "dialect" in detail else _PREFIX[request.operation], seed=seed
        ),
        operation=request.operation,
        ref=request.ref or detail.get("invoice_ref"),
        key=request.key,
        target=request.target,
        amount_minor=amount,
        currency=currency,
        executed_at=at,
        digest=request.digest,
        account=request.account,
        detail={"metadata": metadata, **detail} if isinstance(metadata, dict) else detail,
    )


def charge_at(charge_id: str, *, store: Store, config: Config) -> Charge | None:
    """The charge of that id; None where there is none and none is made up."""
    found = store.charges.get(charge_id)
    if found is None and config.auto_create_charges:
        return _made_up(config.default_currency)
    return found


@functools.cache
def _made_up(currency: str | None) -> Charge:
    return Charge(currency=currency)


def _refund(request: Request, *, store: Store, config: Config) -> tuple[int, str, dict[str, Any]] | Reply:
    charge = charge_at(request.target, store=store, config=config)
    if charge is None:
        return error(404, "resource_missing", f"No such charge: '{request.target}'")
    if charge.disputed:
        return error(400, "charge_disputed", f"Charge {request.target} has been charged back.")
    currency = request.currency or charge.currency or "usd"
    if charge.currency is not None and currency != charge.currency:
        return error(400, "currency_mismatch", f"Charge {request.target} is in {charge.currency}, not {currency}.")
    left = charge.amount_minor - store.moved.get((request.account, request.target), 0)
    if left <= 0:
        return error(400, "charge_already_refunded", f"Charge {request.target} has already been refunded.")
    amount = left if request.amount_minor is None else request.amount_minor
    if amount > left:
        text = f"Refund amount ({amount}) is greater than the unrefunded amount on the charge ({left})."
        return error(400, "amount_too_large", text)
    intent = request.fields.get("payment_intent") or charge.payment_intent
    return amount, currency, {"payment_intent": intent, "reason": request.fields.get("reason")}


def _invoice_step(request: Request, *, store: Store) -> tuple[int, str, dict[str, Any]] | Reply:
    invoice = store.find(request.target, account=request.account)
    if invoice is None or invoice.operation != "invoice":
        return error(404, "resource_missing", f"No such invoice: '{request.target}'")
    status = invoice_status(invoice.id, account=request.account, store=store)
    if status == "paid":
        return error(400, "invoice_already_paid", "Invoice is already paid.")
    wanted = "draft" if request.operation == "invoice_finalize" else "open"
    if status != wanted:
        return error(400, "invoice_not_" + wanted, f"Invoice {invoice.id} is {status}, not {wanted}.")
    return invoice.amount_minor, invoice.currency, {"invoice_ref": invoice.ref}


def _call(request: Request, *, config: Config, credit_delta: int) -> tuple[int, str, dict[str, Any]] | Reply:
    """What a paid call yields and costs: derived from the request alone, so a repeat would cost the same again."""
    asked = request.fields.get("input", request.fields.get("messages"))
    size = len(str(asked)) if asked is not None else 0
    prompt, completion = max(1, size // 4), 16 + int(request.digest[:4], 16) % 64
    answer_price = config.token_price if config.completion_price is None else config.completion_price
    exact = config.token_price * prompt + answer_price * completion
    priced = (exact * _MICRO).quantize(Decimal(1), rounding=ROUND_HALF_EVEN)
    official = request.amount_minor if request.amount_minor is not None else max(1, int(priced))
    credit = Decimal(official + credit_delta) / _MICRO * config.multiplier
    detail = {
        "output": f"answer {request.digest[:12]}".ljust(_output_size(request), "."),
        "tokens": prompt + completion,
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "exact_cost": usdc(official) if request.amount_minor is not None else f"{exact:f}",
        "dialect": dialects.PATHS[request.path],
        "official_price": usdc(official),
        "multiplier": str(config.multiplier),
        "credit": f"{credit:f}",
    }
    return official, request.currency or "usdc", detail


def _output_size(request: Request) -> int:
    """How long the answer is to be at least, in characters: `size`, as a tester asks for it."""
    size = request.fields.get("size", 0)
    return min(size, _LONGEST_OUTPUT) if isinstance(size, int) else 0


def _same_amount(request: Request, amount: int, *, store: Store, window_us: int, at: int) -> Reply | None:
    """Some banks refuse the same amount to the same place within a time, whoever means it."""
    if not window_us or request.operation not in ("refund", "payout", "transfer"):
        return None
    for effect in store.newest_first(request.account, request.operation, "target", request.target):
        if effect.executed_at <= at - window_us:
            break
        if effect.amount_minor == amount:
            text = f"A {request.operation} of the same amount on {request.target} was made moments ago ({effect.id})."
            return error(400, "duplicate_transaction", text)
    return None
