"""Stripe: refunds, payouts, transfers, invoices. Built from ``[provider]`` with ``kind = "stripe"``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from payonce.core.model import Declaration
from payonce.providers.official.adapter import Setup, TransportMaker
from payonce.providers.official.settings import OfficialTable, Params, address, connection, declared, digest
from payonce.providers.registry import Wanted
from payonce.providers.registry_http import make_transport as default_transport
from payonce.providers.secrets import Vault
from payonce.providers.settings_values import read
from payonce.providers.stripe.calls import RESERVED, StripeCalls
from payonce.providers.stripe.declaration import DECLARATIONS
from payonce.providers.stripe.provider import StripeProvider

ADDRESS: Final = "https://api.stripe.com"
_MODES: Final = {"sk_live_": "live", "rk_live_": "live", "sk_test_": "test", "rk_test_": "test"}
OPERATIONS: Final = tuple(DECLARATIONS)


class StripeTable(OfficialTable, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[provider]`` with ``kind = "stripe"``. ``stripe_account`` is a connected account to act for."""

    api_key: str = "${STRIPE_API_KEY}"
    stripe_account: str | None = None


def build(table: Mapping[str, Any], wanted: Wanted, *, make_transport: TransportMaker | None = None) -> StripeProvider:
    """The provider of the table. Raises ConfigError: ``unknown_operation``, ``missing_extra``, ``bad_setting`` and
    those of credentials."""
    settings = read(table, StripeTable)
    declaration = declared(DECLARATIONS, settings, operation=wanted.operation)
    vault = Vault(wanted.environ)
    secret = vault.secret(settings.api_key, place="[provider] api_key")
    where = address(settings, vault, official=ADDRESS)
    mode = next((mode for prefix, mode in _MODES.items() if secret.startswith(prefix)), None)
    headers = (("Authorization", f"Bearer {secret}"), ("User-Agent", "payonce"))
    setup = Setup(
        declaration=declaration,
        digest=digest(
            kind="stripe",
            operation=wanted.operation,
            base_url=where.url,
            stripe_account=settings.stripe_account,
            account=settings.account,
            params=settings.params,
        ),
        batch=wanted.batch,
        transport=connection(settings, vault, where, headers=headers, concurrency=wanted.concurrency),
        redactor=vault.redactor(),
    )
    params = Params(settings.params, reserved=RESERVED, wanted=wanted)
    calls = StripeCalls(
        wanted.operation, batch=wanted.batch, base_url=where.url, account=settings.stripe_account, params=params
    )
    return StripeProvider(
        setup,
        calls,
        make_transport=make_transport or (lambda made: default_transport(made, name=settings.transport)),
        account=settings.account or settings.stripe_account,
        mode=mode,
        # A test double may know no accounts; at Stripe itself the account is always asked for.
        ask_account=where.own or settings.account is None,
    )


def describe() -> Declaration:
    """What Stripe promises for refunds; see ``describe_all`` for the other operations."""
    return DECLARATIONS["refund"]


def describe_all() -> tuple[Declaration, ...]:
    """What Stripe promises, one declaration an operation."""
    return tuple(DECLARATIONS.values())
