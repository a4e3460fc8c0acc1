"""Stripe's webhook events: signature and meaning. Pure.

Sources: https://docs.stripe.com/webhooks/signatures (``t=...,v1=...``, HMAC-SHA-256 over ``t.body``) and
https://docs.stripe.com/api/events. The age of a signature is not judged: these are files, read when a person likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from payonce.core.decimals import STRIPE
from payonce.core.events import iso
from payonce.core.model import SECOND_US
from payonce.core.money import Money
from payonce.providers.official.facts import BadSignature, Delivery, Fact, NotAnEvent, same_signature, sha256_hmac
from payonce.providers.official.values import Unreadable, ident, mapping, minor, named, parse_object, word
from payonce.providers.stripe.calls import BATCH, ITEM
from payonce.providers.stripe.confirm import settlement_of

SECRET_VARIABLE: Final = "STRIPE_WEBHOOK_SECRET"  # noqa: S105
SIGNED: Final = True
_OBJECTS: Final = ("refund", "payout", "transfer", "invoice")


def verify(delivery: Delivery, secret: str) -> None:
    """Raises BadSignature unless one of the header's v1 signatures is of this body and secret."""
    pairs = [part.strip().partition("=") for part in delivery.headers.get("stripe-signature", "").split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    given = [value for name, _, value in pairs if name == "v1"]
    if len(times) != 1 or not given:
        raise BadSignature("there is no Stripe-Signature header with a time and a v1 signature")
    expected = sha256_hmac(secret.encode("utf-8"), times[0].encode("utf-8") + b"." + delivery.body)
    if not any(same_signature(one, expected, encoding="hex") for one in given):
        raise BadSignature("the signature is not of this event and secret")


def facts(delivery: Delivery) -> tuple[Fact, ...]:
    """What an event says: empty for one that is about something else. Raises NotAnEvent."""
    try:
        event = parse_object(delivery.body)
        if event.get("object") != "event":
            raise NotAnEvent("the file is no Stripe event")
        about = mapping(mapping(event.get("data")).get("object"))
        kind = word(about.get("object"))
        if kind not in _OBJECTS:
            return ()
        metadata = mapping(about.get("metadata"))
        created = event.get("created")
        live = event.get("livemode")
        return (
            Fact(
                event=ident(event),
                kind=word(event.get("type")) or "",
                reference=ident(about),
                settlement=settlement_of(kind, about),
                word=word(about.get("status")) or ("reversed" if about.get("reversed") is True else ""),
                own_reference=word(metadata.get(ITEM)),
                batch=word(metadata.get(BATCH)),
                target=named(about.get("charge")) or named(about.get("destination")) or named(about.get("customer")),
                money=_money(about, kind),
                live=live if isinstance(live, bool) else None,
                at=iso(created * SECOND_US) if isinstance(created, int) else None,
            ),
        )
    except (ValueError, Unreadable) as error:
        raise NotAnEvent(str(error)) from error


def _money(about: Mapping[str, Any], kind: str) -> Money | None:
    """The object's amount; None in a currency whose decimals Stripe's documentation leaves open."""
    currency = word(about.get("currency"))
    if currency is not None and STRIPE.get(currency.upper(), 0) is None:
        return None
    return minor(about.get("total" if kind == "invoice" else "amount"), currency, STRIPE)
