"""What a replay reads of an event: the fields that decide something, decoded without the rest.

Fields stand in the order of their names, as in a canonical event: the decoder then finds each at once.
"""

from __future__ import annotations

from typing import Final

import msgspec
import orjson


class SaidOfItem(msgspec.Struct, gc=False, kw_only=True):
    """The fields of an event about the state of one item."""

    at: str
    attempt: int = 0
    batch: str | None = None
    billed: str | None = None
    billed_currency: str | None = None
    carry: str | None = None
    code: str | None = None
    currency: str | None = None
    item: str | None = None
    kept: msgspec.Raw = msgspec.Raw(b"")
    lookups: int = 0
    message: str | None = None
    new_generation: int | None = None
    output: str | None = None
    rate_limited: int = 0
    reference: str | None = None
    request_kept: str | None = None
    reserve: dict[str, str] | None = None
    response_kept: str | None = None
    seq: int
    settlement: str | None = None
    spent: int = 0
    type: str
    worker: int | None = None


class Said(SaidOfItem, gc=False, kw_only=True):
    """The fields of any event that a replay needs; whatever else it holds is hashed but not replayed."""

    account: str | None = None
    actor: msgspec.Raw = msgspec.Raw(b"")
    added: str | None = None
    clock_set_us: int = 0
    cls: str | None = msgspec.field(default=None, name="class")
    data: msgspec.Raw = msgspec.Raw(b"")
    dead: int | None = None
    event: int = 0
    first_sent: str | None = None
    form: int = 1
    hold: bool = False
    items: int = 0
    limits: msgspec.Raw = msgspec.Raw(b"")
    mode: str | None = None
    namespace: str | None = None
    operation: str | None = None
    pace_per_ks: int | None = None
    provider: str | None = None
    reason: str | None = None
    seal: str | None = None
    slow_until_us: int = 0
    spec: str | None = None
    state: str | None = None
    unchecked: bool = False
    wait_until: str | None = None


def never_left(said: Said) -> bool:
    """Whether the evidence says that no byte of the call left."""
    evidence = bytes(said.data)
    if b'"sent":false' not in evidence:
        return False
    data = orjson.loads(evidence)
    return isinstance(data, dict) and data.get("sent") is False


DECODER: Final = msgspec.json.Decoder(Said)
OF_ITEMS: Final = msgspec.json.Decoder(SaidOfItem)
