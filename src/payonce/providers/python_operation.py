"""What a user writes to make a function an operation: the decorator's promises, and the call the function gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from payonce.core.durations import duration_us
from payonce.core.errors import ConfigError
from payonce.core.keys import KeyFormat, KeyFormatName
from payonce.core.model import Declaration, Item, KeyDeclaration, LookupDeclaration
from payonce.core.money import Money
from payonce.core.outcome import Execution, Found, LookupFailed, Outcome

Operation = Callable[["Call"], Outcome | Awaitable[Outcome]]
LookupResult = Sequence[Execution] | Found | LookupFailed
Lookup = Callable[["Call"], LookupResult | Awaitable[LookupResult]]
F = TypeVar("F", bound=Callable[..., Any])
# What is assumed of a far side that promises keys but not for how long: the shortest published window (Mollie, 1 h).
SHORTEST_RETENTION_US: Final = 3_600_000_000
_ATTRIBUTE: Final = "__payonce_operation__"


@dataclass(frozen=True, slots=True)
class Call:
    """One call, as an operation or a look-up sees it.

    ``key`` is the idempotency key to pass to the far side, the same for every repetition; None where the operation
    declares no keys. ``attempt`` counts from 1; ``generation`` changes only with the key.
    """

    item: Item
    key: str | None
    batch: str
    attempt: int = 1

    @property
    def money(self) -> Money:
        """The item's amount. Raises ConfigError where it has none: an amount left out is never guessed."""
        if self.item.money is None:
            raise ConfigError(f"item {self.item.id} has no amount", code="no_amount", hint="give the items their money")
        return self.item.money

    @property
    def generation(self) -> int:
        """The generation of the key."""
        return self.item.generation


@dataclass(frozen=True, slots=True)
class OperationSettings:
    """What the far side of an operation promises; see ``operation``."""

    key: bool = False
    retention_us: int | None = None
    key_format: KeyFormat = KeyFormat()
    stores_errors: bool = False
    lookup: Lookup | None = None
    lag_us: int = 0
    echoes: bool = True
    max_execution_us: int | None = None
    timeout_us: int = 10_000_000
    account: str | None = None
    mode: str | None = None
    not_executed: tuple[type[BaseException], ...] = field(default=())
    refused: tuple[type[BaseException], ...] = field(default=())

    def declaration(self, operation: str) -> Declaration:
        """The promises as data."""
        lookup = None
        if self.lookup is not None:
            by = getattr(self.lookup, "__qualname__", "the given function")
            lookup = LookupDeclaration(by=by, lag_us=self.lag_us, own_reference=self.echoes, key=self.echoes)
        key = None
        if self.key:
            key = KeyDeclaration("call.key", self.key_format, self.retention_us, self.stores_errors)
        default_us = 30_000_000 if self.key else 60_000_000
        return Declaration(
            kind="python",
            operation=operation,
            key=key,
            lookup=lookup,
            max_execution_us=default_us if self.max_execution_us is None else self.max_execution_us,
            timeout_us=self.timeout_us,
            identity="from the operation's account" if self.account else "",
        )


def operation(
    *,
    key: bool = False,
    retention: str | None = None,
    key_format: KeyFormatName = "hex",
    key_max_length: int = 255,
    stores_errors: bool = False,
    lookup: Lookup | None = None,
    lag: str = "0s",
    echoes: bool = True,
    max_execution: str | None = None,
    timeout: str = "10s",
    account: str | None = None,
    mode: str | None = None,
    not_executed: tuple[type[BaseException], ...] = (),
    refused: tuple[type[BaseException], ...] = (),
) -> Callable[[F], F]:
    """Marks a function as an operation, and says what its far side promises. Everything is optional; promise nothing
    that the far side does not keep, since payonce sends again exactly where these promises allow it.

    ``key``: it deduplicates on ``call.key``, for ``retention`` at least (an hour if left out, the shortest that a
    provider publishes; ``"forever"`` is allowed). ``lookup``: a function that returns all executions on the call's
    item, complete, ``lag`` after they happened; ``echoes``: they carry ``own_reference`` or ``key``.
    ``max_execution``: after this long an unanswered call can no longer start (30 s with keys, 60 s without).
    ``timeout``: how long one call may take.
    ``not_executed`` and ``refused``: exceptions that prove that nothing happened, and may or may not be tried again;
    every other exception means that it may have happened. ``account`` and ``mode`` bind a batch to them.

    The function itself is returned unchanged. Raises ConfigError for settings that do not fit together, and for what
    cannot be marked (a bound method).
    """
    settings = OperationSettings(
        key=key,
        retention_us=_retention(key=key, retention=retention),
        key_format=KeyFormat(key_format, key_max_length),
        stores_errors=stores_errors,
        lookup=lookup,
        lag_us=_duration(lag, "lag"),
        echoes=echoes,
        max_execution_us=None if max_execution is None else _duration(max_execution, "max_execution"),
        timeout_us=_duration(timeout, "timeout"),
        account=account,
        mode=mode,
        not_executed=not_executed,
        refused=refused,
    )

    def mark(function: F) -> F:
        try:
            setattr(function, _ATTRIBUTE, settings)
        except AttributeError:
            raise ConfigError(
                f"{function!r} cannot be marked with its promises",
                code="bad_setting",
                hint="mark a function: a method of an object is called from one, def pay(call): return desk.pay(call)",
            ) from None
        return function

    return mark


def settings_of(function: Callable[..., Any]) -> OperationSettings:
    """The promises a function was marked with; none at all for a function that was not."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, OperationSettings) else OperationSettings()


def _retention(*, key: bool, retention: str | None) -> int | None:
    if not key:
        if retention is not None:
            raise _bad("retention without key=True promises nothing", hint="add key=True, or take it out")
        return None
    if retention is None:
        return SHORTEST_RETENTION_US
    return None if retention == "forever" else _duration(retention, "retention")


def _duration(text: str, name: str) -> int:
    try:
        return duration_us(text)
    except ValueError as error:
        raise _bad(f"{name}: {error}", hint="durations are texts with a unit") from error


def _bad(message: str, *, hint: str) -> ConfigError:
    # What providers.settings_values.bad_setting makes; its module loads a library that no callable needs.
    return ConfigError(message, code="bad_setting", hint=hint)
