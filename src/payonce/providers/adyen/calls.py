"""Adyen's calls in the shape its official SDK gives them, as requests whose bytes can be stored. Sends nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from payonce.core.decimals import ADYEN
from payonce.core.errors import ConfigError
from payonce.core.model import Item, Request
from payonce.providers.official.extras import load, quiet
from payonce.providers.official.recording import Recorded, record
from payonce.providers.official.settings import Params
from payonce.providers.official.values import asked, units

RESERVED: Final = frozenset({"amount", "merchantAccount", "reference", "balanceAccountId", "counterparty", "category"})
_RECORDING: Final = "https://recording.invalid"
# A reference that Adyen makes; anything else would be another path.
_PSP: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")
_REFERENCE: Final = {"refund": 80, "payout": 80}


class AdyenCalls:
    """The calls of one operation. ``account`` is the merchant account, or the balance account for payouts."""

    def __init__(self, operation: str, *, account: str, params: Params) -> None:
        self._operation = operation
        self._account = account
        self._params = params
        self._api = _api(operation)

    def call(self, item: Item, *, key: str | None) -> Request:
        """The request of an item. Raises ConfigError for an item that Adyen could not take."""
        assert key is not None, "Adyen declares keys"
        self._check(item)
        money = asked(item)
        made = {
            **self._params.of(item, key),
            "amount": {"currency": money.currency, "value": units(item, ADYEN)},
            "reference": item.id,
        }
        if self._operation == "payout":
            made |= {
                "balanceAccountId": self._account,
                "category": "bank",
                "counterparty": {"transferInstrumentId": item.target},
            }
            return record(lambda: self._api.transfer_funds(made, idempotency_key=key), base_url=_RECORDING)
        made["merchantAccount"] = self._account
        return record(
            lambda: self._api.refund_captured_payment(made, item.target, idempotency_key=key), base_url=_RECORDING
        )

    def proof(self) -> Request:
        """A call that moves no money and is answered only to a key of this merchant account."""
        body = orjson.dumps({"merchantAccount": self._account})
        return Request("POST", "/paymentMethods", body, (("Content-Type", "application/json"),))

    def _check(self, item: Item) -> None:
        if _PSP.fullmatch(item.target) is None:
            what = "a payment's pspReference" if self._operation == "refund" else "a transfer instrument (SE...)"
            raise ConfigError(
                f"item {item.id}: the target is {what}, not {item.target[:60]!r}",
                code="bad_target",
                hint="map [item] target to its column",
            )
        longest = _REFERENCE[self._operation]
        if len(item.id) > longest:
            raise ConfigError(
                f"the id of item {item.id[:40]}... is longer than Adyen's reference takes ({longest} characters)",
                code="id_too_long",
                hint="use shorter ids: they are how a refund is found in a report",
            )


class _Recorder:
    """Stands where the SDK keeps its HTTP client."""

    user_agent = "payonce"

    def request(self, method: str, url: str, *, headers: Mapping[str, str], json: Any = None, **_: object) -> Any:
        with_type = {**headers, "Content-Type": "application/json"}
        raise Recorded(method=method, url=url, headers=with_type, body=orjson.dumps(json))


def _api(operation: str) -> Any:
    """The SDK's service for an operation, around an HTTP client that records. It gets no real key."""
    sdk = load("Adyen", extra="adyen")
    quiet("Adyen", "adyen")
    client = sdk.AdyenClient(xapikey="recording", platform="test")
    client.http_client = _Recorder()
    client.http_init = True
    if operation == "payout":
        api = load("Adyen.services.transfers", extra="adyen").TransfersApi(client=client)
    else:
        api = load("Adyen.services.checkout", extra="adyen").ModificationsApi(client=client)
    api.baseUrl = _RECORDING
    return api
