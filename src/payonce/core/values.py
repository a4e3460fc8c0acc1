"""Values that are made for every call: frozen for the type checker, without its price at run time.

A frozen dataclass sets each field through ``object.__setattr__``, which makes building one three to six times as dear,
and a run builds a dozen for every item. ``value`` is a dataclass with slots, equality and a hash that the type checker
treats as frozen: an assignment to a field fails the checks, not the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """The class as a value of the hot path. ``dataclasses.replace`` and ``fields`` work as for any dataclass."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
