"""How broken variants are made and found."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

Patch = contextlib.AbstractContextManager[Any]


@dataclass(frozen=True)
class Mutant:
    """``what`` is broken, ``make`` breaks it."""

    name: str
    what: str
    make: Callable[[], Patch]


MUTANTS: dict[str, Mutant] = {}


def mutant(what: str) -> Callable[[Callable[[], Patch]], Callable[[], Patch]]:
    """Registers a variant."""

    def register(make: Callable[[], Patch]) -> Callable[[], Patch]:
        MUTANTS[make.__name__] = Mutant(make.__name__, what, make)
        return make

    return register


def replaced(owner: Any, name: str, change: Callable[[Any], Any]) -> Patch:
    """An attribute replaced by something made from it."""
    return patch.object(owner, name, change(getattr(owner, name)))


def both(*patches: Patch) -> Patch:
    """Several at once."""

    @contextlib.contextmanager
    def enter() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for each in patches:
                stack.enter_context(each)
            yield

    return enter()
