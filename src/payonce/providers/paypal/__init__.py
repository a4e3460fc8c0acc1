"""PayPal: refunds of captures, payouts. Built from ``[provider]`` with ``kind = "paypal"``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal

from payonce.core.model import Declaration
from payonce.providers.official.adapter import Setup, TransportMaker
from payonce.providers.official.settings import OfficialTable, Params, address, connection, declared, digest
from payonce.providers.paypal.calls import PAYOUT_PARAMS, REFUND_PARAMS, RESERVED, PayPalCalls
from payonce.providers.paypal.declaration import DECLARATIONS
from payonce.providers.paypal.provider import PayPalProvider
from payonce.providers.registry import Wanted
from payonce.providers.registry_http import make_transport as default_transport
from payonce.providers.secrets import Vault
from payonce.providers.settings_values import bad_setting, read

_ADDRESS: Final = {"live": "https://api-m.paypal.com", "sandbox": "https://api-m.sandbox.paypal.com"}
OPERATIONS: Final = tuple(DECLARATIONS)


class PayPalTable(OfficialTable, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[provider]`` with ``kind = "paypal"``. ``account`` is the merchant id that the batch is bound to; without it, a
    digest of the client id stands in."""

    environment: Literal["sandbox", "live"]
    client_id: str = "${PAYPAL_CLIENT_ID}"
    client_secret: str = "${PAYPAL_CLIENT_SECRET}"  # noqa: S105


def build(table: Mapping[str, Any], wanted: Wanted, *, make_transport: TransportMaker | None = None) -> PayPalProvider:
    """The provider of the table. Raises ConfigError."""
    settings = read(table, PayPalTable)
    declaration = declared(DECLARATIONS, settings, operation=wanted.operation)
    allowed = REFUND_PARAMS if wanted.operation == "refund" else PAYOUT_PARAMS
    unknown = sorted(set(settings.params) - allowed - RESERVED)
    if unknown:
        raise bad_setting(
            f"[provider.params] has no setting {unknown[0]!r}", hint=f"known: {', '.join(sorted(allowed))}"
        )
    vault = Vault(wanted.environ)
    client = vault.secret(settings.client_id, place="[provider] client_id")
    secret = vault.secret(settings.client_secret, place="[provider] client_secret")
    where = address(settings, vault, official=_ADDRESS[settings.environment])
    account = settings.account or f"client-{hashlib.sha256(client.encode()).hexdigest()[:16]}"
    setup = Setup(
        declaration=declaration,
        digest=digest(
            kind="paypal", operation=wanted.operation, base_url=where.url, account=account, params=settings.params
        ),
        batch=wanted.batch,
        transport=connection(settings, vault, where, headers=(), concurrency=wanted.concurrency),
        redactor=vault.redactor(),
        request_ids=("paypal-debug-id",),
    )
    return PayPalProvider(
        setup,
        PayPalCalls(
            wanted.operation, batch=wanted.batch, params=Params(settings.params, reserved=RESERVED, wanted=wanted)
        ),
        make_transport=make_transport or (lambda made: default_transport(made, name=settings.transport)),
        client=client,
        secret=secret,
        vault=vault,
        account=account,
        mode="live" if settings.environment == "live" else "test",
    )


def describe() -> Declaration:
    """What PayPal promises for refunds; see ``describe_all`` for payouts."""
    return DECLARATIONS["refund"]


def describe_all() -> tuple[Declaration, ...]:
    """What PayPal promises, one declaration an operation."""
    return tuple(DECLARATIONS.values())
