"""Packages whose names are imported when they are first used, so that a command loads only what it needs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def names_of(
    package: str, homes: Mapping[str, Iterable[str]], *, renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__`` (PEP 562) for names that live in its modules.

    ``homes``: by module, the names it gives. ``renamed``: what a name is called at its home, where that differs.
    """
    where = {name: home for home, names in homes.items() for name in names}

    def getattr_(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(where[name]), (renamed or {}).get(name, name))
        setattr(sys.modules[package], name, found)
        return found

    return getattr_, lambda: sorted(where)
