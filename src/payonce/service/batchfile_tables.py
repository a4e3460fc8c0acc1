"""The tables of a batch file, one struct each: which settings exist, of which form, and what each is for.

The description of a setting is what an error message shows when its value is wrong, and what the reference page is
checked against. Not here are ``item`` and ``input``, ``provider`` and ``statement``: the intake, the adapters and the
statement readers know their own settings.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from payonce.core.durations import DURATION_FORM
from payonce.service.durations import MONEY_FORM, RATE_FORM

Identifier = Annotated[str, Meta(min_length=1, max_length=200)]
Duration = Annotated[str, Meta(description=DURATION_FORM)]
MoneyTable = Annotated[dict[str, Any], Meta(description=MONEY_FORM)]
Positive = Annotated[int, Meta(ge=1, description="a whole number from 1")]


class BatchTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the batch is. The id, the operation and the namespace are part of every idempotency key."""

    id: Annotated[Identifier, Meta(description="a name of 1 to 200 characters that no other batch of the ledger has")]
    operation: Annotated[
        str,
        Meta(
            pattern=r"^[a-z][a-z0-9_.-]{0,62}$",
            description="refund, payout, invoice, call or a name of your own in lower case",
        ),
    ]
    input: Annotated[
        str | dict[str, Any],
        Meta(description='the input file, relative to the batch file, or {url = "...", query = "..."}'),
    ]
    on_duplicate: Annotated[Literal["error", "skip"], Meta(description='"error" or "skip" (identical rows only)')] = (
        "error"
    )
    namespace: Annotated[
        Identifier, Meta(description="a text that keeps the keys of two installations on one account apart")
    ] = "payonce"


class LimitsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the batch is run: how fast, how often, how far, and what stops it."""

    concurrency: Annotated[
        int, Meta(ge=1, le=10_000, description="calls in flight at once per process, 1 to 10000")
    ] = 16
    rate: Annotated[str, Meta(description=RATE_FORM)] | None = None
    attempts: Annotated[int, Meta(ge=1, le=1_000, description="counted attempts per item, 1 to 1000")] = 5
    budget: MoneyTable = msgspec.field(default_factory=dict)
    max_amount: MoneyTable = msgspec.field(default_factory=dict)
    reserve: MoneyTable = msgspec.field(default_factory=dict)
    stop_after_refusals: Positive | None = None
    stop_after_consecutive: Positive | None = None
    read_targets: Annotated[
        bool, Meta(description="true or false: whether a run reads each target before its first call")
    ] = True
    grace: Duration | None = None
    lease: Duration | None = None


class LedgerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the ledger is."""

    url: Annotated[str, Meta(min_length=1, description='an address such as "sqlite:payonce.db"')] | None = None


class ExpectTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the input must add up to; anything else is a problem and nothing is sealed."""

    items: Positive | None = None
    total: MoneyTable = msgspec.field(default_factory=dict)


# Tables that other parts read.
RAW_TABLES = ("item", "input", "provider", "statement", "trail")
TABLES: dict[str, type[msgspec.Struct]] = {
    "batch": BatchTable,
    "limits": LimitsTable,
    "ledger": LedgerTable,
    "expect": ExpectTable,
}
NEEDED = ("batch", "item", "provider")
