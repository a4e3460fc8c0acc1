"""Stripe's calls in the shape its official SDK gives them, as requests whose bytes can be stored. Sends nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from payonce.core.decimals import STRIPE, STRIPE_LAST_DIGIT_ZERO, STRIPE_WHOLE_PAYOUTS
from payonce.core.errors import ConfigError
from payonce.core.keys import length_prefixed
from payonce.core.model import Item, Request
from payonce.providers.official.extras import load, quiet
from payonce.providers.official.recording import Recorded, record
from payonce.providers.official.settings import Params
from payonce.providers.official.values import asked, units

ITEM: Final = "payonce_item"
BATCH: Final = "payonce_batch"
PAGE: Final = 100
# What payonce sets itself; [provider.params] may add everything else that Stripe's call takes.
RESERVED: Final = frozenset(
    {"amount", "charge", "payment_intent", "currency", "customer", "destination", "transfer_group", "expand", "invoice"}
    | {"auto_advance", "pending_invoice_items_behavior"}
)
_METADATA_VALUE: Final = 500


class StripeCalls:
    """The calls of one operation. ``account`` is a connected account (Stripe-Account), if any."""

    def __init__(self, operation: str, *, batch: str, base_url: str, account: str | None, params: Params) -> None:
        self._operation = operation
        self._batch = batch
        self._base_url = base_url
        self._params = params
        self._client = _client(base_url, account)

    def call(self, item: Item, *, key: str | None, step: int) -> Request:
        """The request of one step of an item. Raises ConfigError for an item that Stripe could not take."""
        assert key is not None, "Stripe declares keys"
        api = self._client.v1
        make: Callable[[], object]
        match self._operation, step:
            case "refund", _:
                make = _bound(api.refunds.create, self._refund(item, key), key)
            case "payout", _:
                make = _bound(api.payouts.create, self._payout(item, key), key)
            case "transfer", _:
                make = _bound(api.transfers.create, self._transfer(item, key), key)
            case _, 0:
                make = _bound(api.invoices.create, self._invoice(item, key), key)
            case _, 1:
                make = _bound(api.invoice_items.create, self._line(item), key)
            case _, 2:
                make = _bound(api.invoices.finalize_invoice, {"auto_advance": False}, key, invoice_of(item))
            case _:
                make = _bound(api.invoices.pay, {}, key, invoice_of(item))
        return record(make, base_url=self._base_url)

    def read(self, path: Callable[[Any], object]) -> Request:
        """The request of a read, from the SDK's own methods: ``read(lambda v1: v1.refunds.list({...}))``."""
        return record(lambda: path(self._client.v1), base_url=self._base_url)

    def group(self, item: Item) -> str:
        """The transfer group that finds an item's transfer."""
        found = hashlib.sha256(length_prefixed(self._batch) + length_prefixed(item.id)).hexdigest()
        return f"payonce_{found[:40]}"

    def _refund(self, item: Item, key: str) -> dict[str, Any]:
        return {
            **self._own(item, key),
            target_field(item.target): item.target,
            "amount": _units(item),
        }

    def _payout(self, item: Item, key: str) -> dict[str, Any]:
        money = asked(item)
        if money.currency in STRIPE_WHOLE_PAYOUTS and money.minor % 100:
            raise _unwritable(item, f"{money} has a fraction; Stripe pays {money.currency} out in whole units")
        made = {**self._own(item, key), "amount": _units(item), "currency": money.currency.lower()}
        if item.target != item.id:
            if not item.target.startswith(("ba_", "card_")):
                raise _bad_target(item, "a payout's target is a bank account (ba_...) or a debit card (card_...)")
            made["destination"] = item.target
        return made

    def _transfer(self, item: Item, key: str) -> dict[str, Any]:
        if not item.target.startswith("acct_"):
            raise _bad_target(item, "a transfer's target is a connected account (acct_...)")
        money = asked(item)
        return {
            **self._own(item, key),
            "amount": _units(item),
            "currency": money.currency.lower(),
            "destination": item.target,
            "transfer_group": self.group(item),
        }

    def _invoice(self, item: Item, key: str) -> dict[str, Any]:
        if not item.target.startswith("cus_"):
            raise _bad_target(item, "an invoice's target is a customer (cus_...)")
        return {
            **self._own(item, key),
            "customer": item.target,
            "currency": asked(item).currency.lower(),
            "auto_advance": False,
            "pending_invoice_items_behavior": "exclude",
        }

    def _line(self, item: Item) -> dict[str, Any]:
        money = asked(item)
        return {
            "customer": item.target,
            "invoice": invoice_of(item),
            "amount": _units(item),
            "currency": money.currency.lower(),
            "description": str(item.fields.get("description") or item.id),
            "metadata": self._metadata(item, {}),
        }

    def _own(self, item: Item, key: str) -> dict[str, Any]:
        """The user's further parameters, with our reference in the metadata."""
        params = self._params.of(item, key)
        return {**params, "metadata": self._metadata(item, params.get("metadata") or {})}

    def _metadata(self, item: Item, further: Mapping[str, Any]) -> dict[str, str]:
        if len(item.id) > _METADATA_VALUE or len(self._batch) > _METADATA_VALUE:
            raise ConfigError(
                f"the id of item {item.id[:40]}... is longer than Stripe's metadata takes ({_METADATA_VALUE} characters)",
                code="id_too_long",
                hint="use shorter ids: they are how a refund is found again",
            )
        return {**{str(k): str(v) for k, v in further.items()}, ITEM: item.id, BATCH: self._batch}


def target_field(target: str) -> str:
    """Which parameter a refund's target is: ``payment_intent`` for pi_..., ``charge`` for everything else."""
    return "payment_intent" if target.startswith("pi_") else "charge"


def invoice_of(item: Item) -> str:
    """The invoice that an earlier step of the item created."""
    found = item.carry.get("invoice")
    assert isinstance(found, str), "a step after the first without the invoice it made"
    return found


def _units(item: Item) -> int:
    """The amount as Stripe counts it. Raises ConfigError for one that it does not take."""
    money = asked(item)
    if money.currency in STRIPE_LAST_DIGIT_ZERO and money.minor % 10:
        raise _unwritable(item, f"{money} has three decimals; Stripe takes {money.currency} with the last one 0")
    return units(item, STRIPE)


def _unwritable(item: Item, why: str) -> ConfigError:
    return ConfigError(f"item {item.id}: {why}", code="not_representable", hint="round the amount in the input")


def _bad_target(item: Item, why: str) -> ConfigError:
    return ConfigError(
        f"item {item.id}: {why}, not {item.target[:60]!r}", code="bad_target", hint="map [item] target to its column"
    )


def _bound(method: Callable[..., object], params: dict[str, Any], key: str, *path: str) -> Callable[[], object]:
    return lambda: method(*path, params, {"idempotency_key": key, "max_network_retries": 0})


def _client(base_url: str, account: str | None) -> Any:
    """The SDK's client around an HTTP client that records. It gets no real key: it never authenticates anything."""
    sdk = load("stripe", extra="stripe")
    sdk.enable_telemetry = False
    quiet("stripe")

    class Recorder(sdk.HTTPClient):  # type: ignore[misc, name-defined]
        name = "payonce"

        def request_with_retries(
            self, method: str, url: str, headers: Mapping[str, str], post_data: Any = None, *_: object, **__: object
        ) -> Any:
            raise Recorded(method=method, url=url, headers=headers, body=post_data)

    return sdk.StripeClient(
        "sk_test_recording",
        base_addresses={"api": base_url},
        http_client=Recorder(),
        stripe_account=account,
        max_network_retries=0,
    )
