"""``[provider.price]``: what a call costs where its answer does not say so in money, one struct a table."""

from __future__ import annotations

from typing import Literal

import msgspec

Rounding = Literal["half_even", "half_up", "up", "down"]


class PriceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[provider.price]``, and one of its ``models``. Prices are decimals as text, in major units of ``currency``.

    ``per_unit`` names, by JMESPath into the answer, what is counted, and gives the price of one. ``official`` is where
    the answer states a price itself. ``multiplier`` is a decimal, or a template that gives one.
    """

    currency: str | None = None
    per_call: str | None = None
    per_unit: dict[str, str] = {}
    official: str | None = None
    multiplier: str | None = None
    rounding: Rounding = "half_even"
    model: str | None = None
    asked_model: str | None = None
    models: dict[str, dict[str, str | dict[str, str]]] = {}
    at_most: dict[str, str | int] = {}
    estimate: dict[str, str | int] = {}
