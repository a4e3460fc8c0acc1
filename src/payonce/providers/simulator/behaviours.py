"""What a simulated provider promises and how it misbehaves: one frozen configuration and its reader.

The names are those of a TOML table. A name that is not known is an error, never ignored. Defaults describe a
well-behaved provider like Stripe: keys honoured for 24 h, errors stored under them, lists consistent at once.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal

from payonce.providers.simulator import parse_faults, values
from payonce.providers.simulator.faults import Fault
from payonce.providers.simulator.values import ConfigError

Keys = Literal["honoured", "ignored"]
UNLIMITED_MINOR = 10**15


@dataclass(frozen=True, slots=True)
class Account:
    """Whose money moves, as `GET /v1/account` tells it."""

    id: str = "acct_sim"
    livemode: bool = False


@dataclass(frozen=True, slots=True)
class Charge:
    """A captured payment: the amount in minor units, its currency (None: whatever is asked) and its dispute."""

    amount_minor: int = UNLIMITED_MINOR
    currency: str | None = None
    disputed: bool = False
    payment_intent: str | None = None


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `per_second` accepted calls in any one second; the rest get 429 with or without Retry-After."""

    per_second: int
    retry_as: str = "seconds"
    reads: bool = True


@dataclass(frozen=True, slots=True)
class Config:
    """Every behaviour of one simulated provider; durations in microseconds, prices in USDC.

    `errors_free_key` makes a key whose first answer was an error execute again, as some providers do; otherwise a
    provider that does not store errors still remembers what it executed.
    """

    keys: Keys = "honoured"
    key_retention_us: int = 86_400_000_000
    key_max_length: int = 255
    stores_errors: bool = True
    errors_free_key: bool = False
    latency_us: tuple[int, int] = (0, 0)
    lookup: bool = True
    lookup_lag_us: int = 0
    statement: bool = True
    statement_lag_us: int = 0
    settles_after_us: int = 0
    rate_limit: RateLimit | None = None
    same_amount_window_us: int = 0
    auto_create_charges: bool = True
    charges: Mapping[str, Charge] = field(default_factory=dict)
    default_currency: str | None = None
    require_auth: bool = True
    account: Account = Account()
    api_keys: Mapping[str, Account] = field(default_factory=dict)
    token_price: Decimal = Decimal("0.000003")
    completion_price: Decimal | None = None
    multiplier: Decimal = Decimal("1")
    faults: tuple[Fault, ...] = ()
    probability: tuple[Fault, ...] = ()
    script: Mapping[str, tuple[Fault, ...]] = field(default_factory=dict)
    seed: int = 0
    state: str | None = None


def _keys(value: object, *, where: str) -> Keys:
    names: tuple[Keys, ...] = ("honoured", "ignored")
    return values.one_of(value, names=names, where=where)


def _from_one(value: object, *, where: str) -> int:
    return values.whole(value, where=where, least=1)


def _currency(value: object, *, where: str) -> str:
    return values.text(value, where=where).lower()


def _price(value: object, *, where: str) -> Decimal:
    try:
        found = Decimal(values.text(value, where=where))
    except InvalidOperation:
        raise ConfigError(f"{where}: {value!r} is not a decimal number in quotes") from None
    if not found.is_finite() or found < 0:
        raise ConfigError(f"{where}: {value!r} is not a price")
    return found


def _account(value: object, *, where: str) -> Account:
    return Account(**_fields(value, _ACCOUNT, where=where))


def _accounts(value: object, *, where: str) -> dict[str, Account]:
    found = values.table(value, where=where)
    return {token: _account(entry, where=f"{where}.{token}") for token, entry in found.items()}


def parse_charge(value: object, *, where: str) -> Charge:
    """A charge from its table {amount, currency, disputed, payment_intent}. Raises ConfigError."""
    return Charge(**_fields(value, _CHARGE, where=where))


def _charges(value: object, *, where: str) -> dict[str, Charge]:
    found = values.table(value, where=where)
    return {name: parse_charge(entry, where=f"{where}.{name}") for name, entry in found.items()}


def _rate_limit(value: object, *, where: str) -> RateLimit | None:
    """A number, "25/s", {per_second, retry_after = "seconds"|"date"|"none", reads}, or false for none."""
    if value is False:
        return None
    if isinstance(value, dict):
        return RateLimit(**_fields(value, _RATE_LIMIT, where=where))
    if isinstance(value, str) and value.endswith("/s") and value[:-2].isdigit():
        value = int(value[:-2])
    return RateLimit(_from_one(value, where=where))


def _retry_as(value: object, *, where: str) -> str:
    return values.one_of(value, names=("seconds", "date", "none"), where=where)


_Readers = Mapping[str, tuple[str, Callable[..., Any]]]
_ACCOUNT: _Readers = {"account": ("id", values.text), "livemode": ("livemode", values.flag)}
_CHARGE: _Readers = {
    "amount": ("amount_minor", _from_one),
    "currency": ("currency", _currency),
    "disputed": ("disputed", values.flag),
    "payment_intent": ("payment_intent", values.text),
}
_RATE_LIMIT: _Readers = {
    "per_second": ("per_second", _from_one),
    "retry_after": ("retry_as", _retry_as),
    "reads": ("reads", values.flag),
}
_CONFIG: _Readers = {
    "keys": ("keys", _keys),
    "key_retention": ("key_retention_us", values.duration_us),
    "key_max_length": ("key_max_length", _from_one),
    "stores_errors": ("stores_errors", values.flag),
    "errors_free_key": ("errors_free_key", values.flag),
    "latency": ("latency_us", values.duration_range_us),
    "lookup": ("lookup", values.flag),
    "lookup_lag": ("lookup_lag_us", values.duration_us),
    "statement": ("statement", values.flag),
    "statement_lag": ("statement_lag_us", values.duration_us),
    "settles_after": ("settles_after_us", values.duration_us),
    "rate_limit": ("rate_limit", _rate_limit),
    "same_amount_window": ("same_amount_window_us", values.duration_us),
    "auto_create_charges": ("auto_create_charges", values.flag),
    "charges": ("charges", _charges),
    "default_currency": ("default_currency", _currency),
    "require_auth": ("require_auth", values.flag),
    "account": ("account", _account),
    "api_keys": ("api_keys", _accounts),
    "token_price": ("token_price", _price),
    "completion_price": ("completion_price", _price),
    "multiplier": ("multiplier", _price),
    "faults": ("faults", parse_faults.parse_faults),
    "probability": ("probability", parse_faults.parse_probabilities),
    "script": ("script", parse_faults.parse_script),
    "seed": ("seed", values.whole),
    "state": ("state", values.text),
}


def _fields(value: object, readers: _Readers, *, where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, entry in values.table(value, where=where).items():
        place = f"{where}.{name}" if where else name
        if name not in readers:
            near = difflib.get_close_matches(name, readers, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(readers)}"
            raise ConfigError(f"{place}: unknown name{hint}")
        target, reader = readers[name]
        found[target] = reader(entry, where=place)
    return found


def parse(data: Mapping[str, object], *, base: Config | None = None) -> Config:
    """The configuration that `data` describes; what it does not name stays as in `base` (or at its default).

    Raises ConfigError with the place of the first value that is unknown or cannot be understood.
    """
    return replace(base or Config(), **_fields(dict(data), _CONFIG, where=""))


def load(path: Path) -> Config:
    """The configuration in a TOML file. Raises ConfigError, and OSError where the file cannot be read."""
    try:
        return parse(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a TOML file: {error}") from error
