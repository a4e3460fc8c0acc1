"""PayPal's webhook events: their meaning. Pure.

PayPal signs with a certificate that has to be fetched from PayPal, or checks by a call of its own
(https://developer.paypal.com/api/rest/webhooks/rest): neither works on files alone, so nothing here can tell a true
event from a made-up one. ``SIGNED`` says so, and a person has to vouch for the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from payonce.core.states import Settlement
from payonce.providers.official.facts import BadSignature, Delivery, Fact, NotAnEvent
from payonce.providers.official.values import Unreadable, ident, major, mapping, parse_object, word
from payonce.providers.paypal.answers import PAYOUT_STATUS, REFUND_STATUS

SECRET_VARIABLE: Final = ""
SIGNED: Final = False


def verify(delivery: Delivery, secret: str) -> None:
    """Raises BadSignature: there is nothing to verify with."""
    raise BadSignature("PayPal's signatures cannot be checked without asking PayPal")


def facts(delivery: Delivery) -> tuple[Fact, ...]:
    """What an event says: empty for one that is about something else. Raises NotAnEvent."""
    try:
        event = parse_object(delivery.body)
        kind = word(event.get("event_type"))
        if kind is None or "resource" not in event:
            raise NotAnEvent("the file is no PayPal event")
        about = mapping(event.get("resource"))
        if kind.startswith("PAYMENT.PAYOUTS-ITEM."):
            return (_payout(event, about, kind),)
        if kind == "PAYMENT.CAPTURE.REFUNDED" or kind.startswith("PAYMENT.REFUND."):
            return (_refund(event, about, kind),)
    except (ValueError, Unreadable) as error:
        raise NotAnEvent(str(error)) from error
    return ()


def _refund(event: Mapping[str, Any], about: Mapping[str, Any], kind: str) -> Fact:
    amount = mapping(about.get("amount"))
    status = word(about.get("status")) or ""
    return Fact(
        event=ident(event),
        kind=kind,
        reference=ident(about),
        settlement=REFUND_STATUS.get(status, Settlement.PENDING),
        word=status,
        own_reference=word(about.get("custom_id")),
        money=major(amount.get("value"), amount.get("currency_code")),
        at=word(event.get("create_time")),
    )


def _payout(event: Mapping[str, Any], about: Mapping[str, Any], kind: str) -> Fact:
    inner = mapping(about.get("payout_item"))
    amount = mapping(inner.get("amount"))
    status = word(about.get("transaction_status")) or ""
    return Fact(
        event=ident(event),
        kind=kind,
        # What is committed is the batch of one item, since it is all that the answer to the call names.
        reference=ident(about, "payout_batch_id"),
        settlement=PAYOUT_STATUS.get(status, Settlement.PENDING),
        word=status,
        own_reference=word(inner.get("sender_item_id")),
        target=word(inner.get("receiver")),
        money=major(amount.get("value"), amount.get("currency")),
        at=word(event.get("create_time")),
    )
