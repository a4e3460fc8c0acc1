"""The kinds of providers there are: builds one from its table, and tells what each declares.

Adapters are imported when they are asked for, so that a command that needs none starts fast.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from payonce.core.errors import ConfigError
from payonce.core.model import Declaration
from payonce.providers.protocol import Provider


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a provider is built for.

    ``columns`` are the input's columns, None where they are not known; ``mapped`` says for columns that [item] maps
    which placeholder each is (``{"charge_id": "id"}``). ``environ`` is where credentials come from. ``function`` is
    the operation of a Python caller. ``base`` is the folder that relative paths start from.
    """

    operation: str
    batch: str
    columns: Collection[str] | None = None
    mapped: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    concurrency: int = 64
    base: str = "."
    function: Callable[..., Any] | None = None


# Kinds whose operations are what the user makes of them; a name of one's own must not be taken for one of these.
_OPEN: Final = ("http", "python")
_USUAL: Final = ("refund", "payout", "invoice", "call")
Builder = Callable[[Mapping[str, Any], Wanted], Provider]
Describer = Callable[[], Declaration]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: where its code is, and what it is in a line. The module has ``build`` and ``describe``."""

    module: str
    summary: str


KINDS: Final[Mapping[str, Kind]] = {
    "http": Kind("payonce.providers.registry_http", "any HTTP API, described in the batch file"),
    "python": Kind("payonce.providers.registry_python", "a Python function, async or plain"),
    "stripe": Kind("payonce.providers.stripe", "Stripe: refund, payout, transfer, invoice"),
    "adyen": Kind("payonce.providers.adyen", "Adyen: refund, payout"),
    "paypal": Kind("payonce.providers.paypal", "PayPal: refund, payout"),
    "simulator": Kind("payonce.providers.registry_simulator", "the built-in provider, for trying things out"),
}


def build(
    kind: str,
    table: Mapping[str, Any],
    *,
    operation: str,
    batch: str,
    columns: Collection[str] | None = None,
    environ: Mapping[str, str],
    mapped: Mapping[str, str] | None = None,
    concurrency: int = 64,
    base: str = ".",
    function: Callable[..., Any] | None = None,
) -> Provider:
    """The provider of a ``[provider]`` table, checked as far as it can be without sending anything.

    Raises ConfigError: ``unknown_provider``, ``bad_setting``, ``literal_secret``, ``missing_variable``,
    ``unknown_placeholder`` and others, each naming the setting and what is allowed; never a credential.
    """
    wanted = Wanted(
        operation=operation,
        batch=batch,
        columns=columns,
        mapped=mapped or {},
        environ=environ,
        concurrency=concurrency,
        base=base,
        function=function,
    )
    check_operation(kind, operation)
    builder: Builder = _module(kind).build
    return builder(table, wanted)


def check_operation(kind: str, operation: str) -> None:
    """Raises ConfigError ``unknown_operation`` for an operation that a provider of this kind does not have, with all that
    it has, the nearest first. Where any name is allowed, one that is almost a usual one is taken for a slip."""
    module = _module(kind)
    if kind in _OPEN:
        near = get_close_matches(operation, _USUAL, n=1, cutoff=0.85)
        if operation in _USUAL or not near:
            return
        raise ConfigError(
            f"the operation is {operation!r}, which looks like {near[0]!r} with a slip",
            code="unknown_operation",
            hint=f"did you mean {near[0]!r}? {', '.join(_USUAL)} have a meaning of their own; any other name that is not "
            "almost one of them is yours",
        )
    known: tuple[str, ...] = module.OPERATIONS
    if operation in known:
        return
    near = get_close_matches(operation, known, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    raise ConfigError(
        f"{kind} has no operation {operation!r}",
        code="unknown_operation",
        hint=f"{meant}operation is one of {', '.join((*near, *(name for name in known if name not in near)))}",
    )


def declarations() -> tuple[Declaration, ...]:
    """What each kind declares, for ``payonce providers``; where settings decide, what they can make of it."""
    return tuple(declared for kind in KINDS for declared in describe_all(kind))


def describe(kind: str) -> Declaration:
    """What one kind declares. Raises ConfigError ``unknown_provider``."""
    describer: Describer = _module(kind).describe
    return describer()


def describe_all(kind: str) -> tuple[Declaration, ...]:
    """What one kind declares, one declaration an operation where they differ."""
    every: Callable[[], tuple[Declaration, ...]] | None = getattr(_module(kind), "describe_all", None)
    return every() if every is not None else (describe(kind),)


def _module(kind: str) -> Any:
    found = KINDS.get(kind)
    if found is None:
        near = get_close_matches(kind, KINDS, n=1)
        raise ConfigError(
            f"there is no provider of kind {kind!r}",
            code="unknown_provider",
            hint=f"did you mean {near[0]!r}?" if near else f"there are {', '.join(KINDS)}; any API works with http",
        )
    return importlib.import_module(found.module)
