"""PayPal's calls as requests whose bytes can be stored: refunds in the shape of the official SDK, payouts by hand, as
the SDK has none. Sends nothing."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

import orjson

from payonce.core.errors import ConfigError
from payonce.core.keys import length_prefixed
from payonce.core.model import Item, Request
from payonce.core.money import Money
from payonce.providers.official.extras import load, quiet
from payonce.providers.official.recording import Recorded, record
from payonce.providers.official.settings import Params
from payonce.providers.official.values import asked

RESERVED: Final = frozenset({"amount", "invoice_id", "custom_id", "items", "sender_batch_header", "receiver"})
# What payonce passes on of a refund's further parameters; the SDK's model drops everything else silently.
REFUND_PARAMS: Final = frozenset({"note_to_payer"})
PAYOUT_PARAMS: Final = frozenset({"note", "recipient_type", "email_subject", "email_message", "purpose"})
_TARGET: Final = re.compile(r"[A-Za-z0-9_-]{4,64}")
# custom_id: ^[A-Za-z0-9-_.,]*$ up to 127 (payments_payment_v2.json). Ours is the id wherever it fits.
_CUSTOM: Final = re.compile(r"[A-Za-z0-9_.,-]{1,127}")
_SENDER_ITEM: Final = re.compile(r"[ -~]{1,63}")
_RECORDING: Final = "https://recording.invalid"
# Two decimals in ISO 4217, none at PayPal (https://developer.paypal.com/api/rest/reference/currency-codes).
_WHOLE_ONLY: Final = frozenset({"HUF", "TWD"})


class PayPalCalls:
    """The calls of one operation."""

    def __init__(self, operation: str, *, batch: str, params: Params) -> None:
        self._operation = operation
        self._batch = batch
        self._params = params
        self._sdk = _Refunds() if operation == "refund" else None

    def call(self, item: Item, *, key: str | None) -> Request:
        """The request of an item. Raises ConfigError for an item that PayPal could not take."""
        assert key is not None, "PayPal declares keys"
        money = asked(item)
        params = self._params.of(item, key)
        if self._sdk is None:
            return self._payout(item, key, params)
        if _TARGET.fullmatch(item.target) is None:
            raise ConfigError(
                f"item {item.id}: a refund's target is a capture id, not {item.target[:60]!r}",
                code="bad_target",
                hint="map [item] target to the column with the capture's id (not the order's)",
            )
        return self._sdk.refund(
            item.target,
            key=key,
            value=value_text(money),
            currency=money.currency,
            invoice_id=self.invoice_id(item),
            custom_id=custom_id(item),
            **params,
        )

    def invoice_id(self, item: Item) -> str:
        """What PayPal takes only once: of the batch and the item, never of the attempt or generation."""
        made = hashlib.sha256(length_prefixed(self._batch) + length_prefixed(item.id)).hexdigest()
        return f"payonce-{made[:48]}"

    def _payout(self, item: Item, key: str, params: dict[str, Any]) -> Request:
        money = asked(item)
        header = {"sender_batch_id": key}
        header |= {name: params[name] for name in ("email_subject", "email_message") if name in params}
        entry: dict[str, Any] = {
            "recipient_type": params.get("recipient_type", "EMAIL"),
            "amount": {"value": value_text(money), "currency": money.currency},
            "receiver": item.target,
            "sender_item_id": sender_item_id(item),
        }
        entry |= {name: params[name] for name in ("note", "purpose") if name in params}
        body = {"sender_batch_header": header, "items": [entry]}
        headers = (("Content-Type", "application/json"), ("PayPal-Request-Id", key))
        return Request("POST", "/v1/payments/payouts", orjson.dumps(body), headers)


def value_text(money: Money) -> str:
    """An amount as PayPal writes it. Raises ConfigError for a fraction that its form of the currency does not have."""
    if money.currency not in _WHOLE_ONLY:
        return money.text
    whole, _, fraction = money.text.partition(".")
    if fraction.strip("0"):
        raise ConfigError(
            f"{money} has a fraction, which PayPal does not take in {money.currency}",
            code="not_representable",
            hint="round the amount in the input",
        )
    return whole


def custom_id(item: Item) -> str:
    """The item's id where PayPal's alphabet has it, else its digest: it comes back in answers and reports."""
    return item.id if _CUSTOM.fullmatch(item.id) else hashlib.sha256(item.id.encode()).hexdigest()


def sender_item_id(item: Item) -> str:
    """The same for a payout's item, which takes 63 characters."""
    return item.id if _SENDER_ITEM.fullmatch(item.id) else hashlib.sha256(item.id.encode()).hexdigest()[:48]


class _Refunds:
    """The SDK's refunds, around an HTTP session that records. It gets no real credentials."""

    def __init__(self) -> None:
        # Its models are imported one by one; the package itself would pull in every one of them.
        configuration = load("paypalserversdk.configuration", extra="paypal")
        client = load("paypalserversdk.paypal_serversdk_client", extra="paypal")
        auth = load("paypalserversdk.http.auth.o_auth_2", extra="paypal")
        token = load("paypalserversdk.models.o_auth_token", extra="paypal")
        self._request = load("paypalserversdk.models.refund_request", extra="paypal").RefundRequest
        self._money = load("paypalserversdk.models.money", extra="paypal").Money
        quiet("paypalserversdk", "apimatic_core", "urllib3")
        granted = token.OAuthToken(access_token="recording", token_type="Bearer")  # noqa: S106
        self._api = client.PaypalServersdkClient(
            client_credentials_auth_credentials=auth.ClientCredentialsAuthCredentials(
                o_auth_client_id="recording",
                o_auth_client_secret="recording",  # noqa: S106
                o_auth_token=granted,
            ),
            environment=configuration.Environment.SANDBOX,
            http_client_instance=_recorder(),
            override_http_client_configuration=False,
            max_retries=0,
        ).payments

    def refund(
        self, capture: str, *, key: str, value: str, currency: str, invoice_id: str, custom_id: str, **params: Any
    ) -> Request:
        """The SDK's own request for a refund."""
        body = self._request(
            amount=self._money(currency_code=currency, value=value),
            invoice_id=invoice_id,
            custom_id=custom_id,
            **params,
        )
        options = {
            "capture_id": capture,
            "paypal_request_id": key,
            # The minimal answer would lack the amount and the references that are compared.
            "prefer": "return=representation",
            "body": body,
        }
        return record(lambda: self._api.refund_captured_payment(options), base_url=_RECORDING)


def _recorder() -> Any:
    """A requests session that raises what it is handed."""
    requests = load("requests", extra="paypal")

    class Recorder(requests.Session):  # type: ignore[misc, name-defined]
        timeout = 1

        def request(self, method: str, url: str, *_: object, **sent: Any) -> Any:
            path = re.sub(r"^https?://[^/]+", _RECORDING, url)
            raise Recorded(method=method, url=path, headers=sent.get("headers") or {}, body=sent.get("data"))

    return Recorder()
