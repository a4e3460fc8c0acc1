"""What a replay reads of an event: the fields that decide something, decoded without the rest."""

from __future__ import annotations

from typing import Final

import msgspec


class Said(msgspec.Struct, gc=False):
    """The fields of an event that a replay needs; whatever else it holds is hashed but not replayed."""

    type: str
    seq: int
    batch: str | None = None
    item: str | None = None
    attempt: int = 0
    generation: int = 0
    step: int = 0
    new_generation: int | None = None
    worker: int | None = None
    dead: int | None = None
    reference: str | None = None
    amount: str | None = None
    currency: str | None = None
    billed: str | None = None
    billed_currency: str | None = None
    reserve: dict[str, str] | None = None
    settlement: str | None = None
    code: str | None = None
    message: str | None = None
    reason: str | None = None
    output: str | None = None
    seal: str | None = None
    items: int = 0
    operation: str | None = None
    provider: str | None = None
    namespace: str | None = None
    account: str | None = None
    mode: str | None = None
    hold: bool = False
    limits: msgspec.Raw = msgspec.Raw(b"")
    cls: str | None = msgspec.field(default=None, name="class")


DECODER: Final = msgspec.json.Decoder(Said)
