"""Whether a success of Stripe's is the success of this call: object, target, reference and amount are compared. Pure.

The same readings serve answers and look-ups, so that both mean the same by "executed", "failed" and "billed".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from payonce.core.decimals import STRIPE
from payonce.core.model import SECOND_US, Item
from payonce.core.outcome import Executed, Execution, Outcome, Refused, Unresolved
from payonce.core.states import Settlement
from payonce.providers.official.values import (
    Contradiction,
    Unreadable,
    agrees,
    asked,
    ident,
    mapping,
    minor,
    named,
    word,
)
from payonce.providers.stripe.calls import BATCH, ITEM, target_field

_P, _S, _F = Settlement.PENDING, Settlement.SUCCEEDED, Settlement.FAILED
# https://docs.stripe.com/api/refunds/object and .../payouts/object. A word that is not listed counts as pending.
STATUSES: Final[dict[str, dict[str, Settlement]]] = {
    "refund": {"pending": _P, "requires_action": _P, "succeeded": _S, "failed": _F, "canceled": _F},
    "payout": {"pending": _P, "in_transit": _P, "paid": _S, "failed": _F, "canceled": _F},
    "invoice": {"draft": _P, "open": _P, "paid": _S, "void": _F, "uncollectible": _F},
}
_KEPT: Final = ("status", "balance_transaction", "charge", "payment_intent", "destination", "failure_reason", "number")


def settlement_of(operation: str, tree: Mapping[str, Any]) -> Settlement:
    """Where an object's money stands."""
    if operation == "transfer":
        return Settlement.RETURNED if tree.get("reversed") is True else _S
    status = word(tree.get("status"))
    return _P if status is None else STATUSES[operation].get(status, _P)


def confirmed(tree: Mapping[str, Any], item: Item, *, operation: str, batch: str, step: str) -> Outcome:
    """The outcome of a 2xx: Executed if it is about this very call, Unresolved if it contradicts it."""
    reference = word(tree.get("id"))
    try:
        if operation == "invoice":
            return _invoice(tree, item, batch=batch, step=step)
        return _single(tree, item, operation=operation, batch=batch)
    except Contradiction as error:
        return Unresolved("answer_contradicts", str(error), final=True, hint_reference=reference)
    except Unreadable as error:
        return Unresolved("unreadable_answer", str(error), hint_reference=reference)


def _single(tree: Mapping[str, Any], item: Item, *, operation: str, batch: str) -> Outcome:
    reference = ident(tree)
    agrees("a", word(tree.get("object")), asked=operation, reference=reference)
    _ours(tree, item, batch=batch, reference=reference)
    field = target_field(item.target) if operation == "refund" else "destination"
    # A payout's default destination is named in the answer, though the call named none.
    if operation != "payout" or item.target != item.id:
        agrees(f"the {field}", named(tree.get(field)), asked=item.target, reference=reference)
    billed = minor(tree.get("amount"), tree.get("currency"), STRIPE)
    settled = settlement_of(operation, tree)
    if settled is Settlement.FAILED:
        why = word(tree.get("failure_reason")) or word(tree.get("failure_code")) or word(tree.get("status")) or "failed"
        return Refused(f"{operation}_failed", f"Stripe took {reference} and says that it failed: {why}")
    return Executed(reference, billed=billed, settlement=settled, kept=kept(tree))


def _invoice(tree: Mapping[str, Any], item: Item, *, batch: str, step: str) -> Outcome:
    reference = ident(tree)
    if tree.get("object") != ("invoiceitem" if step == "add" else "invoice"):
        raise Unreadable(f"{reference} is no invoice")
    _ours(tree, item, batch=batch, reference=reference)
    agrees("the customer", named(tree.get("customer")), asked=item.target, reference=reference)
    invoice = item.carry.get("invoice")
    if step == "create":
        return Executed(reference, carry={"invoice": reference})
    if step == "add":
        agrees("a line of", named(tree.get("invoice")), asked=str(invoice), reference=reference)
        _exactly(tree.get("amount"), tree.get("currency"), item=item, reference=reference)
        return Executed(reference)
    agrees("the invoice", reference, asked=str(invoice), reference=reference)
    if step == "finalise":
        _exactly(tree.get("total"), tree.get("currency"), item=item, reference=reference)
        return Executed(reference)
    settled = settlement_of("invoice", tree)
    if settled is Settlement.FAILED:
        return Refused("invoice_failed", f"Stripe says that invoice {reference} is {tree.get('status')}")
    billed = minor(tree.get("total"), tree.get("currency"), STRIPE)
    return Executed(reference, billed=billed, settlement=settled, kept=kept(tree))


def _exactly(amount: Any, currency: Any, *, item: Item, reference: str) -> None:
    """A step before the paying one must already be over the right amount: later it would be paid."""
    told = minor(amount, currency, STRIPE)
    agrees("an amount of", str(told), asked=str(asked(item)), reference=reference)


def _ours(tree: Mapping[str, Any], item: Item, *, batch: str, reference: str) -> None:
    metadata = mapping(tree.get("metadata"))
    agrees("item", word(metadata.get(ITEM)), asked=item.id, reference=reference)
    agrees("batch", word(metadata.get(BATCH)), asked=batch, reference=reference)


def kept(tree: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept with the commit, for people and for matching."""
    found = {name: named(tree.get(name)) for name in _KEPT}
    return {name: value for name, value in found.items() if value is not None}


def execution(tree: Mapping[str, Any], *, operation: str, batch: str) -> Execution:
    """One entry of a list as an execution. Raises Unreadable for an entry that is not one."""
    metadata = mapping(tree.get("metadata"))
    own = word(metadata.get(ITEM)) if metadata.get(BATCH) == batch else None
    created = tree.get("created")
    settled = settlement_of(operation, tree)
    return Execution(
        reference=ident(tree),
        money=minor(tree.get("total" if operation == "invoice" else "amount"), tree.get("currency"), STRIPE),
        own_reference=own,
        at_us=created * SECOND_US if isinstance(created, int) else None,
        settlement=settled,
        failed=settled is Settlement.FAILED,
        kept=kept(tree),
    )
