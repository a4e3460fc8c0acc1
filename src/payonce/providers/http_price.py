"""What a call costs, exactly: computed from its answer by a table of prices, or at most, from its request alone.

Every sum is a decimal with all its digits; it is rounded once, at the call's total, to the currency's minor unit and as
the table declares. What rounding took away is not lost: the exact cost goes with the commit. Nothing is guessed: a
count that the answer does not show, or a model without a price, is an error and never zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, ROUND_UP, Context, Decimal, Inexact
from typing import Any, Final

from payonce.core.errors import ConfigError, MoneyError
from payonce.core.model import Request
from payonce.core.money import Money, currency_code, exponent
from payonce.providers import answers_values as values
from payonce.providers.answers_paths import Path, optional
from payonce.providers.settings_price import PriceTable
from payonce.providers.settings_values import bad_setting
from payonce.providers.templates import Context as Item
from payonce.providers.templates import Names, Template
from payonce.providers.transport import Answer

ROUNDINGS: Final = {"half_even": ROUND_HALF_EVEN, "half_up": ROUND_HALF_UP, "up": ROUND_UP, "down": ROUND_DOWN}
# Where the commit keeps what a call cost exactly.
COST: Final = "$cost"
_PLACE: Final = "[provider.price]"
_EXACT: Final = Context(prec=80, traps=[Inexact])
_DECIMAL: Final = re.compile(r"\d{1,18}(?:\.\d{1,30})?", re.ASCII)
_BYTES: Final = re.compile(r"bytes(?:/(\d{1,4}))?", re.ASCII)


class NoPrice(Exception):
    """The price of an answer cannot be told: a count is missing, or a model has none."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call cost: in minor units, and exactly in major units."""

    money: Money
    exact: Decimal

    @property
    def kept(self) -> dict[str, str]:
        """What goes with the commit: the exact cost, where the money is not exactly it."""
        return {} if Decimal(self.money.text) == self.exact else {COST: f"{self.exact:f}"}


def rounded(exact: Decimal, currency: str, rounding: str) -> Cost:
    """An exact amount in major units as money. Raises ValueError for an unknown currency or an impossible amount."""
    try:
        places = exponent(currency)
        whole = exact.quantize(Decimal(1).scaleb(-places), rounding=ROUNDINGS[rounding], context=Context(prec=60))
        return Cost(Money.of_minor(int(whole.scaleb(places)), currency), exact)
    except (MoneyError, ArithmeticError) as error:
        raise ValueError(f"{exact} {currency} is no amount") from error


def exact_of(value: Any) -> Decimal:
    """A number of an answer, or a text that is one. Raises ValueError."""
    match value:
        case bool() | float():
            pass
        case int() if abs(value) < 10**18:
            return Decimal(value)
        case Decimal() if value.is_finite() and abs(value) < 10**18 and len(value.as_tuple().digits) < 50:
            return value
        case str() if _DECIMAL.fullmatch(value.strip()):
            return Decimal(value.strip())
    raise ValueError(f"{str(value)[:60]!r} is no exact number")


class _Rates:
    """One set of prices: of all models, or of one."""

    def __init__(self, table: PriceTable, *, names: Names, place: str) -> None:
        self.per_call = _price(table.per_call, f"{place} per_call") if table.per_call is not None else Decimal(0)
        self.units = {name: (Path(name, place=f"{place} per_unit.{name}"), _price(text, f"{place} per_unit.{name}"))
                      for name, text in table.per_unit.items()}  # fmt: skip
        self.official = optional(table.official, place=f"{place} official")
        self.multiplier = None
        if table.multiplier is not None:
            self.multiplier = Template(table.multiplier, place=f"{place} multiplier", names=names)
            if self.multiplier.constant is not None:
                _price(self.multiplier.constant, f"{place} multiplier")
        self.states_any = table.per_call is not None or bool(self.units) or self.official is not None

    def of_answer(self, tree: Any, answer: Answer, item: Item) -> Decimal:
        total = self.per_call
        if self.official is not None:
            total = _EXACT.add(total, _told(self.official, tree, answer))
        for path, price in self.units.values():
            total = _EXACT.add(total, _EXACT.multiply(_told(path, tree, answer), price))
        return self.times(total, item)

    def of_counts(self, counts: Mapping[str, Decimal], item: Item) -> Decimal:
        total = self.per_call
        for name, (_, price) in self.units.items():
            total = _EXACT.add(total, _EXACT.multiply(counts[name], price))
        return self.times(total, item)

    def times(self, total: Decimal, item: Item) -> Decimal:
        """The total times the multiplier, if there is one."""
        if self.multiplier is None:
            return total
        text = self.multiplier.text(item)
        if _DECIMAL.fullmatch(text) is None:
            raise NoPrice(f"the multiplier is {text[:40]!r}, which is no decimal")
        return _EXACT.multiply(total, Decimal(text))


class Price:
    """``[provider.price]``, compiled."""

    def __init__(self, table: PriceTable, *, names: Names) -> None:
        if table.currency is None:
            raise bad_setting(f"{_PLACE} has no currency", hint='add currency = "USDC"')
        try:
            self.currency = currency_code(table.currency)
        except MoneyError as error:
            raise bad_setting(f"{_PLACE} currency: {error.message}", hint=error.hint) from None
        self._rounding = table.rounding
        self._all = _Rates(table, names=names, place=_PLACE)
        self._models = {name: _Rates(_merged(table, name, own), names=names, place=f"{_PLACE} models.{name}")
                        for name, own in table.models.items()}  # fmt: skip
        self._model = optional(table.model, place=f"{_PLACE} model")
        self._asked = (
            Template(table.asked_model, place=f"{_PLACE} asked_model", names=names) if table.asked_model else None
        )
        if self._models and self._model is None and self._asked is None:
            raise bad_setting(
                f"{_PLACE} has prices of models, and nothing says which model a call is of",
                hint='add asked_model = "{model}" (a template), or model = "model" (a JMESPath into the answer)',
            )
        if not self._all.states_any and not self._models:
            raise bad_setting(f"{_PLACE} states no price", hint="add per_call, per_unit, official or models")
        units = set(self._all.units).union(*(rates.units for rates in self._models.values()))
        self._at_most = _bounds(table.at_most, "at_most", units, names)
        self._estimate = _bounds(table.estimate, "estimate", units, names)

    @property
    def templates(self) -> tuple[Template, ...]:
        """Its templates, for checking their placeholders."""
        rates = (self._all, *self._models.values())
        bounds = (*(self._at_most or {}).values(), *(self._estimate or {}).values())
        found = [self._asked, *(one.multiplier for one in rates), *(b for b in bounds if isinstance(b, Template))]
        return tuple(template for template in found if template is not None)

    @property
    def bounds_requests(self) -> bool:
        """Whether a request tells what its call can cost at most."""
        return self._at_most is not None

    def of_answer(self, tree: Any, answer: Answer, item: Item) -> Cost:
        """What an answered call cost. Raises NoPrice, PathError, and ValueError for an amount that cannot be."""
        told = values.text(self._model.find(tree, answer)) if self._model is not None else None
        rates = self._rates(told, item)
        try:
            return rounded(rates.of_answer(tree, answer, item), self.currency, self._rounding)
        except Inexact as error:
            raise NoPrice("the cost has more than 80 digits") from error

    def at_most(self, request: Request, item: Item) -> Money | None:
        """What a call can cost at most, rounded up; None where the table does not bound it."""
        return self._bounded(self._at_most, request, item, "up")

    def estimated(self, request: Request, item: Item) -> Money | None:
        """What a call will cost, roughly; None where the table does not say."""
        return self._bounded(self._estimate, request, item, "up")

    def _bounded(self, bounds: _Bounds | None, request: Request, item: Item, rounding: str) -> Money | None:
        if bounds is None:
            return None
        rates = self._rates(None, item)
        try:
            counts = {name: _count(bounds[name], request, item) for name in rates.units}
            return rounded(rates.of_counts(counts, item), self.currency, rounding).money
        except (NoPrice, ValueError, Inexact) as error:
            raise _unpriced(item, str(error)) from error

    def check(self, item: Item) -> None:
        """Raises ConfigError ``no_price`` where an item's model, as far as the item tells it, has no price."""
        if self._asked is not None or self._model is None:
            self._rates(None, item)

    def _rates(self, told: str | None, item: Item) -> _Rates:
        """The prices of the answer's model, else of the model asked for, else those of all models."""
        if told is not None and told in self._models:
            return self._models[told]
        asked = self._asked.text(item) if self._asked is not None else None
        if asked is not None and asked in self._models:
            return self._models[asked]
        if self._all.states_any:
            return self._all
        raise _unpriced(item, f"model {told or asked!r} has no price")


_Bound = int | Decimal | Template
_Bounds = Mapping[str, "_Bound"]


def _bounds(stated: Mapping[str, str | int], setting: str, units: set[str], names: Names) -> _Bounds | None:
    if not stated:
        return None
    place = f"{_PLACE} {setting}"
    missing, unknown = sorted(units - set(stated)), sorted(set(stated) - units)
    if missing or unknown:
        what = f"does not say how many of {missing[0]!r}" if missing else f"names {unknown[0]!r}, which has no price"
        raise bad_setting(f"{place} {what}", hint="it has a count for each of per_unit, and for nothing else")
    return {name: _bound(value, f"{place}.{name}", names) for name, value in stated.items()}


def _bound(value: str | int, place: str, names: Names) -> _Bound:
    """A whole number; ``bytes`` or ``bytes/4``, a share of the request's body (kept as a Decimal); or a template."""
    if isinstance(value, int):
        if isinstance(value, bool) or value < 0:
            raise bad_setting(f"{place} is {value}", hint="a whole number from 0")
        return value
    found = _BYTES.fullmatch(value)
    if found is not None:
        return Decimal(found[1] or 1)
    template = Template(value, place=place, names=names)
    if template.constant is not None:
        raise bad_setting(f"{place} is {value!r}", hint='a whole number, "bytes", "bytes/4" or a template "{column}"')
    return template


def _count(bound: _Bound, request: Request, item: Item) -> Decimal:
    if isinstance(bound, Template):
        text = bound.text(item)
        if _DECIMAL.fullmatch(text) is None:
            raise NoPrice(f"{bound.place} gives {text[:40]!r}, which is no number")
        return Decimal(text)
    if isinstance(bound, Decimal):
        return Decimal(-(-len(request.body) // int(bound)))
    return Decimal(bound)


def _merged(table: PriceTable, name: str, own: Mapping[str, Any]) -> PriceTable:
    """A model's prices: what it states counts, the rest is that of all models."""
    known = ("per_call", "per_unit", "official", "multiplier")
    for setting, value in own.items():
        if setting not in known:
            raise bad_setting(
                f"{_PLACE} models.{name} {setting}: no such setting", hint=f"there are {', '.join(known)}"
            )
        if isinstance(value, dict) is not (setting == "per_unit"):
            raise bad_setting(f"{_PLACE} models.{name} {setting} does not fit", hint="prices are decimals as text")
    base = {setting: getattr(table, setting) for setting in known}
    return PriceTable(**{**base, **own})


def _price(text: str, place: str) -> Decimal:
    if _DECIMAL.fullmatch(text) is None:
        raise bad_setting(f"{place} is {text!r}", hint='a decimal in quotes, such as "0.0000025"')
    return Decimal(text)


def _told(path: Path, tree: Any, answer: Answer) -> Decimal:
    """What the answer shows there. Never zero for nothing: an expression may say so itself (``usage.cached || `0```)."""
    found = path.find(tree, answer)
    if found is None:
        raise NoPrice(f"{path.place}: the answer does not show it")
    try:
        count = exact_of(found)
    except ValueError as error:
        raise NoPrice(f"{path.place}: {error}") from error
    if count < 0:
        raise NoPrice(f"{path.place}: {count} is less than nothing")
    return count


def _unpriced(item: Item, why: str) -> ConfigError:
    return ConfigError(
        f"item {item.item.id}: {why}",
        code="no_price",
        hint="complete [provider.price]; a cost that nobody can compute cannot be kept within a budget",
    )
