"""The Python API: ``once``. Apart from the rest of it, since a task that guards one call needs neither engine nor readers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from payonce.core.model import Declaration
from payonce.core.money import Money
from payonce.providers.python_operation import Call, OperationSettings, settings_of
from payonce.providers.python_operation import operation as operation_marker
from payonce.service.single import Once
from payonce.service.single_call import Guarded


def once(
    ledger: str,
    *,
    batch: str,
    item: str,
    money: Money | None = None,
    target: str | None = None,
    fields: Mapping[str, Any] | None = None,
    operation: str = "call",
    namespace: str = "payonce",
    timeout: str = "10m",
    **promises: Any,
) -> Once:
    """Guards one call inside someone else's job: ``async with payonce.once(...) as call`` (or plain ``with``).

    The body makes the call with ``call.key`` and reports what became of it: ``call.executed(reference)`` or
    ``call.report(outcome)``; where ``call.done`` is true an earlier one executed it and there is nothing to do. A body
    that raises, or reports nothing, may have executed it. ``timeout`` bounds the body; ``promises`` (``key``,
    ``retention``, ``lookup``, ``lag``, ``max_execution``, ...) are those of ``payonce.operation``.

    Raises ItemUnknown, ItemBusy or ItemRefused where the body may not be entered, SealedError where the item's facts
    changed, LedgerError where the intent or the result cannot be made durable.
    """
    # A look-up may be a function made for this call alone, which must not be kept.
    promised = _promised if "lookup" in promises else _promised_before
    try:
        settings, declaration = promised(operation, timeout, *promises.items())
    except TypeError:  # not hashable, or no such promise: then this says so
        settings, declaration = _promised(operation, timeout, *promises.items())
    guarded = Guarded(batch, item, money, target, dict(fields or {}), settings, declaration, namespace=namespace)
    return Once(ledger, guarded)


def _promised(operation: str, timeout: str, *promises: tuple[str, Any]) -> tuple[OperationSettings, Declaration]:
    """The promises of ``once`` as settings, and as data."""

    def body(call: Call) -> None:
        """Carries the promises; it is never called."""

    settings = settings_of(operation_marker(timeout=timeout, **dict(promises))(body))
    return settings, settings.declaration(operation)


_promised_before = functools.lru_cache(maxsize=64, typed=True)(_promised)
