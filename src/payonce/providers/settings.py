"""The settings of ``kind = "http"``: one struct a table, exactly the names a batch file may use.

An unknown name is an error, never ignored: a misspelt ``lookup`` would silently take away a guarantee.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from payonce.providers.settings_price import PriceTable, Rounding
from payonce.providers.settings_values import Duration

Unit = Literal["minor", "major"]
OutcomeName = Literal["executed", "refused", "not_executed", "unresolved", "already_done", "stop"]
DEFAULT_TIMEOUT = Duration(10_000_000)


class CallTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[provider.call]``: the call of an item, and how its answer is read. Expressions are JMESPath into the body.

    ``reference_template`` stands in where a rule calls an answer executed that names no reference. ``billed_rounding`` allows
    a billed amount finer than its currency. ``stream`` says how server-sent events are put together, ``stream_end`` is a
    condition on the last event, ``id_header`` names the header with the call's id, which is kept as soon as it arrives. ``echo`` maps a placeholder to
    the expression that must show its value, if the answer shows one. ``status`` with its lists tells the settlement.
    """

    path: str
    method: Literal["POST", "PUT", "PATCH", "DELETE", "GET"] = "POST"
    json: Any = None
    form: dict[str, Any] | None = None
    headers: dict[str, str] = {}
    reference: str | None = None
    reference_template: str | None = None
    billed: str | None = None
    billed_unit: Unit = "minor"
    billed_currency: str | None = None
    billed_rounding: Rounding | None = None
    keep: dict[str, str] = {}
    output: str | None = None
    echo: dict[str, str] = {}
    status: str | None = None
    status_pending: list[str] = []
    status_succeeded: list[str] = []
    status_failed: list[str] = []
    stream: Literal["openai", "anthropic", "events"] | None = None
    stream_end: str | None = None
    id_header: str | None = None


class KeyTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[provider.key]``: idempotency keys. ``retention`` is what the provider promises at least, or ``"forever"``.

    Without ``header`` the key travels where the call's templates say ``{key}``. Without ``retention`` the shortest
    window that a provider publishes counts, an hour.
    """

    retention: str = "1h"
    header: str | None = None
    format: Literal["hex", "uuid", "base32", "bytes32"] = "hex"
    max_length: int = 255
    stores_errors: bool = False
    replay_header: str | None = None


class LookupTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[provider.lookup]``: reading what was executed on an item's target. Expressions after ``found`` are relative to
    one entry of its list.

    ``next`` is the next page's address or, with ``cursor_param``, the cursor; ``more`` says whether there is one.
    ``answer_path`` is where the whole answer of an execution can be read again, with ``{reference}``.
    """

    path: str
    reference: str
    found: str = "@"
    amount: str | None = None
    amount_unit: Unit = "minor"
    amount_rounding: Rounding | None = None
    currency: str | None = None
    time: str | None = None
    own_reference: str | None = None
    key: str | None = None
    status: str | None = None
    status_pending: list[str] = []
    status_succeeded: list[str] = []
    status_failed: list[str] = []
    keep: dict[str, str] = {}
    output: str | None = None
    lag: Duration = Duration(0)
    next: str | None = None
    cursor_param: str | None = None
    more: str | None = None
    max_pages: int = 50
    not_found_means_none: bool = False
    answer_path: str | None = None


class AnswerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[provider.answers]]``: one rule. Everything stated in it must hold for it to match.

    ``status`` is a status, several, or a class such as ``"4xx"``; ``when`` a JMESPath condition on the body, which may
    use ``http_status()``, ``header('Name')`` and ``body_text()``. ``code`` and ``message`` are JMESPath expressions.
    """

    outcome: OutcomeName
    status: int | str | list[int] | None = None
    when: str | None = None
    code: str | None = None
    message: str | None = None
    reference: str | None = None
    in_progress: bool = False
    final: bool = False
    burnt: bool = False
    load: bool | None = None
    executed: bool | None = None


class IdentityTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[provider.identity]``: a cheap read that tells the account and the mode the credentials belong to."""

    path: str
    account: str
    mode: str | None = None


class PreflightTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[provider.preflight]``: a read of an item's target for ``plan --check``. ``amount`` less ``used`` must cover the
    item, ``currency`` be its own, and the condition ``refused_when`` not hold."""

    path: str
    currency: str | None = None
    amount: str | None = None
    used: str | None = None
    amount_unit: Unit = "minor"
    refused_when: str | None = None


class BasicAuthTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``basic_auth``: HTTP basic authentication."""

    user: str
    password: str


class HttpTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[provider]`` with ``kind = "http"``.

    ``headers`` and ``query`` go with every request; credentials in them are written ``${NAME}`` and taken from the
    environment. ``proxy`` is an address or ``"none"``; the environment's proxies are used where it is left out.
    ``answer_limit`` is in bytes: 64 MiB for calls, 8 MiB for all else, if left out. A connection is kept idle for 4 s, and for 1 s where there are neither keys nor a
    look-up, if ``idle_timeout`` is left out: one that the server drops in that moment costs certainty. ``max_execution`` is 30 s with idempotency keys and 60 s without, if left out.
    """

    kind: str
    base_url: str
    call: CallTable
    key: KeyTable | None = None
    lookup: LookupTable | None = None
    identity: IdentityTable | None = None
    preflight: PreflightTable | None = None
    price: PriceTable | None = None
    answers: list[AnswerTable] = []
    account: str | None = None
    mode: Literal["live", "test"] | None = None
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    basic_auth: BasicAuthTable | None = None
    timeout: Duration = DEFAULT_TIMEOUT
    max_execution: Duration | None = None
    request_id_header: str | None = None
    ca_file: str | None = None
    verify_tls: bool = True
    proxy: str | None = None
    transport: Literal["auto", "direct", "aiohttp"] = "auto"
    idle_timeout: Duration | None = None
    answer_limit: int | None = None
    rate: str = ""
