"""Faults as a configuration names them: short texts, tables, scripts per item and probabilities.

Everything unknown is an error with the place and the names that exist: a misspelt fault that silently never happens
would make a test pass for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from payonce.providers.simulator import values
from payonce.providers.simulator.faults import Fault, Kind, On, When
from payonce.providers.simulator.values import ConfigError

_SAME_AS_OK = {"execute": Kind.OK, "replay": Kind.OK}
_STATUS_OF_CODE = {"card_declined": 402, "insufficient_funds": 402, "resource_missing": 404, "account_closed": 403}
_ON: tuple[On, ...] = ("writes", "reads", "all")
_SHAPES = ("empty", "unknown")
_RETRY_AS = ("seconds", "date", "none")


def _amount(value: object, *, where: str) -> int:
    return values.whole(value, where=where)


def _from_one(value: object, *, where: str) -> int:
    return values.whole(value, where=where, least=1)


def _shape(value: object, *, where: str) -> str:
    return values.one_of(value, names=_SHAPES, where=where)


def _retry_as(value: object, *, where: str) -> str:
    return values.one_of(value, names=_RETRY_AS, where=where)


def _on(value: object, *, where: str) -> On:
    return values.one_of(value, names=_ON, where=where)


_Reader = Callable[..., Any]
_PARAMETERS: Mapping[str, tuple[str, _Reader]] = {
    "after": ("after_us", values.duration_us),
    "status": ("status", _from_one),
    "code": ("code", values.text),
    "message": ("message", values.text),
    "delta": ("delta", _amount),
    "shape": ("shape", _shape),
    "size": ("size", _from_one),
    "retry_after": ("retry_after_us", values.duration_us),
    "retry_as": ("retry_as", _retry_as),
}
_CONDITIONS: Mapping[str, tuple[str, _Reader]] = {
    "on": ("on", _on),
    "probability": ("probability", values.probability),
    "items": ("items", values.texts),
    "operations": ("operations", values.texts),
    "first": ("first", _from_one),
    "nth": ("nth", _from_one),
    "start": ("start_us", values.duration_us),
    "length": ("length_us", values.duration_us),
}
_ARGUMENT = {
    Kind.SLOW: "after",
    Kind.LATE_EXECUTION: "after",
    Kind.ACCEPTED_202: "after",
    Kind.RATE_LIMITED: "retry_after",
    Kind.REFUSE: "code",
    Kind.ODD_SUCCESS: "shape",
    Kind.OTHER_AMOUNT: "delta",
    Kind.WRONG_CREDIT: "delta",
    Kind.HUGE: "size",
    Kind.TRICKLE: "after",
}
_NUMBERS = ("delta", "size")


def parse_kind(value: object, *, where: str) -> Kind:
    """The kind of that name. Raises ConfigError, with all names, where there is none."""
    if isinstance(value, str) and value in _SAME_AS_OK:
        return _SAME_AS_OK[value]
    try:
        return Kind(str(value))
    except ValueError:
        names = ", ".join(kind.value for kind in Kind)
        raise ConfigError(f"{where}: unknown fault {value!r}; there are {names}") from None


def parse_fault(value: object, *, where: str) -> Fault:
    """A fault from its name, from "name:argument", or from a table with `kind`.

    The argument is the kind's main parameter: a duration (slow, late_execution, accepted_202, rate_limited, trickle), a code
    (refuse), a whole number (other_amount, wrong_credit, huge) or a shape (odd_success). Raises ConfigError.
    """
    if isinstance(value, str):
        name, _, argument = value.partition(":")
        kind = parse_kind(name, where=where)
        return _fault(kind, {} if not argument else _argument(kind, argument, where=where), where=where)
    found = values.table(value, where=where)
    if "kind" not in found:
        raise ConfigError(f"{where}: a fault needs its 'kind'")
    return _fault(parse_kind(found.pop("kind"), where=f"{where}.kind"), found, where=where)


def parse_faults(value: object, *, where: str) -> tuple[Fault, ...]:
    """The faults of a list, in its order. Raises ConfigError."""
    if not isinstance(value, list):
        raise ConfigError(f"{where}: {value!r} is not a list of faults")
    return tuple(parse_fault(entry, where=f"{where}[{number}]") for number, entry in enumerate(value))


def parse_probabilities(value: object, *, where: str) -> tuple[Fault, ...]:
    """A fault for each {name = probability}. Raises ConfigError."""
    return tuple(
        replace(
            parse_fault(name, where=where),
            when=When(probability=values.probability(chance, where=f"{where}.{name}")),
        )
        for name, chance in values.table(value, where=where).items()
    )


def parse_script(value: object, *, where: str) -> dict[str, tuple[Fault, ...]]:
    """Per item reference the faults of its calls in order; calls after the last go well. Raises ConfigError."""
    return {
        item: parse_faults(faults, where=f"{where}.{item}") for item, faults in values.table(value, where=where).items()
    }


def _argument(kind: Kind, argument: str, *, where: str) -> dict[str, object]:
    name = _ARGUMENT.get(kind)
    if name is None:
        raise ConfigError(f"{where}: {kind} takes no argument")
    if name not in _NUMBERS:
        return {name: argument}
    try:
        return {name: int(argument)}
    except ValueError:
        raise ConfigError(f"{where}: {argument!r} is not a whole number") from None


def _fault(kind: Kind, given: Mapping[str, object], *, where: str) -> Fault:
    parameters: dict[str, Any] = {}
    conditions: dict[str, Any] = {}
    for name, value in given.items():
        if name in _PARAMETERS:
            field, reader = _PARAMETERS[name]
            parameters[field] = reader(value, where=f"{where}.{name}")
        elif name in _CONDITIONS:
            field, reader = _CONDITIONS[name]
            conditions[field] = reader(value, where=f"{where}.{name}")
        else:
            known = ", ".join((*_PARAMETERS, *_CONDITIONS))
            raise ConfigError(f"{where}: unknown setting {name!r} of a fault; there are {known}")
    if kind is Kind.REFUSE and "status" not in parameters:
        parameters["status"] = _STATUS_OF_CODE.get(parameters.get("code", ""), 400)
    return Fault(kind, when=When(**conditions), **parameters)
