"""Adyen's webhooks: signature and meaning. Pure.

Sources: https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures (fields and their
order; header for platform webhooks), https://docs.adyen.com/online-payments/refund (REFUND, REFUND_FAILED,
REFUNDED_REVERSED).
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, Final

from payonce.core.decimals import ADYEN
from payonce.core.states import Settlement
from payonce.providers.adyen.answers import TRANSFER_STATUS
from payonce.providers.official.facts import (
    BadSignature,
    Delivery,
    Fact,
    NotAnEvent,
    same_signature,
    sha256_hmac,
    texts,
)
from payonce.providers.official.values import Unreadable, entries, ident, mapping, minor, parse_object, word

SECRET_VARIABLE: Final = "ADYEN_HMAC_KEY"  # noqa: S105
SIGNED: Final = True
_REFUNDS: Final = {
    ("REFUND", "true"): Settlement.SUCCEEDED,
    ("REFUND", "false"): Settlement.FAILED,
    ("REFUND_FAILED", "true"): Settlement.FAILED,
    ("REFUND_FAILED", "false"): Settlement.FAILED,
    ("REFUNDED_REVERSED", "true"): Settlement.RETURNED,
}


def verify(delivery: Delivery, secret: str) -> None:
    """Raises BadSignature unless every notification in the body is signed with the key (hexadecimal)."""
    try:
        key = binascii.unhexlify(secret)
        tree = parse_object(delivery.body)
    except (ValueError, binascii.Error) as error:
        raise BadSignature("the HMAC key is no hexadecimal text, or the body no JSON") from error
    if "notificationItems" not in tree:
        given = delivery.headers.get("hmacsignature")
        if not same_signature(given, sha256_hmac(key, delivery.body), encoding="base64"):
            raise BadSignature("the header hmacsignature is not of this body and key")
        return
    for entry in _items(tree):
        given = word(mapping(entry.get("additionalData")).get("hmacSignature"))
        if not same_signature(given, sha256_hmac(key, _signed(entry)), encoding="base64"):
            raise BadSignature("a notification's hmacSignature is not of its fields and this key")


def _signed(entry: Mapping[str, Any]) -> bytes:
    amount = mapping(entry.get("amount"))
    head = texts(entry, "pspReference", "originalReference", "merchantAccountCode", "merchantReference")
    return ":".join((*head, *texts(amount, "value", "currency"), *texts(entry, "eventCode", "success"))).encode("utf-8")


def _items(tree: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [mapping(entry.get("NotificationRequestItem")) for entry in entries(tree.get("notificationItems"))]


def facts(delivery: Delivery) -> tuple[Fact, ...]:
    """What a delivery says: empty where it is about something else. Raises NotAnEvent."""
    try:
        tree = parse_object(delivery.body)
        if "notificationItems" in tree:
            live = {"true": True, "false": False}.get(str(tree.get("live")).lower())
            return tuple(fact for entry in _items(tree) if (fact := _refund(entry, live=live)) is not None)
        if (word(tree.get("type")) or "").startswith("balancePlatform.transfer."):
            return (_transfer(tree),)
    except (ValueError, Unreadable) as error:
        raise NotAnEvent(str(error)) from error
    if "type" not in tree:
        raise NotAnEvent("the file is no Adyen webhook")
    return ()


def _refund(entry: Mapping[str, Any], *, live: bool | None) -> Fact | None:
    code, success = word(entry.get("eventCode")) or "", str(entry.get("success")).lower()
    told = _REFUNDS.get((code, success))
    if told is None:
        return None
    amount = mapping(entry.get("amount"))
    reference = ident(entry, "pspReference")
    return Fact(
        event=f"{reference}:{code}:{success}",
        kind=code,
        reference=reference,
        settlement=told,
        word=word(entry.get("reason")) or success,
        own_reference=word(entry.get("merchantReference")),
        target=word(entry.get("originalReference")),
        money=minor(amount.get("value"), amount.get("currency"), ADYEN),
        live=live,
        at=word(entry.get("eventDate")),
    )


def _transfer(tree: Mapping[str, Any]) -> Fact:
    about = mapping(tree.get("data"))
    amount = mapping(about.get("amount"))
    status = word(about.get("status")) or ""
    reference = ident(about)
    return Fact(
        event=f"{reference}:{status}",
        kind=word(tree.get("type")) or "",
        reference=reference,
        settlement=TRANSFER_STATUS.get(status, Settlement.PENDING),
        word=status,
        own_reference=word(about.get("reference")),
        money=minor(amount.get("value"), amount.get("currency"), ADYEN),
        live={"live": True, "test": False}.get(str(tree.get("environment"))),
        at=word(tree.get("timestamp")) or word(about.get("creationDate")),
    )
