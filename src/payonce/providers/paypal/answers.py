"""What PayPal's answers mean, and whether a success is the success of this call. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from payonce.core.model import Item
from payonce.core.money import Money
from payonce.core.outcome import AlreadyDone, Executed, NotExecuted, Outcome, Refused, Stop, Unresolved
from payonce.core.states import Settlement
from payonce.providers.official.adapter import Told
from payonce.providers.official.values import (
    Contradiction,
    Unreadable,
    agrees,
    entries,
    ident,
    major,
    mapping,
    word,
)
from payonce.providers.paypal.calls import custom_id, sender_item_id
from payonce.providers.paypal.codes import ALREADY_DONE, IN_PROGRESS, KEY_TAKEN, REFUSED, STOP

_P, _S, _F, _R = Settlement.PENDING, Settlement.SUCCEEDED, Settlement.FAILED, Settlement.RETURNED
# A word that is not listed counts as pending. payments_payment_v2.json, payments_payouts_batch_v1.json
REFUND_STATUS: Final = {"COMPLETED": _S, "PENDING": _P, "CANCELLED": _F, "FAILED": _F}
PAYOUT_STATUS: Final = {
    "SUCCESS": _S,
    "FAILED": _F,
    "DENIED": _F,
    "BLOCKED": _F,
    "CANCELED": _F,
    "RETURNED": _R,
    "REFUNDED": _R,
    "REVERSED": _R,
}


def issues(tree: Mapping[str, Any]) -> tuple[str, ...]:
    """All codes of an error: the issues of its details, then its name."""
    details = tree.get("details")
    found = [word(mapping(entry).get("issue")) for entry in details] if isinstance(details, list) else []
    return tuple(code for code in (*found, word(tree.get("issue")), word(tree.get("name"))) if code)


def meaning(told: Told) -> Outcome:
    """The outcome of an answer that is no success."""
    tree = mapping(told.tree)
    codes = issues(tree)
    message = _message(tree)
    if told.status == 429:
        return NotExecuted("rate_limited", message or "too many calls at once", True, told.retry_after_us)
    for code in codes:
        known = _known(code, message, told)
        if known is not None:
            return known
    if told.status == 403:
        return Stop(codes[0] if codes else "not_permitted", _said(STOP["PERMISSION_DENIED"], message))
    if told.status == 404 and "RESOURCE_NOT_FOUND" in codes:
        return Refused("RESOURCE_NOT_FOUND", _said(REFUSED["INVALID_RESOURCE_ID"], message))
    if 300 <= told.status < 400:
        return Unresolved("redirect", "PayPal answered with a redirect, which a call does not follow")
    return Unresolved(
        codes[0] if codes else f"http_{told.status}",
        message or f"PayPal answered with {told.status}",
        retry_after_us=told.retry_after_us,
    )


def _known(code: str, message: str, told: Told) -> Outcome | None:
    if code in IN_PROGRESS:
        return Unresolved(code, message, in_progress=True, retry_after_us=told.retry_after_us)
    if code in KEY_TAKEN:
        return Unresolved(code, message, final=True)
    if told.status not in (400, 403, 404, 422):
        return None
    if code in ALREADY_DONE:
        return AlreadyDone(code, _said(ALREADY_DONE[code], message))
    if code in STOP:
        return Stop(code, _said(STOP[code], message))
    return Refused(code, _said(REFUSED[code], message)) if code in REFUSED else None


def first_batch(told: Told) -> str | None:
    """The id of the first payout batch that an error about a repeated sender_batch_id links to."""
    tree = mapping(told.tree)
    links = tree.get("links")
    for link in links if isinstance(links, list) else ():
        href = word(mapping(link).get("href")) or ""
        _, found, tail = href.partition("/v1/payments/payouts/")
        made = tail.split("?")[0].strip("/")
        if found and made and made.replace("-", "").replace("_", "").isalnum():
            return made
    return None


def refunded(tree: Mapping[str, Any], item: Item, *, invoice_id: str) -> Outcome:
    """The outcome of a refund's success: 201 says only that there is a refund, its status says which."""
    reference = word(tree.get("id"))
    try:
        return _refunded(tree, item, invoice_id)
    except Contradiction as error:
        return Unresolved("answer_contradicts", str(error), final=True, hint_reference=reference)
    except Unreadable as error:
        return Unresolved("unreadable_answer", str(error), hint_reference=reference)


def _refunded(tree: Mapping[str, Any], item: Item, invoice_id: str) -> Outcome:
    reference = ident(tree)
    status = word(tree.get("status"))
    if status is None:
        raise Unreadable("the answer has no status")
    agrees("invoice_id", word(tree.get("invoice_id")), asked=invoice_id, reference=reference)
    agrees("custom_id", word(tree.get("custom_id")), asked=custom_id(item), reference=reference)
    agrees("the capture", _capture(tree), asked=item.target, reference=reference)
    settled = REFUND_STATUS.get(status, _P)
    if settled is _F:
        why = word(mapping(tree.get("status_details")).get("reason")) or status
        return Refused(f"refund_{status.lower()}", f"PayPal took {reference} and says that it is {status}: {why}")
    # A repeat is answered with the latest status; it is not said whether in full. What is told must be exact.
    amount = tree.get("amount")
    billed: Money | None = None
    if amount is not None:
        told = mapping(amount)
        billed = major(told.get("value"), told.get("currency_code"))
    return Executed(reference, billed=billed, settlement=settled, kept={"status": status})


def _capture(tree: Mapping[str, Any]) -> str | None:
    """The capture that a refund's link "up" leads to."""
    links = tree.get("links")
    for link in links if isinstance(links, list) else ():
        entry = mapping(link)
        if entry.get("rel") == "up":
            _, found, tail = (word(entry.get("href")) or "").partition("/captures/")
            return tail.split("?")[0].strip("/") if found else None
    return None


def paid_out(tree: Mapping[str, Any], item: Item, *, key: str | None) -> Outcome:
    """The outcome of a payout batch of one item, as created or as read later."""
    header = mapping(tree.get("batch_header"))
    reference = word(header.get("payout_batch_id"))
    try:
        return _paid_out(tree, item, header=header, key=key)
    except Contradiction as error:
        return Unresolved("answer_contradicts", str(error), final=True, hint_reference=reference)
    except Unreadable as error:
        return Unresolved("unreadable_answer", str(error), hint_reference=reference)


def _paid_out(tree: Mapping[str, Any], item: Item, *, header: Mapping[str, Any], key: str | None) -> Outcome:
    reference = ident(header, "payout_batch_id")
    sender = word(mapping(header.get("sender_batch_header")).get("sender_batch_id"))
    agrees("sender_batch_id", sender, asked=key or "", reference=reference)
    status = word(header.get("batch_status")) or ""
    billed: Money | None = None
    shown = tree.get("items")
    if shown is not None:
        billed, status = _item_shown(entries(shown), item, reference=reference)
    settled = PAYOUT_STATUS.get(status, _P)
    if settled is _F:
        return Refused(f"payout_{status.lower()}", f"PayPal took {reference} and says that it is {status}")
    return Executed(reference, billed=billed, settlement=settled, kept={"status": status})


def _item_shown(shown: list[Mapping[str, Any]], item: Item, *, reference: str) -> tuple[Money | None, str]:
    """What the batch's one item says. Raises Contradiction for a batch of another item."""
    if len(shown) != 1:
        raise Contradiction(f"{reference} has {len(shown)} items, ours has one", reference=reference)
    inner = mapping(shown[0].get("payout_item"))
    agrees("sender_item_id", word(inner.get("sender_item_id")), asked=sender_item_id(item), reference=reference)
    agrees("the receiver", word(inner.get("receiver")), asked=item.target, reference=reference)
    amount = mapping(inner.get("amount"))
    billed = major(amount.get("value"), amount.get("currency")) if amount else None
    return billed, word(shown[0].get("transaction_status")) or ""


def _message(tree: Mapping[str, Any]) -> str:
    details = tree.get("details")
    first = mapping(details[0]) if isinstance(details, list) and details else {}
    return word(first.get("description")) or word(tree.get("message")) or word(tree.get("error_description")) or ""


def _said(plain: str, message: str) -> str:
    return f"{plain} (PayPal: {message})" if message else plain
