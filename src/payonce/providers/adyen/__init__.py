"""Adyen: refunds of payments, payouts by transfer. Built from ``[provider]`` with ``kind = "adyen"``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from payonce.core.model import Declaration
from payonce.providers.adyen.calls import RESERVED, AdyenCalls
from payonce.providers.adyen.declaration import DECLARATIONS
from payonce.providers.adyen.provider import AdyenProvider
from payonce.providers.official.adapter import Setup, TransportMaker
from payonce.providers.official.settings import OfficialTable, Params, address, connection, declared, digest
from payonce.providers.registry import Wanted
from payonce.providers.registry_http import make_transport as default_transport
from payonce.providers.secrets import Vault
from payonce.providers.settings_values import bad_setting, read

# The versions whose fields answers.py reads; part of the address, and so of what a batch is bound to.
_CHECKOUT: Final = "v72"
_TRANSFERS: Final = "v4"
OPERATIONS: Final = tuple(DECLARATIONS)


class AdyenTable(OfficialTable, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[provider]`` with ``kind = "adyen"``.

    ``live_prefix`` is the live address's own prefix, which also is its region: keys do not cross regions.
    """

    api_key: str = "${ADYEN_API_KEY}"
    environment: Literal["test", "live"]
    merchant_account: str | None = None
    balance_account: str | None = None
    live_prefix: str | None = None


def build(table: Mapping[str, Any], wanted: Wanted, *, make_transport: TransportMaker | None = None) -> AdyenProvider:
    """The provider of the table. Raises ConfigError."""
    settings = read(table, AdyenTable)
    declaration = declared(DECLARATIONS, settings, operation=wanted.operation)
    vault = Vault(wanted.environ)
    secret = vault.secret(settings.api_key, place="[provider] api_key")
    account = _account(settings, wanted.operation)
    where = address(settings, vault, official=_official(settings, wanted.operation))
    setup = Setup(
        declaration=declaration,
        digest=digest(
            kind="adyen", operation=wanted.operation, base_url=where.url, account=account, params=settings.params
        ),
        batch=wanted.batch,
        transport=connection(settings, vault, where, headers=(("X-API-Key", secret),), concurrency=wanted.concurrency),
        redactor=vault.redactor(),
        request_ids=("pspreference", "request-id", "x-request-id"),
    )
    return AdyenProvider(
        setup,
        AdyenCalls(wanted.operation, account=account, params=Params(settings.params, reserved=RESERVED, wanted=wanted)),
        make_transport=make_transport or (lambda made: default_transport(made, name=settings.transport)),
        account=account,
        mode=settings.environment,
        prove=where.own and wanted.operation == "refund",
    )


def _account(settings: AdyenTable, operation: str) -> str:
    name = "balance_account" if operation == "payout" else "merchant_account"
    found: str | None = getattr(settings, name)
    if not found:
        raise bad_setting(f"[provider] lacks {name!r}", hint=f"add {name} = ... as the Customer Area shows it")
    if settings.account not in (None, found):
        raise bad_setting(f"[provider] account is not {name}", hint="leave account out")
    return found


def _official(settings: AdyenTable, operation: str) -> str:
    """Adyen's own address of an environment (https://docs.adyen.com/development-resources/live-endpoints)."""
    if operation == "payout":
        return f"https://balanceplatform-api-{settings.environment}.adyen.com/btl/{_TRANSFERS}"
    if settings.environment == "test":
        return f"https://checkout-test.adyen.com/{_CHECKOUT}"
    if not settings.live_prefix and settings.base_url is None:
        raise bad_setting(
            "[provider] lacks 'live_prefix', which the live address begins with",
            hint="the Customer Area shows it under Developers, API URLs",
        )
    return f"https://{settings.live_prefix}-checkout-live.adyenpayments.com/checkout/{_CHECKOUT}"


def describe() -> Declaration:
    """What Adyen promises for refunds; see ``describe_all`` for payouts."""
    return DECLARATIONS["refund"]


def describe_all() -> tuple[Declaration, ...]:
    """What Adyen promises, one declaration an operation."""
    return tuple(DECLARATIONS.values())
