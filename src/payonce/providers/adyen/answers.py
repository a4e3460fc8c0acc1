"""What Adyen's answers mean. Pure.

Sources: https://docs.adyen.com/development-resources/api-idempotency for 703, 704 and transient-error;
https://docs.adyen.com/development-resources/error-codes for the codes; the OpenAPI files of Adyen/adyen-openapi for
the fields. Adyen does not say whether it compares bodies under one key: an answer is always compared with the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from payonce.core.decimals import ADYEN
from payonce.core.model import SECOND_US, Item
from payonce.core.outcome import Executed, NotExecuted, Outcome, Refused, Stop, Unresolved
from payonce.core.states import Settlement
from payonce.providers.official.adapter import Told
from payonce.providers.official.values import Contradiction, Unreadable, agrees, ident, mapping, minor, word

# Validation: decided before anything is handed on. 704 has the same errorType, so codes are listed, not types.
REFUSED: Final[dict[str, str]] = {
    "100": "no amount was given",
    "130": "no reference was given",
    "137": "the amount is not valid",
    "138": "the currency is not supported",
    "167": "there is no such payment",
    "702": "Adyen cannot read the request",
}
TRANSFER_STATUS: Final[dict[str, Settlement]] = {
    "booked": Settlement.SUCCEEDED,
    "refused": Settlement.FAILED,
    "failed": Settlement.FAILED,
    "returned": Settlement.RETURNED,
}


# 704 also answers to a key whose first call is long over, without saying how that ended. It is waited for while the
# first may be running, five minutes here; after that it is an answer that does not tell, and uses up attempts.
_PATIENCE: Final = 20
_WAIT_US: Final = 15 * SECOND_US


def meaning(told: Told, *, sent: int) -> Outcome:
    """The outcome of an answer that is no success. ``sent`` is how often the item was sent."""
    tree = mapping(told.tree)
    code, message = word(tree.get("errorCode")) or "", word(tree.get("message")) or word(tree.get("detail")) or ""
    status = told.status
    if status == 429:
        return NotExecuted("rate_limited", message or "too many calls at once", True, told.retry_after_us)
    if code == "704":
        text = _said("the first call is in progress or was processed", message)
        return Unresolved("704", text, in_progress=sent < _PATIENCE, retry_after_us=told.retry_after_us or _WAIT_US)
    if status in (401, 403):
        plain = "Adyen does not accept the API key" if status == 401 else "the API key may not act for this account"
        return Stop(code or ("bad_credentials" if status == 401 else "not_permitted"), _said(plain, message))
    transient = (told.answer.header("transient-error") or "").lower()
    if status in (400, 422) and code in REFUSED and transient != "true":
        return Refused(code, _said(REFUSED[code], message))
    if 300 <= status < 400:
        return Unresolved("redirect", "Adyen answered with a redirect, which a call does not follow")
    # "false" says that the same call would meet the same; no header at all may be a proxy's answer.
    return Unresolved(
        code or f"http_{status}",
        message or f"Adyen answered with {status}",
        final=status >= 500 and transient == "false",
        retry_after_us=told.retry_after_us,
    )


def confirmed(tree: Mapping[str, Any], item: Item, *, operation: str, account: str) -> Outcome:
    """The outcome of a success: Executed if it is about this very call, Unresolved if it contradicts it."""
    name = "pspReference" if operation == "refund" else "id"
    reference = word(tree.get(name))
    try:
        return _refund(tree, item, account) if operation == "refund" else _transfer(tree, item, account)
    except Contradiction as error:
        return Unresolved("answer_contradicts", str(error), final=True, hint_reference=reference)
    except Unreadable as error:
        return Unresolved("unreadable_answer", str(error), hint_reference=reference)


def _refund(tree: Mapping[str, Any], item: Item, account: str) -> Outcome:
    reference = ident(tree, "pspReference")
    agrees("the payment", word(tree.get("paymentPspReference")), asked=item.target, reference=reference)
    agrees("the merchant account", word(tree.get("merchantAccount")), asked=account, reference=reference)
    agrees("reference", word(tree.get("reference")), asked=item.id, reference=reference)
    if tree.get("status") != "received":
        raise Unreadable(f"{reference} is {tree.get('status')!r}, which Adyen does not document")
    amount = mapping(tree.get("amount"))
    billed = minor(amount.get("value"), amount.get("currency"), ADYEN)
    return Executed(reference, billed=billed, settlement=Settlement.PENDING, kept={"status": "received"})


def _transfer(tree: Mapping[str, Any], item: Item, account: str) -> Outcome:
    reference = ident(tree)
    agrees("reference", word(tree.get("reference")), asked=item.id, reference=reference)
    agrees(
        "the balance account", word(mapping(tree.get("balanceAccount")).get("id")), asked=account, reference=reference
    )
    instrument = word(mapping(tree.get("counterparty")).get("transferInstrumentId"))
    agrees("the transfer instrument", instrument, asked=item.target, reference=reference)
    status = word(tree.get("status")) or ""
    settled = TRANSFER_STATUS.get(status, Settlement.PENDING)
    if settled is Settlement.FAILED:
        return Refused(f"transfer_{status}", f"Adyen took {reference} and says that it is {status}")
    amount = mapping(tree.get("amount"))
    billed = minor(amount.get("value"), amount.get("currency"), ADYEN)
    return Executed(reference, billed=billed, settlement=settled, kept={"status": status})


def _said(plain: str, message: str) -> str:
    return f"{plain} (Adyen: {message})" if message else plain
