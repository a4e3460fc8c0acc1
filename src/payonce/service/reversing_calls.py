"""How an execution is undone by a call of the provider's own, as the [provider] tables of a batch file.

Known for Stripe: payouts that have not left, refunds that wait for their receiver, and transfers. The account, the address
and the name of the credential are those of the batch whose executions are undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from payonce.providers.secrets import references
from payonce.service.tomltext import toml_text


@dataclass(frozen=True, slots=True)
class Undoing:
    """One kind of call. ``found`` picks what undid it out of the look-up's answer; ``only_pending`` says that a final
    execution cannot be undone so."""

    path: str
    form: str
    look_up: str
    found: str
    own: bool = False
    only_pending: bool = False


_CALLS: Final[Mapping[tuple[str, str], Undoing]] = {
    ("stripe", "payout"): Undoing("/v1/payouts/{target}/cancel", "", "/v1/payouts/{target}", "[@][?status=='canceled']"),
    ("stripe", "refund"): Undoing(
        "/v1/refunds/{target}/cancel", "", "/v1/refunds/{target}", "[@][?status=='canceled']", only_pending=True
    ),
    ("stripe", "transfer"): Undoing(
        "/v1/transfers/{target}/reversals",
        'form = {amount = "{amount_minor}", "metadata[payonce_item]" = "{id}"}\n',
        "/v1/transfers/{target}/reversals?limit=100", "data", own=True,
    ),
}  # fmt: skip
_BASE: Final = "https://api.stripe.com"
_KEY: Final = "${STRIPE_API_KEY}"


def undoing(kind: str | None, operation: str) -> Undoing | None:
    """The call that undoes an operation's executions; None where the provider has none."""
    return _CALLS.get((kind or "", operation))


def provider_text(call: Undoing, sealed: Mapping[str, Any], *, account: str | None) -> str:
    """The [provider] tables. ``sealed`` is the provider table of the batch whose executions are undone, if there is one."""
    secret = str(sealed.get("api_key", _KEY))
    secret = secret if references(secret) else _KEY
    lines = [
        "[provider]",
        'kind = "http"',
        f"base_url = {toml_text(str(sealed.get('base_url', _BASE)))}",
        *([f"account = {toml_text(account)}"] if account else []),
        f"headers = {{Authorization = {toml_text(f'Bearer {secret}')}}}",
        *(f"{name} = {toml_text(str(sealed[name]))}" for name in ("timeout", "max_execution") if name in sealed),
        "",
        "[provider.call]",
        'method = "POST"',
        f"path = {toml_text(call.path)}",
    ]
    own = '\nown_reference = "metadata.payonce_item"' if call.own else ""
    refused = "".join(
        f'\n[[provider.answers]]\nstatus = {status}\nwhen = "error.type == \'invalid_request_error\'"\noutcome = "refused"\n'
        for status in (400, 402, 404)
    )
    return (
        "\n".join(lines)
        + f'\n{call.form}reference = "id"\n\n[provider.key]\nheader = "Idempotency-Key"\nformat = "hex"\nretention = "24h"\n'
        'stores_errors = true\nreplay_header = "Idempotent-Replayed"\n\n[provider.lookup]\n'
        f'path = {toml_text(call.look_up)}\nfound = {toml_text(call.found)}\nreference = "id"\namount = "amount"\n'
        f'amount_unit = "minor"{own}\nlag = "2s"\n{refused}'
    )
