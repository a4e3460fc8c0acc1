"""One execution: what becomes true, what is answered, and what a repeat of the key gets. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from payonce.providers.simulator import dialects, keyring, rules, spoil
from payonce.providers.simulator.behaviours import Config
from payonce.providers.simulator.faults import Fault, Kind
from payonce.providers.simulator.objects import effect_object
from payonce.providers.simulator.plan import Reply
from payonce.providers.simulator.requests import Request
from payonce.providers.simulator.store import Effect, Store


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was executed (None: nothing), the answer given, and what a repeat of the key gets (None: it executes)."""

    effect: Effect | None
    given: Reply
    remembered: Reply | None


def execute(request: Request, fault: Fault | None, *, store: Store, config: Config, seed: int, at: int) -> Outcome:
    """The outcome of a request at `at` (microseconds). The store is not changed."""
    made: Effect | Reply | None = spoil.instead_of_executing(fault)
    if made is None:
        delta = fault.delta if fault is not None else 0
        made = rules.execute(
            request,
            store=store,
            config=config,
            seed=seed,
            at=at,
            delta=delta if fault is not None and fault.kind is Kind.OTHER_AMOUNT else 0,
            credit_delta=delta if fault is not None and fault.kind is Kind.WRONG_CREDIT else 0,
        )
    if isinstance(made, Reply):
        return Outcome(None, made, keyring.remembered(made, true_answer=None, config=config))
    shown = effect_object(made, store=store, config=config, now=at)
    if made.operation in ("invoice_finalize", "invoice_pay"):
        # The step is not in the books yet, and its answer shows the invoice after it.
        shown["status"] = "paid" if made.operation == "invoice_pay" else "open"
    true_answer = Reply(200, orjson.dumps(shown))
    if made.operation == "call":
        true_answer = dialects.reply(made, shown, stream=request.fields.get("stream") is True)
    given = spoil.given_answer(true_answer, fault=fault)
    return Outcome(made, given, keyring.remembered(given, true_answer=true_answer, config=config))
